"""The controller's memory comes back from its document as it was, and never grows beyond what an object holds."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.adapters.documents.exact_times import exact_duration_text, instant_s, instant_text
from ebbtide.adapters.documents.memory_document import memory_plain, memory_value, newest
from ebbtide.adapters.documents.memory_models import MOST_FINISHED, MOST_MOVES
from ebbtide.control.memory import Broken, Direction, FinishedMove, Guard, Memory, Missing, Move, Revert, Stage, Written
from ebbtide.errors import DocumentError, PermanentError
from ebbtide.units import parse_duration_s

LABEL = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
NODE = st.from_regex(r"[a-z][-.a-z0-9]{0,30}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=40)
INSTANT = st.floats(1.0, 4e9) | st.integers(0, 4 * 10**9).map(float)
DIRECTION = st.sampled_from(Direction)
MOVE = st.builds(
    Move,
    id=NODE,
    pool=LABEL,
    direction=DIRECTION,
    node=NODE,
    stage=st.sampled_from(Stage),
    begun_s=INSTANT,
    since_s=INSTANT,
    due_s=INSTANT,
    batch=st.integers(1, 99),
    token=TEXT,
    arrived=st.just("") | NODE,
    late=st.booleans(),
    asked_s=st.just(-math.inf) | INSTANT,
    reason=TEXT,
)
FINISHED = st.builds(
    FinishedMove,
    pool=LABEL,
    direction=DIRECTION,
    batch=st.integers(1, 99),
    took_s=st.just(0.0) | st.floats(1e-9, 1e7),
    finished_s=INSTANT,
)
FIELD = TEXT.filter(bool)
MEMORY = st.builds(
    Memory,
    version=st.integers(0, 2**50),
    moves=st.lists(MOVE, max_size=3, unique_by=lambda move: move.id).map(tuple),
    finished=st.lists(FINISHED, max_size=5).map(tuple),
    quarantined=st.dictionaries(NODE, st.builds(Broken, pool=LABEL, since_s=INSTANT), max_size=3),
    difference_ticks=st.dictionaries(LABEL, st.integers(0, 9), max_size=3),
    missing=st.dictionaries(
        LABEL, st.builds(Missing, nodes=st.integers(1, 99), since_s=INSTANT, lost=st.integers(0, 99)), max_size=3
    ),
    written=st.dictionaries(
        FIELD, st.builds(Written, before=TEXT, value=TEXT, at_s=INSTANT, seen=st.booleans()), max_size=3
    ),
    reverts=st.dictionaries(
        FIELD, st.builds(Revert, who=TEXT, seen_s=st.lists(INSTANT, max_size=2).map(tuple)), max_size=3
    ),
    spared=st.dictionaries(NODE, INSTANT, max_size=3),
    sizes=st.dictionaries(LABEL.map(lambda pool: f"production/{pool}"), st.integers(-5, 10**6), max_size=3),
    guards=st.dictionaries(LABEL, st.builds(Guard, rps=st.floats(0, 1e9), peak_s=INSTANT, above_s=INSTANT), max_size=3),
    next_move=st.integers(1, 2**40),
)


def through_a_server(plain: object) -> object:
    """As an API server gives it back: JSON, in which a whole number has lost its point."""

    def whole(value: object) -> object:
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.loads(json.dumps(whole(plain)))


@given(MEMORY)
@settings(max_examples=60, deadline=None)
def test_a_memory_comes_back_as_it_was(memory: Memory) -> None:
    plain = through_a_server(memory_plain(memory))
    assert isinstance(plain, dict)
    assert memory_value(plain, version=memory.version) == memory


@given(INSTANT)
@settings(max_examples=300, deadline=None)
def test_an_instant_is_read_as_the_same_number(at_s: float) -> None:
    assert instant_s(instant_text(at_s)) == at_s
    assert len(instant_text(at_s)) <= 48


@given(st.just(0.0) | st.floats(1e-9, 1e9))
@settings(max_examples=300, deadline=None)
def test_a_duration_is_read_as_the_same_number(took_s: float) -> None:
    assert parse_duration_s(exact_duration_text(took_s)) == took_s


def finished(pool: str, direction: Direction, at_s: float) -> FinishedMove:
    return FinishedMove(pool=pool, direction=direction, batch=8, took_s=1234.567 + at_s, finished_s=1.8e9 + at_s)


def test_of_many_finished_moves_the_newest_of_each_pool_stay() -> None:
    # Pool a moves often; pool b has few, old ones: they tell more than a's thousandth.
    few = [finished("b", Direction.YIELD, n) for n in range(6)]
    many = [finished("a", way, 10 + n) for n in range(3_000) for way in Direction]
    kept = newest((*few, *many))
    assert len(kept) <= MOST_FINISHED
    assert kept[:6] == tuple(few)
    assert kept[-2:] == tuple(many[-2:])
    assert list(kept) == sorted(kept, key=lambda move: move.finished_s)
    assert len(kept) > MOST_FINISHED // 2
    assert newest(tuple(many[:MOST_FINISHED])) == tuple(many[:MOST_FINISHED])


def busy(moves: int, pools: int = 4) -> Memory:
    on_the_way = tuple(
        Move(
            id=f"m-{n}",
            pool=f"pool-{n % pools}",
            direction=Direction.RECLAIM,
            node=f"ip-10-0-{n // 256}-{n % 256}.eu-central-1.compute.internal",
            stage=Stage.TRAVELLING,
            begun_s=1.8e9 + n + 0.123456,
            since_s=1.8e9 + n + 0.123456,
            due_s=1.8e9,
            batch=moves,
            token=f"i-{n:017x}",
            asked_s=1.8e9 + n,
            reason="all-0900 begins and wants 24 nodes in production (§6.2)",
        )
        for n in range(moves)
    )
    ways = [(f"pool-{pool}", way) for pool in range(pools) for way in Direction]
    done = tuple(finished(pool, way, float(n)) for n in range(256) for pool, way in ways)
    return Memory(moves=on_the_way, finished=done, next_move=moves + 1)


def test_a_busy_fleet_fits() -> None:
    memory = busy(1_000)
    assert memory_value(memory_plain(memory)) == memory
    size = len(json.dumps(memory_plain(memory), separators=(",", ":")))
    assert size < 700_000, size


def test_what_does_not_fit_is_refused_before_anything_is_lost() -> None:
    memory = busy(MOST_MOVES)
    with pytest.raises(PermanentError, match="2000 moves") as caught:
        memory_plain(memory, at_most_bytes=400_000)
    assert caught.value.kind == "memory_too_large"


WRONG = [
    ({"moves": [{"id": "m-1"}]}, "missing_field", "moves[0].pool"),
    ({"finished": {"pool": ["a"], "at": []}}, "column_length", "finished"),
    ({"spared": [{"node": "n", "until": "2026-09-10T04:02:00+08:00"}]}, "bad_instant", "spared[0].until"),
    ({"sizes": [{"pool": "research/a", "nodes": 1}] * 2}, "duplicate_name", "sizes"),
    ({"sizes": [{"pool": "research/a", "nodes": 1.5}]}, "wrong_type", "sizes[0].nodes"),
    ({"nextMoves": 4}, "unknown_field", "nextMoves"),
]


@pytest.mark.parametrize(("plain", "kind", "field"), WRONG, ids=[kind for _, kind, _ in WRONG])
def test_a_damaged_memory_is_no_empty_one(plain: dict[str, object], kind: str, field: str) -> None:
    with pytest.raises(DocumentError) as caught:
        memory_value(plain, file="Schedule ebbtide/day: status.memory")
    assert (caught.value.kind, caught.value.place.field) == (kind, field)
    assert "ebbtide/day" in str(caught.value)
