"""AIPerf's profile_export_aiperf.json (one load a file), or its profile_export.jsonl, a line a request.

Form: ai-dynamo/aiperf, src/aiperf/common/models/export_models.py, docs/reference/json-export-schema.md and
docs/tutorials/working-with-profile-exports.md; the load stands in ``input_config``: since 0.9 as ``phases``
(src/aiperf/config/phases.py), before that as ``loadgen``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.results.tree import UNITS_S, at, count, number, pairs, scv, text
from ebbtide.capacity.levels import Level

TOOL = "aiperf"
SHARES = {f"p{p}": p / 100.0 for p in (50, 75, 90, 95, 99)}
METRICS = {
    "latency": "request_latency",
    "firstToken": "time_to_first_token",
    "betweenTokens": "inter_token_latency",
}
RATES = ("poisson", "gamma", "constant")
GRID = np.concatenate([np.arange(0.5, 0.99, 0.01), np.arange(0.99, 0.9995, 0.001)])


def is_aiperf(tree: Any) -> bool:
    """Whether the summary is one of AIPerf's."""
    return at(tree, "request_throughput", "avg") is not None and at(tree, "request_latency", "unit") is not None


def is_aiperf_lines(lines: Sequence[Any]) -> bool:
    """Whether these are its records."""
    return bool(lines) and at(lines[0], "metadata", "request_start_ns") is not None


def aiperf_level(tree: Any, file: str) -> Level:
    """The summary's load."""
    kind, rate, cap = _load(at(tree, "input_config"))
    sequence = {side: at(tree, f"{side}_sequence_length") for side in ("input", "output")}
    return Level(
        file=file,
        rate_rps=number(tree, "request_throughput", "avg"),
        offered_rps=rate,
        answered=count(tree, "request_count", "avg"),
        failed=count(tree, "error_request_count", "avg"),
        quantiles={
            name: pairs({share: _seconds(at(tree, key), p) for p, share in SHARES.items()})
            for name, key in METRICS.items()
        },
        open_loop=None if kind is None else kind in (*RATES, "fixed_schedule"),
        arrivals=kind,
        cap=cap,
        seconds=_seconds(at(tree, "benchmark_duration"), "avg"),
        started_s=_instant_s(text(tree, "start_time")),
        input_tokens=number(sequence["input"], "avg"),
        input_scv=scv(number(sequence["input"], "avg"), number(sequence["input"], "std")),
        output_tokens=number(sequence["output"], "avg"),
        output_scv=scv(number(sequence["output"], "avg"), number(sequence["output"], "std")),
    )


def aiperf_lines_level(lines: Sequence[Any], file: str) -> Level:
    """The records' load: every percentile there is, and the arrivals as they were; how they came about isn't said."""
    lines = [one for one in lines if text(one, "metadata", "benchmark_phase") in (None, "profiling")]
    starts_s = np.array([1e-9 * number(one, "metadata", "request_start_ns") for one in lines])
    starts_s = np.sort(starts_s[np.isfinite(starts_s)])
    answered = [one for one in lines if not at(one, "error") and at(one, "metadata", "was_cancelled") is not True]
    tokens = {side: _values(answered, f"{side}_sequence_length") for side in ("input", "output")}
    span_s = float(starts_s[-1] - starts_s[0]) if len(starts_s) > 1 else nan
    return Level(
        file=file,
        rate_rps=len(answered) / span_s if span_s > 0.0 else nan,
        answered=len(answered),
        failed=sum(bool(at(one, "error")) for one in lines),
        cut_off=sum(not at(one, "error") and at(one, "metadata", "was_cancelled") is True for one in lines),
        quantiles={name: _grid(_values(answered, key, seconds=True)) for name, key in METRICS.items()},
        seconds=span_s,
        started_s=float(starts_s[0]) if len(starts_s) else nan,
        input_tokens=_mean(tokens["input"]),
        input_scv=scv(_mean(tokens["input"]), float(tokens["input"].std()) if len(tokens["input"]) else nan),
        output_tokens=_mean(tokens["output"]),
        output_scv=scv(_mean(tokens["output"]), float(tokens["output"].std()) if len(tokens["output"]) else nan),
    )


def aiperf_model(tree: Any) -> str | None:
    """The model asked."""
    config = at(tree, "input_config")
    return text(config, "endpoint", "model_names", 0) or text(config, "models", "items", 0, "name")


def _load(config: Any) -> tuple[str | None, float, int | None]:
    """The law of the arrivals, the rate, and the most in flight."""
    phases = [one for one in at(config, "phases") or [] if "warmup" not in (text(one, "kind"), text(one, "name"))]
    if phases:
        kind = text(phases[-1], "type")
        return kind, number(phases[-1], "rate") if kind in RATES else nan, count(phases[-1], "concurrency") or None
    old = at(config, "loadgen")
    if old is None:
        return None, nan, None
    rate, cap = number(old, "request_rate"), count(old, "concurrency") or None
    if not rate > 0.0:
        return "concurrency", nan, cap
    return text(old, "arrival_pattern") or text(old, "request_rate_mode") or "poisson", rate, cap


def _seconds(metric: Any, key: str) -> float:
    return number(metric, key) * UNITS_S.get(text(metric, "unit") or "", nan)


def _values(lines: Sequence[Any], key: str, *, seconds: bool = False) -> NDArray[np.float64]:
    found = [at(one, "metrics", key) for one in lines]
    values = [_seconds(one, "value") if seconds else number(one, "value") for one in found]
    return np.array([one for one in values if isfinite(one)], dtype=np.float64)


def _grid(values: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    if not len(values):
        return ()
    ends = np.quantile(values, GRID, method="higher")
    return tuple((round(float(share), 4), float(one)) for share, one in zip(GRID, ends, strict=True))


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else nan


def _instant_s(said: str | None) -> float:
    """AIPerf writes its own local time without a zone: taken as this machine's."""
    try:
        return datetime.fromisoformat(said).timestamp() if said else nan
    except ValueError:
        return nan
