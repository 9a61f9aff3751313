"""The ledger: each run once, the last ones of every team, no correction by few runs or by more than fourfold."""

from __future__ import annotations

from ebbtide.batch.door.ledger import ENOUGH, KEPT, LARGEST, Ledger, Ran
from ebbtide.batch.durations import Duration

SAID = Duration.usual(100.0)


def ran(k: int, real_s: float = 150.0, *, team: str = "t", said_s: float | None = 100.0) -> Ran:
    return Ran(uid=f"{team}{k}", team=team, said_s=said_s, real_s=real_s, ended_s=float(k))


def test_each_run_counts_once_and_the_last_ones_of_every_team_stay() -> None:
    ledger = Ledger().told([ran(k) for k in range(KEPT + 5)]).told([ran(KEPT), ran(0, team="u")])
    assert [one.ended_s for one in ledger.of("t")] == [float(k) for k in range(5, KEPT + 5)]
    assert len(ledger.of("u")) == 1


def test_few_runs_correct_nothing() -> None:
    few = Ledger().told([ran(k) for k in range(ENOUGH - 1)])
    assert (few.corrected("t", SAID), few.usual("t")) == (SAID, None)
    enough = few.told([ran(ENOUGH)])
    assert enough.corrected("t", SAID).expected_s == 150.0
    assert enough.usual("t") is not None
    assert enough.corrected("u", SAID) == SAID


def test_no_correction_is_larger_than_fourfold() -> None:
    slow = Ledger().told([ran(k, 1e6) for k in range(9)])
    quick = Ledger().told([ran(k, 1e-3) for k in range(9)])
    assert slow.corrected("t", SAID).expected_s == 100.0 * LARGEST
    assert quick.corrected("t", SAID).expected_s == 100.0 / LARGEST


def test_runs_that_nobody_said_anything_of_teach_the_usual_length_alone() -> None:
    unsaid = Ledger().told([ran(k, 60.0, said_s=None) for k in range(9)])
    assert unsaid.corrected("t", SAID) == SAID
    assert unsaid.usual("t").expected_s == 60.0
