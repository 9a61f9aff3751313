"""A controller's record (`ebbtide run --record`), read back as looks: a line of JSON for each tick that was new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from whenever import Instant

from ebbtide.errors import InputError, Place
from ebbtide.simulate.shadow import Look


class _Replicas(msgspec.Struct):
    wanted: int = 0
    ready: int = 0


class _Nodes(msgspec.Struct):
    production: int = 0


class _Plan(msgspec.Struct):
    replicas: dict[str, int] = {}
    holds_rps: dict[str, float] = {}
    production_nodes: dict[str, int] = {}


class _Line(msgspec.Struct):
    at: str
    fleet_digest: str
    window: str
    planned: _Plan | None = None
    replicas: dict[str, _Replicas] = {}
    nodes: dict[str, _Nodes] = {}
    live_rps: dict[str, float] = {}


def read_looks(paths: Sequence[Path], *, fleet_digest: str) -> tuple[list[Look], int]:
    """The looks of these files that were made for a Fleet, by its digest, and how many were for another.

    The last line of a file may be cut off: a controller was killed while it wrote.

    Raises ``InputError`` where a file cannot be read or another line is none of a record.
    """
    found: list[Look] = []
    others = 0
    for path in paths:
        for line in _lines(path):
            if line.fleet_digest == fleet_digest:
                found.append(_look(line))
            else:
                others += 1
    return found, others


def _lines(path: Path) -> list[_Line]:
    try:
        texts = path.read_bytes().splitlines()
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", kind="record", place=Place(file=str(path))) from None
    lines: list[_Line] = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(msgspec.json.decode(text, type=_Line))
        except msgspec.DecodeError as problem:
            if number == len(texts) and not isinstance(problem, msgspec.ValidationError):
                break
            place = Place(file=str(path), line=number)
            message = f"is no line of a record: {problem}"
            raise InputError(message, kind="record", place=place, hint="write one with run --record") from None
    return lines


def _look(line: _Line) -> Look:
    plan = line.planned if line.planned is not None else _Plan()
    return Look(
        at_s=Instant.parse_iso(line.at).timestamp(unit="nanosecond") / 1e9,
        window=line.window if line.planned is not None else "",
        planned_replicas=plan.replicas,
        holds_rps=plan.holds_rps,
        ready_replicas={name: one.ready for name, one in line.replicas.items()},
        live_rps=line.live_rps,
        planned_nodes=plan.production_nodes,
        seen_nodes={name: one.production for name, one in line.nodes.items()},
    )
