"""What the controller saw and decided, as lines of JSON: what `ebbtide backtest --shadow` scores.

A tick gets a line where anything but its time is new, and every minute in any case: a quiet day is 1,440 lines.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from whenever import Instant

from ebbtide.control.actions import Action, Record
from ebbtide.control.loop import Tick
from ebbtide.control.state import Side, State, Tenure
from ebbtide.errors import InputError, Place
from ebbtide.fleet.schedule import Schedule
from ebbtide.workflows.run_documents import Documents

AT_LEAST_EVERY_S = 60.0


class Recorder:
    """Appends to a file, a whole line at a time."""

    def __init__(self, path: Path) -> None:
        self._last: dict[str, Any] = {}
        self._written_s = float("-inf")
        try:
            self._file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as problem:
            raise InputError(
                f"cannot be written: {problem.strerror}", kind="record", place=Place(file=str(path))
            ) from None

    def write(self, tick: Tick, state: State, documents: Documents, at_s: float) -> None:
        """One tick. ``OSError`` where the disk takes no more."""
        line = recorded(tick, state, documents, at_s)
        said = {name: value for name, value in line.items() if name not in ("at", "seen_age_s")}
        if said == self._last and 0.0 <= at_s - self._written_s < AT_LEAST_EVERY_S:
            return
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._last, self._written_s = said, at_s

    def close(self) -> None:
        """No more."""
        self._file.close()


def recorded(tick: Tick, state: State, documents: Documents, at_s: float) -> dict[str, Any]:
    """A tick as plain values: snake_case, units in the names."""
    decision = tick.decision
    results = {id(action): str(result) for action, result in tick.results}
    return {
        "at": Instant.from_timestamp(round(at_s * 1e9), unit="nanosecond").format_iso(),
        "fleet_digest": documents.fleet.digest,
        "mode": str(state.mode),
        "phase": decision.phase,
        "window": decision.window,
        "planned": planned(documents.schedule, decision.window),
        "seen_age_s": {
            str(side): round(at_s - state.sight(side).seen_at_s, 3) for side in Side if state.sight(side).pools
        },
        "nodes": {pool.name: _nodes(state, pool.name) for pool in documents.fleet.pools},
        "replicas": {
            name: {"wanted": one.wanted, "ready": one.ready} for name, one in state.production.replicas.items()
        },
        "quota_gpus": dict(state.research.quota_gpus),
        "live_rps": dict(state.live_rps),
        "moves": [{"id": one.id, "node": one.node, "stage": str(one.stage)} for one in state.memory.moves],
        "shortages": dict(decision.shortages),
        "actions": [_action(one, results.get(id(one), "not tried")) for one in decision.actions],
        "withheld": [{"what": one.what, "rule": one.why.rule, "why": one.why.text} for one in decision.withheld],
    }


def planned(schedule: Schedule | None, window: str) -> dict[str, Any] | None:
    """What a window's column says; None where there is no such window, as in a pause."""
    names = [] if schedule is None else [one.name for one in schedule.windows]
    if schedule is None or window not in names:
        return None
    k = names.index(window)
    return {
        "replicas": {one.name: one.replicas[k] for one in schedule.workloads},
        "holds_rps": {one.name: one.holds_rps[k] for one in schedule.workloads},
        "production_nodes": {one.name: one.production_nodes[k] for one in schedule.pools},
        "ephemeral_nodes": {one.name: one.ephemeral_nodes[k] for one in schedule.pools},
    }


def _nodes(state: State, pool: str) -> dict[str, int]:
    production = Counter(node.ready for node in state.production.pool(pool).nodes)
    tenures = Counter(node.tenure for node in state.research.pool(pool).nodes if node.ready)
    return {
        "production": production[True],
        "ephemeral": tenures[Tenure.EPHEMERAL],
        "reserved": tenures[Tenure.RESERVED],
    }


def _action(action: Action, result: str) -> dict[str, Any]:
    plain = {} if isinstance(action, Record) else action_plain(action)
    why = action.why
    return {"kind": type(action).__name__, **plain, "rule": why.rule, "why": why.text, "result": result}


def action_plain(action: Action) -> dict[str, object]:
    """An action's own fields as plain values."""
    return {name: _plain(getattr(action, name)) for name in action.__dataclass_fields__ if name != "why"}


def _plain(value: object) -> object:
    if isinstance(value, frozenset | tuple):
        return sorted(str(one) for one in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
