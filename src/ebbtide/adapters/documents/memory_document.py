"""The controller's memory ↔ its document in the Schedule's status (§6.1): an exact round trip, of a bounded size.

What belongs here: the two ways. What doesn't: the fields (``memory_models``), where the document is kept, and its
version, which is the keeping object's and comes back with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ebbtide.adapters.documents.exact_times import exact_duration_text, instant_text
from ebbtide.adapters.documents.findings import validation_problems
from ebbtide.adapters.documents.memory_models import MOST_FINISHED, FinishedSpec, MemorySpec, MoveSpec
from ebbtide.adapters.documents.problems import Problem, document_errors, raise_errors
from ebbtide.adapters.documents.yaml_text import Tree
from ebbtide.control.memory import Broken, Direction, FinishedMove, Guard, Memory, Missing, Move, Revert, Stage, Written
from ebbtide.errors import PermanentError

MOST_BYTES = 1_000_000  # an object holds 1.5 MB, and the Schedule's spec beside it needs its room
_LONGEST_REASON = 1_024


def memory_plain(memory: Memory, *, at_most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The document of a memory, what is as always left out; all but its version, which the keeping object has.

    Of finished moves at most 2,048 are kept, the newest of every pool and direction: fewer than four pools lose none.
    ``PermanentError`` (kind ``memory_too_large``) where it does not fit: nothing may be begun that can't be recorded.
    """
    plain = {
        "nextMove": memory.next_move,
        "moves": [_move(move) for move in memory.moves],
        "finished": _finished(newest(memory.finished)),
        "quarantined": [
            {"node": node, "pool": one.pool, "since": instant_text(one.since_s)}
            for node, one in memory.quarantined.items()
        ],
        "differences": [{"pool": pool, "ticks": ticks} for pool, ticks in memory.difference_ticks.items()],
        "missing": [_missing(pool, one) for pool, one in memory.missing.items()],
        "written": [_written(field, one) for field, one in memory.written.items()],
        "reverts": [
            {"field": field, "who": one.who, "seen": [instant_text(at_s) for at_s in one.seen_s]}
            for field, one in memory.reverts.items()
        ],
        "spared": [{"node": node, "until": instant_text(until_s)} for node, until_s in memory.spared.items()],
        "sizes": [{"pool": pool, "nodes": nodes} for pool, nodes in memory.sizes.items()],
        "guards": [_guard(workload, one) for workload, one in memory.guards.items()],
    }
    plain = {name: value for name, value in plain.items() if value}
    size = len(json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode())
    if size > at_most_bytes:
        raise PermanentError(
            f"the controller's memory takes {size:,} bytes, and {at_most_bytes:,} fit: {len(memory.moves)} moves, "
            f"{len(memory.written)} written fields",
            kind="memory_too_large",
            hint="lower movesAtOnce, or split the Fleet",
        )
    return plain


def memory_value(plain: Mapping[str, Any], *, version: int = 0, file: str = "status.memory") -> Memory:
    """The memory in a document; ``version`` is the keeping object's, ``file`` names it in errors.

    Raises ``DocumentError`` where it is none: the controller must not go on as if nothing were in motion.
    """
    tree = Tree(data=dict(plain))
    try:
        spec = MemorySpec.model_validate(tree.data)
    except ValidationError as error:
        raise_errors(document_errors(validation_problems(error, MemorySpec), tree, file))
        raise
    raise_errors(document_errors(memory_problems(spec, ()), tree, file))
    return memory_of(spec, version=version)


def memory_problems(spec: MemorySpec, root: tuple[str | int, ...]) -> list[Problem]:
    """What is wrong between its fields: columns of unequal length, the same thing held twice."""
    done = spec.finished
    lengths = {len(done.pool), len(done.direction), len(done.batch), len(done.took), len(done.at)}
    problems = []
    if len(lengths) > 1:
        message = "has columns of unequal length"
        problems.append(Problem(path=(*root, "finished"), kind="column_length", message=message))
    for name, keys in _keys(spec).items():
        if len(set(keys)) < len(keys):
            problems.append(Problem(path=(*root, name), kind="duplicate_name", message="holds a name twice"))
    return problems


