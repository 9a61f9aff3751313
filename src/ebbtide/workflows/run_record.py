"""What the controller saw and decided, a line of JSON for each tick: what `ebbtide backtest --shadow` scores."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from whenever import Instant

from ebbtide.control.actions import Action, Record
from ebbtide.control.loop import Tick
from ebbtide.control.state import Bounds, Side, State, Tenure
from ebbtide.errors import InputError, Place
from ebbtide.workflows.run_documents import Documents


class Recorder:
    """Appends to a file, a whole line at a time."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as problem:
            raise InputError(
                f"cannot be written: {problem.strerror}", kind="record", place=Place(file=str(path))
            ) from None

    def write(self, tick: Tick, state: State, documents: Documents, at_s: float) -> None:
        """One tick."""
        self._file.write(json.dumps(recorded(tick, state, documents, at_s), ensure_ascii=False) + "\n")

    def close(self) -> None:
        """No more."""
        self._file.close()


def recorded(tick: Tick, state: State, documents: Documents, at_s: float) -> dict[str, Any]:
    """A tick as plain values: snake_case, units in the names."""
    decision = tick.decision
    results = {id(action): str(result) for action, result in tick.results}
    return {
        "at": Instant.from_timestamp_nanos(round(at_s * 1e9)).format_iso(),
        "fleet_digest": documents.fleet.digest,
        "mode": str(state.mode),
        "phase": decision.phase,
        "window": decision.window,
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
    if isinstance(value, Bounds):
        return f"{value.least}..{value.most}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
