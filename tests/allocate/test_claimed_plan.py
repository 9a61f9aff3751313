"""Plans on claims: n replicas hold n times the rate; waits are not observed; workloads without claims plan as ever."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isnan

import numpy as np
import pytest
from whenever import OffsetDateTime, Time

from ebbtide.allocate.least_gpus import least_gpus
from ebbtide.allocate.plan import plan, silent
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DatedException, DayPattern, Window, minute_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Explanation, Provenance, Schedule, facts_of
from ebbtide.fleet.workload import Claimed, DemandRef, Service, Target, TargetKind, Workload

AT = OffsetDateTime.parse_iso("2026-09-15T00:00:00+08:00")
PROVENANCE = Provenance(
    version="0", at=AT, forecaster="made", confidence=0.5, supported_confidence=0.5, margin="× 1", demand=()
)
HELD_RPS = 9.6
PEAKS_RPS = {0: 31.0, 8: 96.0, 18: 57.7}  # 96 is ten times 9.6, exactly


def workload(name: str, gpus: int, service: Service, **other: object) -> Workload:
    made = Workload(
        name=name,
        demand=DemandRef(source="made", key=name),
        pool="h100",
        gpus_per_replica=gpus,
        service=service,
        targets=(Target(kind=TargetKind.LATENCY, bound_s=9.0),),
    )
    return replace(made, **other)


CLAIMED = Service(time_s=None, claim=Claimed(name="chat", holds_rps=HELD_RPS))
CHAT = workload("chat", 1, CLAIMED)
OTHER = workload("other", 1, Service(time_s=0.2, scv=1.0))


def fleet(*workloads: Workload, nodes: int = 10) -> Fleet:
    return Fleet(
        name="made",
        digest="sha256:1",
        time_zone="Asia/Shanghai",
        confidence=0.5,
        patterns=(DayPattern(days=WEEK, starts=(Time(0), Time(8), Time(18))),),
        pools=(Pool(name="h100", gpus_per_node=8, nodes=nodes, reserved_nodes=1, moves_at_once=8),),
        workloads=workloads,
        research=Research(value_usd_per_gpu_h=2.0, value_given=True),
    )


class Steps:
    """Flat demand in every window but for a quarter of an hour at its peak."""

    def __init__(self, of: Fleet, calm: float = 0.4) -> None:
        self.fleet, self.calm = of, calm

    def __call__(self, name: str, window: Window, exception: DatedException | None) -> WindowDemand:
        peak = PEAKS_RPS[minute_of(window.start) // 60]
        calm = self.calm * peak
        rates, ones = np.array([calm, peak, calm, 0.0 if self.calm < 1.0 else peak]), np.ones(4)
        return WindowDemand(
            rates_rps=rates,
            scv=ones,
            offsets=np.array([0, 4]),
            day=np.zeros(1, dtype=np.int64),
            days=1,
            value_rates_rps=rates,
            value_scv=ones,
            service_time_s=self.fleet.workload(name).service.planned_time_s,
            service_scv=1.0,
        )


def made(of: Fleet, calm: float = 0.4) -> tuple[Schedule, Explanation]:
    return plan(of, Steps(of, calm), at=AT, valid_until=AT, provenance=PROVENANCE)


def test_each_window_has_what_its_highest_rate_needs() -> None:
    schedule, explanation = made(fleet(CHAT))
    (column,) = schedule.workloads
    needs = [ceil(peak / HELD_RPS - 1e-9) for peak in PEAKS_RPS.values()]
    assert needs == [4, 10, 7]
    assert list(column.replicas) == needs
    assert column.holds_rps == pytest.approx([HELD_RPS * n for n in needs])
    assert explanation.shortages == ()
    assert explanation.bound.gap == pytest.approx(0.0, abs=1e-9)
    for reason, need in zip(explanation.reasons["chat"], needs, strict=True):
        assert (reason.bound, reason.least_replicas) == ("target", need)
        assert isnan(reason.target_share)
        assert isnan(reason.given.wait_s)
        assert isnan(reason.given.waiting)
        assert reason.given.attainment == pytest.approx(0.95)
        assert reason.refused is not None
        assert (reason.refused.replicas, reason.refused.gain_usd_per_h) == (need + 1, 0.0)


def test_flat_demand_is_held_by_the_target_for_a_claim_knows_no_floor() -> None:
    _, explanation = made(fleet(CHAT), calm=1.0)
    assert {reason.bound for reason in explanation.reasons["chat"]} == {"target"}


def test_the_others_are_planned_as_without_it() -> None:
    alone, beside = made(fleet(OTHER)), made(fleet(OTHER, CHAT))
    assert beside[0].workloads[0] == alone[0].workloads[0]
    assert beside[1].reasons["other"] == alone[1].reasons["other"]


def test_minimum_and_maximum_hold() -> None:
    schedule, explanation = made(fleet(replace(CHAT, min_replicas=6, max_replicas=8)))
    assert list(schedule.workloads[0].replicas) == [6, 8, 7]
    assert [reason.bound for reason in explanation.reasons["chat"]] == ["minimum", "maximum", "target"]
    (short,) = explanation.shortages
    assert (short.missing_gpus, short.required) == (2, 0.95)
    # Of 96 + 2 × 38.4 requests a second those at the lower rate are held.
    assert short.attainment == pytest.approx(0.95 * 76.8 / 172.8)
    assert isnan(short.wait_s)


def test_a_short_fleet_says_how_many_gpus_are_missing() -> None:
    schedule, explanation = made(fleet(replace(CHAT, gpus_per_replica=4), nodes=4))
    assert max(schedule.workloads[0].replicas) == 6  # three nodes of 8
    assert {short.missing_gpus for short in explanation.shortages} == {4, 16}


def test_where_nobody_comes_nobody_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEAKS_RPS, 0, 0.0)
    schedule, explanation = made(fleet(replace(CHAT, min_replicas=0)))
    assert list(schedule.workloads[0].replicas) == [0, 10, 7]
    assert schedule.workloads[0].holds_rps[0] == 0.0
    assert explanation.shortages == ()


def test_a_shortage_says_nothing_of_a_backlog() -> None:
    _, explanation = made(fleet(replace(CHAT, max_replicas=2)))
    assert len(explanation.shortages) == 3
    assert not [line for line in explanation.warnings if "backlog" in line or "wait over" in line]


def test_the_fewest_nodes() -> None:
    of = fleet(replace(CHAT, gpus_per_replica=4))
    _, (pool,) = least_gpus(of, Steps(of), progress=silent)
    assert pool.nodes == 5 + 1  # ten replicas of 4 on nodes of 8; one reserved


def test_half_the_rate_takes_twice_the_replicas() -> None:
    half = replace(CHAT, service=replace(CLAIMED, claim=Claimed(name="chat", holds_rps=HELD_RPS / 2)))
    schedule, _ = made(fleet(half))
    assert list(schedule.workloads[0].replicas) == [7, 20, 13]


def test_the_facts_say_what_a_replica_holds() -> None:
    facts = facts_of(fleet(CHAT, OTHER))
    assert (facts["chat"].replica_holds_rps, facts["other"].replica_holds_rps) == (HELD_RPS, None)


def test_a_claim_that_was_not_read_is_never_planned_on() -> None:
    of = fleet(replace(CHAT, service=Service(time_s=None, claim=Claimed(name="chat"))))
    with pytest.raises(ValueError, match="was not read"):
        made(of)
