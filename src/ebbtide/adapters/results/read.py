"""One file of another tool's results: which tool it is, and its loads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.adapters.documents.files import read_bytes
from ebbtide.adapters.results import aiperf, guidellm, inference_perf
from ebbtide.capacity.levels import Level
from ebbtide.errors import InputError, Place

MOST_BYTES = 2**30
KNOWN = (
    "guidellm's benchmarks.json, AIPerf's profile_export_aiperf.json or profile_export.jsonl, "
    "inference-perf's stage_0_lifecycle_metrics.json"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A file's loads, who measured them, and the model's name where it is said."""

    path: Path
    tool: str
    levels: tuple[Level, ...]
    model: str | None
    content: bytes


def read_results(path: Path) -> Results:
    """The loads of a result file. ``InputError`` where it is none of the three tools', or holds no load."""
    content = read_bytes(path, at_most=MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise _refused(path, "is larger than 1 GiB", kind="too_large")
    tool, levels, model = _found(path, content)
    for level in levels:
        if not level.rate_rps > 0.0 or not level.answered:
            raise _refused(path, "holds a load without a rate or without answers", kind="no_load")
    if not levels:
        raise _refused(path, "holds no load", kind="no_load")
    return Results(path=path, tool=tool, levels=tuple(levels), model=model, content=content)


def _found(path: Path, content: bytes) -> tuple[str, list[Level], str | None]:
    if path.suffix == ".jsonl":
        lines = [_json(path, line) for line in content.splitlines() if line.strip()]
        if aiperf.is_aiperf_lines(lines):
            return aiperf.TOOL, [aiperf.aiperf_lines_level(lines, path.name)], None
        raise _unknown(path)
    tree = _yaml(path, content) if path.suffix in (".yaml", ".yml") else _json(path, content)
    if guidellm.is_guidellm(tree):
        return guidellm.TOOL, guidellm.guidellm_levels(tree, path.name), guidellm.guidellm_model(tree)
    if aiperf.is_aiperf(tree):
        return aiperf.TOOL, [aiperf.aiperf_level(tree, path.name)], aiperf.aiperf_model(tree)
    if inference_perf.is_inference_perf(tree):
        if inference_perf.is_summary(tree):
            hint = "give the stages' files instead: stage_0_lifecycle_metrics.json, …"
            raise _refused(path, "is over all stages, whatever their rates", kind="no_load", hint=hint)
        beside = path.parent / inference_perf.CONFIG
        config = _yaml(beside, read_bytes(beside, at_most=MOST_BYTES)) if beside.is_file() else None
        level = inference_perf.inference_perf_level(tree, config, path.name)
        return inference_perf.TOOL, [level], inference_perf.inference_perf_model(config)
    raise _unknown(path)


def _json(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise _refused(path, f"is no JSON: {problem}", kind="bad_results") from None


def _yaml(path: Path, content: bytes) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(content)
    except (YAMLError, ValueError, RecursionError):
        raise _refused(path, "is no YAML", kind="bad_results") from None


def _unknown(path: Path) -> InputError:
    return _refused(path, "is no result file that is known", kind="unknown_results", hint=f"known are {KNOWN}")


def _refused(path: Path, message: str, *, kind: str, hint: str | None = None) -> InputError:
    return InputError(message, kind=kind, place=Place(file=str(path)), hint=hint)