def memory_of(spec: MemorySpec, *, version: int = 0) -> Memory:
    """The memory of a checked document."""
    return Memory(
        version=version,
        moves=tuple(_move_value(move) for move in spec.moves),
        finished=_finished_value(spec.finished),
        quarantined={one.node: Broken(pool=one.pool, since_s=one.since) for one in spec.quarantined},
        difference_ticks={one.pool: one.ticks for one in spec.differences},
        missing={one.pool: Missing(nodes=one.nodes, since_s=one.since, lost=one.lost) for one in spec.missing},
        written={
            one.field: Written(before=one.before, value=one.value, at_s=one.at, seen=one.seen) for one in spec.written
        },
        reverts={one.field: Revert(who=one.who, seen_s=tuple(one.seen)) for one in spec.reverts},
        spared={one.node: one.until for one in spec.spared},
        sizes={one.pool: one.nodes for one in spec.sizes},
        guards={one.workload: Guard(rps=one.rps, peak_s=one.peak, above_s=one.above) for one in spec.guards},
        next_move=spec.next_move,
    )


def newest(finished: Sequence[FinishedMove], at_most: int = MOST_FINISHED) -> tuple[FinishedMove, ...]:
    """At most so many finished moves, in their order: the last of each pool and direction, as many of each."""
    kept = list(finished)
    each = len(kept)
    while len(kept) > at_most:
        each = each // 2 if each > at_most else each - max(1, each // 8)
        left: dict[tuple[str, Direction], int] = {}
        kept = []
        for move in reversed(finished):
            key = (move.pool, move.direction)
            left[key] = left.get(key, each) - 1
            if left[key] >= 0:
                kept.append(move)
        kept.reverse()
    return tuple(kept)


def _keys(spec: MemorySpec) -> dict[str, list[str]]:
    return {
        "moves": [one.id for one in spec.moves],
        "quarantined": [one.node for one in spec.quarantined],
        "differences": [one.pool for one in spec.differences],
        "missing": [one.pool for one in spec.missing],
        "written": [one.field for one in spec.written],
        "reverts": [one.field for one in spec.reverts],
        "spared": [one.node for one in spec.spared],
        "sizes": [one.pool for one in spec.sizes],
        "guards": [one.workload for one in spec.guards],
    }


def _move(move: Move) -> dict[str, Any]:
    rest: dict[str, Any] = {
        "batch": None if move.batch == 1 else move.batch,
        "token": move.token,
        "arrived": move.arrived,
        "late": move.late,
        "asked": None if move.asked_s == -math.inf else instant_text(move.asked_s),
        "reason": move.reason[:_LONGEST_REASON],
    }
    return {
        "id": move.id,
        "pool": move.pool,
        "direction": move.direction.value,
        "node": move.node,
        "stage": move.stage.value,
        "begun": instant_text(move.begun_s),
        "since": instant_text(move.since_s),
        "due": instant_text(move.due_s),
    } | {name: value for name, value in rest.items() if value}


def _move_value(spec: MoveSpec) -> Move:
    return Move(
        id=spec.id,
        pool=spec.pool,
        direction=Direction(spec.direction),
        node=spec.node,
        stage=Stage(spec.stage),
        begun_s=spec.begun,
        since_s=spec.since,
        due_s=spec.due,
        batch=spec.batch,
        token=spec.token,
        arrived=spec.arrived,
        late=spec.late,
        asked_s=-math.inf if spec.asked is None else spec.asked,
        reason=spec.reason,
    )


def _finished(moves: Sequence[FinishedMove]) -> dict[str, Any]:
    if not moves:
        return {}
    return {
        "pool": [move.pool for move in moves],
        "direction": [move.direction.value for move in moves],
        "batch": [move.batch for move in moves],
        "took": [exact_duration_text(move.took_s) for move in moves],
        "at": [instant_text(move.finished_s) for move in moves],
    }


def _finished_value(spec: FinishedSpec) -> tuple[FinishedMove, ...]:
    columns = zip(spec.pool, spec.direction, spec.batch, spec.took, spec.at, strict=True)
    return tuple(
        FinishedMove(pool=pool, direction=Direction(way), batch=batch, took_s=took_s, finished_s=at_s)
        for pool, way, batch, took_s, at_s in columns
    )


def _written(field: str, one: Written) -> dict[str, Any]:
    plain = {"field": field, "before": one.before, "value": one.value, "at": instant_text(one.at_s)}
    return plain | ({"seen": True} if one.seen else {})


def _missing(pool: str, one: Missing) -> dict[str, Any]:
    plain = {"pool": pool, "nodes": one.nodes, "since": instant_text(one.since_s)}
    return plain | ({"lost": one.lost} if one.lost else {})


def _guard(workload: str, one: Guard) -> dict[str, Any]:
    return {"workload": workload, "rps": one.rps, "peak": instant_text(one.peak_s), "above": instant_text(one.above_s)}
