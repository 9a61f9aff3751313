"""Raw steps as Parquet: one file a finished step while a run lasts, one for all beside the claim."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.documents.files import Output, make_folder, write_atomically, write_together
from ebbtide.adapters.load.calls import Calls
from ebbtide.capacity.steps import Purpose, StepPlan
from ebbtide.errors import InputError, Place

ABOUT = "about.json"
MARK = "written by ebbtide"
_WHOLE = {"index", "item", "events", "input_tokens", "output_tokens", "in_flight", "status", "fault"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptStep:
    """A finished step: the plan at each look, all its requests, the checks' marks, and why it is void."""

    looks: tuple[StepPlan, ...]
    calls: Calls
    marks: NDArray[np.int8]
    void: str | None = None

    @property
    def plan(self) -> StepPlan:
        """The plan at the last look."""
        return self.looks[-1]


class RunFolder:
    """A run's finished steps on disk, from which it can go on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def about(self) -> dict[str, Any] | None:
        """What the run was begun with; None where there is none."""
        path = self.path / ABOUT
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("mark") != MARK:
            raise InputError("is no run of ebbtide's", kind="foreign_output", place=Place(file=str(self.path)))
        return found

    def begin(self, about: dict[str, Any]) -> None:
        """A new run, in place of what was there."""
        self.forget()
        make_folder(self.path)
        write_atomically(self.path / ABOUT, json.dumps({"mark": MARK, **about}).encode())

    def keep(self, number: int, step: KeptStep) -> None:
        """Step ``number``, on disk when this returns."""
        write_together([Output(path=self.path / f"{number:05d}.parquet", content=parquet([step]))])

    def steps(self) -> list[KeptStep]:
        """All that were kept, in order."""
        return [kept_step(path) for path in sorted(self.path.glob("*.parquet"))]

    def forget(self) -> None:
        """Remove it; a folder that is not a run's stays as it is."""
        if not self.path.is_dir() or self.about() is None:
            return
        for path in [*self.path.glob("*.parquet"), self.path / ABOUT]:
            path.unlink()
        if not any(self.path.iterdir()):
            self.path.rmdir()


def parquet(steps: Sequence[KeptStep]) -> bytes:
    """The steps as one Parquet file: a row a request, with its step's number, rate and purpose."""
    import pyarrow as pa
    import pyarrow.parquet

    columns: dict[str, list[Any]] = {}
    for number, step in enumerate(steps, start=1):
        count, plan = len(step.calls), step.plan
        part: dict[str, Any] = {
            "step": np.full(count, number),
            "rate_rps": np.full(count, plan.rate_rps),
            "block": np.full(count, plan.purpose is Purpose.BLOCK),
            "void": np.full(count, step.void is not None),
            "wrong": step.marks.astype(np.int8),
        }
        part |= {one.name: getattr(step.calls, one.name) for one in fields(Calls)}
        for name, values in part.items():
            columns.setdefault(name, []).append(values)
    said = {"looks": [[_plain(plan) for plan in step.looks] for step in steps], "void": [step.void for step in steps]}
    table = pa.table({name: np.concatenate(parts) for name, parts in columns.items()})
    table = table.replace_schema_metadata({"ebbtide": json.dumps({"mark": MARK, **said})})
    buffer = io.BytesIO()
    pa.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def kept_step(path: Path) -> KeptStep:
    """One finished step of a run."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pa.parquet.read_table(path)
        said = json.loads(table.schema.metadata[b"ebbtide"])
        columns = {name: table[name].to_numpy() for name in table.column_names}
        calls = {
            one.name: columns[one.name].astype(np.int64 if one.name in _WHOLE else np.float64) for one in fields(Calls)
        }
        return KeptStep(
            looks=tuple(StepPlan(**{**plan, "purpose": Purpose(plan["purpose"])}) for plan in said["looks"][0]),
            calls=Calls(**calls),
            marks=columns["wrong"].astype(np.int8),
            void=said["void"][0],
        )
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as problem:
        message = "is no step that can be read again; begin anew without --resume"
        raise InputError(message, kind="bad_step", place=Place(file=str(path))) from problem


def sha256(content: bytes) -> str:
    """As the claim names it.

    >>> sha256(b"")[:20]
    'sha256:e3b0c44298fc1'
    """
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _plain(plan: StepPlan) -> dict[str, Any]:
    return {**asdict(plan), "purpose": str(plan.purpose)}
