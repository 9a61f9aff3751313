"""Who is let in when: the four jobs, the tide, promises that are kept (§7.4, §7.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchlab import H
from doorlab import Kueue, steps, wishes, work
from ebbtide.batch.admission import Verdict, Why
from ebbtide.batch.door.decide import decide
from ebbtide.batch.door.following import followed
from ebbtide.batch.door.ledger import Ledger, Ran
from ebbtide.batch.door.work import Stage, Told, Work
from ebbtide.batch.hollows import Hollow
from ebbtide.batch.plan import Promise

FOUR = steps((0, 1), flavor="fixed")


def decided(works: list[Work], hollows: list[Hollow], at_s: float = 0.0, before=None, ledger=Ledger()):  # noqa: B008 # frozen
    following = followed(before, works, hollows, at_s=at_s, ledger=ledger)
    return following, decide(following, works, hollows, at_s=at_s)


def test_four_jobs_on_four_gpus_are_two_and_two() -> None:
    here = Kueue(hollows=[FOUR])
    here.submit(*(work(f"t/{name}", wishes=wishes(3, deadline_s=8.0 * H)) for name in "abcd"))
    here.turn(0.0)
    assert [one.stage for one in here.works.values()] == [Stage.WAITING] * 2 + [Stage.HELD] * 2
    here.run(9 * H)
    assert sorted(here.started_s.values()) == [0, 0, 3 * H, 3 * H]
    assert max(here.ended_s.values()) <= 8 * H


def test_what_ends_early_lets_the_next_in_early_and_no_promise_moves() -> None:
    here = Kueue(hollows=[FOUR])
    here.submit(*(work(f"t/{name}", wishes=wishes(3, p90=4)) for name in "abcd"), hours=1)
    here.turn(0.0)
    promised = {name: one.told.promise for name, one in here.works.items()}
    here.run(9 * H)
    assert sorted(here.started_s.values()) == [0, 0, H, H]
    assert sorted(one.start_s for one in promised.values() if one) == [0, 0, 4 * H, 4 * H]
    assert all(one.moved_s is None for one in promised.values() if one)


def test_what_runs_long_moves_the_next_promise_for_a_reason() -> None:
    here = Kueue(hollows=[FOUR])
    here.submit(work("t/a", 4, wishes=wishes(3)), hours=5)
    here.submit(work("t/b", 4, wishes=wishes(1)))
    here.run(3.9 * H)
    promise = here.works["t/b"].told.promise
    assert promise is not None
    assert promise.start_s > 3 * H
    assert promise.reason == "its GPUs are not free then any more"
    here.run(9 * H, from_s=4 * H)
    assert here.started_s["t/b"] == pytest.approx(5 * H, abs=120)


def test_before_the_tide_turns_the_one_that_may_be_interrupted_runs_and_the_other_waits() -> None:
    here = Kueue(hollows=[steps((0, 1), (2, 0), (12, 1))])
    loose = work("t/loose", 4, flavors=("tide",), wishes=wishes(6, checkpoint_interval_s=600.0))
    here.submit(work("t/solid", 4, flavors=("tide",), wishes=wishes(6)), loose)
    here.run(1.0 * H)
    assert here.started_s == {"t/loose": 0.0}
    solid = here.works["t/solid"]
    assert solid.stage is Stage.HELD
    assert solid.told.promise is not None
    assert solid.told.promise.start_s >= 12 * H


@pytest.mark.parametrize(
    ("one", "verdict", "why"),
    [
        (work("t/a", 4, Stage.CHECKING, flavor="tide", wishes=wishes(1)), Verdict.READY, Why.ENDS_IN_TIME),
        (work("t/a", 4, Stage.CHECKING, flavor="tide", wishes=wishes(3)), Verdict.RETRY, Why.TIDE_TURNS_FIRST),
        (
            work("t/a", 4, Stage.CHECKING, flavor="tide", wishes=wishes(3, checkpoint_interval_s=60.0)),
            Verdict.READY,
            Why.PREEMPTIBLE,
        ),
        (work("t/a", 4, Stage.CHECKING, flavor="tide", wishes=None), Verdict.RETRY, Why.BAD_ANNOTATION),
        (work("t/a", 4, Stage.CHECKING, flavor="", wishes=wishes(3)), Verdict.READY, Why.NOT_OURS),
        (work("t/a", 4, Stage.CHECKING, flavor="gone", wishes=wishes(1)), Verdict.RETRY, Why.NO_NODES),
    ],
)
def test_the_check_without_a_plan(one: Work, verdict: Verdict, why: Why) -> None:
    _, decision = decided([one], [steps((0, 1), (2, 0), (12, 1))])
    (answer,) = decision.answers
    assert (answer.admission.verdict, answer.admission.why) == (verdict, why)
    assert [move.to_live for move in decision.moves] == ([False] if verdict is Verdict.RETRY else [])


def test_a_retry_stays_in_its_queue_where_no_held_one_is_named() -> None:
    one = work("t/a", 4, Stage.CHECKING, flavor="tide", wishes=wishes(3), can_be_held=False)
    _, decision = decided([one], [steps((0, 1), (2, 0))])
    assert decision.answers[0].admission.verdict is Verdict.RETRY
    assert decision.moves == ()


def test_what_was_planned_is_not_refused_for_the_seconds_on_its_way() -> None:
    tide = [steps((0, 1), (2, 0), (12, 1))]
    planned = work("t/a", 4, flavors=("tide",), wishes=wishes(2))
    following, decision = decided([planned], tide)
    (note,) = decision.notes
    assert [move.work.name for move in decision.moves] == ["t/a"]
    told = Told(promise=note.planned.promise, flavor="tide")
    late = [Hollow(pool="tide", tenure=tide[0].tenure, gpus_per_node=4, edges_s=(90, 2 * H, 12 * H), nodes=(1, 0))]
    checking = replace(planned, stage=Stage.CHECKING, flavor="tide", told=told)
    _, now = decided([checking], late, 90.0, following)
    assert now.answers[0].admission.verdict is Verdict.READY
    _, stranger = decided([replace(checking, told=Told())], late, 90.0, following)
    assert stranger.answers[0].admission.verdict is Verdict.RETRY


def test_whole_nodes_of_others_are_not_given_twice() -> None:
    """One node stays after two hours; who runs there for ten must not be interrupted, so nobody else may stay."""
    tide = [steps((0, 2), (2, 1), (24, 2))]
    runs = work("t/runs", 4, Stage.RUNNING, flavor="tide", wishes=wishes(10))
    asks = work("t/asks", 4, Stage.CHECKING, flavor="tide", wishes=wishes(3))
    _, decision = decided([runs, asks], tide)
    assert decision.answers[0].admission.why is Why.TIDE_TURNS_FIRST
    _, alone = decided([asks], tide)
    assert alone.answers[0].admission.why is Why.ENDS_IN_TIME


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (work("t/a", wishes=None, problem="ebbtide.dev/duration is bad"), "ebbtide.dev/duration is bad"),
        (work("t/a", wishes=replace(wishes(), duration=None)), "nobody says how long"),
        (work("t/a", flavors=()), "no flavor of the Fleet"),
    ],
)
def test_what_cannot_be_planned_waits_and_is_told_why(one: Work, words: str) -> None:
    _, decision = decided([one, work("t/other")], [FOUR])
    assert [move.work.name for move in decision.moves] == ["t/other"]
    problems = {note.work.name: note.problem for note in decision.notes}
    assert words in problems["t/a"]
    assert problems["t/other"] == ""


def test_a_length_that_nobody_said_is_the_teams_usual_one() -> None:
    unsaid = work("t/a", 4, wishes=replace(wishes(), duration=None))
    following, decision = decided([unsaid], [FOUR], ledger=ledger_of(2.0))
    assert [move.work.name for move in decision.moves] == ["t/a"]
    assert following.plan.by_name["t/a"].place.finish_s == 2 * H


def test_an_estimate_is_corrected_by_what_the_teams_runs_took() -> None:
    following, _ = decided([work("t/a", 4, wishes=wishes(2))], [FOUR], ledger=ledger_of(1.5))
    assert following.plan.by_name["t/a"].place.finish_s == 3 * H
    stranger = work("t/a", 4, team="other/live", wishes=wishes(2))
    unmoved, _ = decided([stranger], [FOUR], ledger=ledger_of(1.5))
    assert unmoved.plan.by_name["t/a"].place.finish_s == 2 * H


def test_a_promise_is_not_broken_by_what_others_took_since() -> None:
    works = [work(f"t/{name}", 4, wishes=wishes(2)) for name in "ab"]
    first, _ = decided(works, [FOUR])
    again, _ = decided([*works, work("t/c", 1)], [_from(FOUR, 1.0)], 1.0, first, ledger_of(1.5))
    assert again.plan.by_name["t/b"].promise == first.plan.by_name["t/b"].promise


def ledger_of(hours: float) -> Ledger:
    """Nine runs of the team, said to take an hour."""
    runs = [Ran(uid=str(k), team="team/live", said_s=1.0 * H, real_s=hours * H, ended_s=float(k)) for k in range(9)]
    return Ledger().told(runs)


def test_a_job_wider_than_the_fleet_is_told_so() -> None:
    _, decision = decided([work("t/wide", 8)], [FOUR])
    (note,) = decision.notes
    assert note.planned.place is None
    assert decision.moves == ()


def test_work_without_gpus_waits_for_its_own_wish_alone() -> None:
    none = work("t/cpu", pods=0, gpus_per_pod=0, flavors=())
    later = replace(none, name="t/later", wishes=wishes(earliest_start_s=5.0))
    _, decision = decided([none, later], [FOUR])
    assert [move.work.name for move in decision.moves] == ["t/cpu"]
    assert decision.notes == ()


def test_nothing_changed_nothing_is_planned_anew() -> None:
    works = [work(f"t/{name}", 4) for name in "ab"]
    first, _ = decided(works, [FOUR])
    again, _ = decided(works, [steps((0, 1), flavor="fixed")], 1.0, first)
    assert again is first


def test_after_a_restart_the_promises_on_the_workloads_stand() -> None:
    works = [work(f"t/{name}", 4, wishes=wishes(3)) for name in "abc"]
    following, decision = decided(works, [FOUR])
    told = [
        replace(one.work, told=Told(promise=one.planned.promise, flavor="fixed", finish_s=one.planned.place.finish_s))
        for one in decision.notes
    ]
    # Another was submitted meanwhile, more urgent than all: it must not take what was promised.
    urgent = work("t/urgent", 4, wishes=wishes(1, deadline_s=2.0 * H))
    running = replace(told[0], stage=Stage.RUNNING, flavor="fixed", since_s=0.0)
    again = followed(None, [running, *told[1:], urgent], [_from(FOUR, 60.0)], at_s=60.0)
    for name in ("t/b", "t/c"):
        assert again.plan.by_name[name].promise == following.plan.by_name[name].promise
    assert again.plan.by_name["t/urgent"].place.start_s >= 9 * H


def test_a_start_that_is_a_moment_late_moves_no_promise_and_yields_to_nobody() -> None:
    works = [work(f"t/{name}", 4, wishes=wishes(3)) for name in "ab"]
    following, decision = decided(works, [FOUR])
    told = {note.work.name: Told(promise=note.planned.promise, flavor="fixed") for note in decision.notes}
    late_s = 3 * H + 2.0
    urgent = work("t/urgent", 4, wishes=wishes(0.5, deadline_s=3.6 * H))
    held = [replace(works[1], told=told["t/b"]), urgent]
    again, now = decided(held, [_from(FOUR, late_s)], late_s, following)
    assert [move.work.name for move in now.moves] == ["t/b"]
    assert again.plan.by_name["t/b"].promise == told["t/b"].promise


def test_what_was_let_in_keeps_its_gpus_until_kueue_admits_it() -> None:
    """Early, and after a restart: its promise is for later, but it may start at any moment."""
    promise = Promise(start_s=3.0 * H, given_s=0.0)
    let_in = work("t/a", 4, Stage.WAITING, wishes=wishes(3), told=Told(promise=promise, flavor="fixed"))
    urgent = work("t/urgent", 4, wishes=wishes(0.5, deadline_s=0.6 * H))
    _, now = decided([let_in, urgent], [_from(FOUR, 5.0)], 5.0)
    assert now.moves == ()


def test_what_runs_longer_than_planned_is_seen_at_once() -> None:
    works = [work("t/a", 4, Stage.RUNNING, flavor="fixed", wishes=wishes(3)), work("t/b", 4)]
    following, _ = decided(works, [FOUR], 3 * H - 60.0)
    assert following.plan.by_name["t/b"].place.start_s == 3 * H
    again, now = decided(works, [_from(FOUR, 3 * H + 1.0)], 3 * H + 1.0, following)
    assert now.moves == ()
    assert again.plan.by_name["t/b"].place.start_s > 3 * H + 1.0


def _from(hollow: Hollow, at_s: float) -> Hollow:
    return replace(hollow, edges_s=(at_s, *hollow.edges_s[1:]))


def test_running_work_on_nodes_that_are_gone_holds_nothing() -> None:
    lost = work("t/lost", 8, Stage.RUNNING, flavor="fixed", wishes=wishes(3))
    following, decision = decided([lost, work("t/next", 4)], [FOUR])
    assert [move.work.name for move in decision.moves] == ["t/next"]
    assert "t/lost" not in following.plan.by_name


@st.composite
def days(draw: st.DrawFn) -> Kueue:
    """A few jobs of all kinds on a reserved and an ephemeral flavor, submitted over some hours."""
    hours = sorted(draw(st.sets(st.integers(2, 30), max_size=4)))
    counts = draw(st.lists(st.integers(0, 2), min_size=len(hours) + 1, max_size=len(hours) + 1))
    tide = steps(*zip([0, *hours], counts, strict=True))
    here = Kueue(hollows=[steps((0, draw(st.integers(0, 1))), flavor="fixed"), tide])
    for number in range(draw(st.integers(1, 7))):
        loose = draw(st.booleans())
        length_h = draw(st.sampled_from([0.5, 1.0, 2.5, 6.0]))
        one = work(
            f"t/{number}",
            draw(st.integers(1, 4)),
            draw(st.sampled_from([Stage.HELD, Stage.HELD, Stage.WAITING])),
            flavors=draw(st.sampled_from([("fixed",), ("fixed", "tide"), ("tide",)])),
            wishes=wishes(
                length_h,
                p90=length_h * draw(st.sampled_from([1.0, 1.5])),
                deadline_s=draw(st.none() | st.integers(1, 30).map(lambda hour: float(hour * H))),
                checkpoint_interval_s=600.0 if loose else None,
            ),
        )
        here.submit(one, hours=length_h * draw(st.sampled_from([0.5, 1.0])))
    return here


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(here=days())
def test_whatever_comes_nothing_solid_is_on_nodes_that_leave_and_no_promise_moves_without_a_reason(here: Kueue) -> None:
    tide = here.hollows[1]
    promises: dict[str, object] = {}
    for minute in range(0, 34 * 60, 20):
        at_s = minute * 60.0
        here.admit(at_s)
        here.turn(at_s)
        here.admit(at_s)
        here.turn(at_s)
        solid = [
            one
            for one in here.works.values()
            if one.stage is Stage.RUNNING and one.flavor == "tide" and one.wishes.checkpoint_interval_s is None
        ]
        assert sum(one.gpus for one in solid) <= 4 * tide.nodes_at(at_s)
        for name, one in here.works.items():
            before, now = promises.get(name), one.told.promise
            if before is not None and now is not None and now.start_s != before.start_s:
                assert now.reason
                assert now.moved_s == at_s
            promises[name] = now
