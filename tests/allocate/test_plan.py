"""From planned demand to a schedule: columns, hours, leads, shortages, dated and chosen windows, together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from whenever import Date, OffsetDateTime, Time

from ebbtide.allocate.dated import dated_timelines
from ebbtide.allocate.least_gpus import LeastPool
from ebbtide.allocate.least_gpus import least_gpus as fewest_nodes
from ebbtide.allocate.plan import explanation_of, plan, plan_fleet, silent
from ebbtide.allocate.reasons import workload_reasons
from ebbtide.errors import InputError
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Choose, DatedException, DayPattern, Weekday, Window, minute_of
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import Explanation, Provenance, Schedule
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload

AT = OffsetDateTime.parse_iso("2026-09-15T00:00:00+08:00")
UNTIL = OffsetDateTime.parse_iso("2026-09-29T00:00:00+08:00")
PROVENANCE = Provenance(
    version="0", at=AT, forecaster="made", confidence=0.5, supported_confidence=0.5, margin="× 1", demand=()
)
STARTS = (Time(0), Time(8), Time(18))
WEEKDAYS = DayPattern(days=WEEK[:5], starts=STARTS)
WEEKEND = DayPattern(days=WEEK[5:], starts=(Time(0), Time(12)))


def workload(name: str, gpus: int, **other: object) -> Workload:
    made = Workload(
        name=name,
        demand=DemandRef(source="made", key=name),
        pool="h100",
        gpus_per_replica=gpus,
        service=Service(time_s=10.0, scv=1.0),
        targets=(Target(kind=TargetKind.WAIT, bound_s=5.0),),
        balancing=Balancing.POOLED,
    )
    return replace(made, **other)


def fleet(*, nodes: int = 20, patterns: Sequence[DayPattern] = (), **other: object) -> Fleet:
    made = Fleet(
        name="made",
        digest="sha256:1",
        time_zone="Asia/Shanghai",
        confidence=0.5,
        patterns=tuple(patterns) or (DayPattern(days=WEEK, starts=STARTS),),
        pools=(Pool(name="h100", gpus_per_node=8, nodes=nodes, reserved_nodes=2, moves_at_once=2),),
        workloads=(workload("chat", 1), workload("agents", 2, startup_time_s=600.0)),
        research=Research(value_usd_per_gpu_h=2.0, value_given=True),
    )
    return replace(made, **other)


class Wave:
    """Demand by the hour: low at night, high in the afternoon, half at the weekend; exceptions by their factor."""

    def __init__(self, peak_rps: float = 3.0) -> None:
        self.peak_rps = peak_rps

    def __call__(self, name: str, window: Window, exception: DatedException | None) -> WindowDemand:
        first = minute_of(window.start) // 60
        hours = np.arange(first, first + max(1, round(window.nominal_hours))) + 0.5
        rates = self.peak_rps * (0.6 - 0.4 * np.cos((hours - 3.0) / 24.0 * 2 * np.pi))
        if not set(window.days) & set(WEEK[:5]):
            rates = rates / 2.0
        factor = 1.0 if exception is None else exception.demand_factor
        rates = rates * factor * (1.0 if name == "chat" else 0.5)
        ones = np.ones(len(rates))
        return WindowDemand(
            rates_rps=rates,
            scv=ones,
            offsets=np.array([0, len(rates)]),
            day=np.zeros(1, dtype=np.int64),
            days=1,
            value_rates_rps=rates,
            value_scv=ones,
            service_time_s=10.0,
            service_scv=1.0,
        )


def made_plan(of: Fleet, peak_rps: float = 3.0) -> tuple[Schedule, Explanation]:
    return plan(of, Wave(peak_rps), at=AT, valid_until=UNTIL, provenance=PROVENANCE)


def test_columns_fit_together() -> None:
    schedule, explanation = made_plan(fleet())
    pool = schedule.pools[0]
    assert [window.name for window in schedule.windows] == ["all-0000", "all-0800", "all-1800"]
    for k, production in enumerate(pool.production_nodes):
        assert production + pool.ephemeral_nodes[k] == 18
        assert pool.ephemeral_quota_gpus[k] == 8 * pool.ephemeral_nodes[k]
        held = [column.replicas[k] for column in schedule.workloads]
        assert held[0] + 2 * held[1] <= 8 * production
    for column in schedule.workloads:
        assert len(column.replicas) == len(column.holds_rps) == 3
        asked = [Wave()(column.name, window, None).rates_rps.max() for window in schedule.windows]
        assert all(held > 0.9 * rate for held, rate in zip(column.holds_rps, asked, strict=True))
    assert not explanation.shortages
    assert not explanation.warnings
    assert explanation.bound.unit == "USD per cycle"
    assert explanation.bound.gap == 0.0


def test_gpu_hours_are_those_of_the_fleet() -> None:
    schedule, explanation = made_plan(fleet())
    hours, nodes = explanation.gpu_hours_per_day, schedule.pools[0].production_nodes
    assert hours.production == pytest.approx(8 * sum(n * h for n, h in zip(nodes, (8, 10, 6), strict=True)))
    ups = sum(max(0, nodes[k] - nodes[k - 1]) for k in range(3))
    assert ups > 0
    assert hours.moving == pytest.approx(ups * 1.5 * 8)
    assert hours.production + hours.moving + hours.research == pytest.approx(20 * 8 * 24)
    assert hours.freed == pytest.approx(hours.static_nodes * 8 * 24 - hours.production - hours.moving)


def test_the_same_input_gives_the_same_schedule() -> None:
    assert made_plan(fleet())[0] == made_plan(fleet())[0]


def test_leads_begin_early_enough_for_moves_and_the_slowest_grower() -> None:
    pool = made_plan(fleet())[0].pools[0]
    for k in range(3):
        reclaimed = pool.production_nodes[k] - pool.production_nodes[k - 1]
        expected = math.ceil(reclaimed / 2) * 3600 + 600 if reclaimed > 0 else 0
        assert pool.lead_s[k] == expected


def test_a_short_fleet_answers_with_shortages() -> None:
    _, explanation = made_plan(fleet(nodes=6), peak_rps=4.0)
    assert explanation.shortages
    for shortage in explanation.shortages:
        assert shortage.attainment < shortage.required == 0.95
        assert shortage.missing_gpus > 0
        reason = explanation.reasons[shortage.workload][[0, 8, 18].index(int(shortage.window[-4:-2]))]
        assert reason.bound == "shortage"
        assert reason.given.attainment == pytest.approx(shortage.attainment)


def test_a_load_far_above_the_pool_says_all_that_it_lacks() -> None:
    schedule, explanation = made_plan(fleet(nodes=3, workloads=(workload("chat", 1),)), peak_rps=1200.0)
    missing = {one.window: one.missing_gpus for one in explanation.shortages}
    for k, window in enumerate(schedule.windows):
        demand = Wave(1200.0)("chat", window, None)
        load = float(demand.rates_rps.max()) * 10.0
        needed = missing[window.name] + schedule.workloads[0].replicas[k]
        assert load * 0.9 < needed < load + 5 * math.sqrt(load)
    assert max(missing.values()) > 8 * 8 * 3


def test_however_many_gpus_are_missing_they_are_counted() -> None:
    strict = Target(kind=TargetKind.WAIT, bound_s=0.001, percentile=0.99)
    lonely = workload("chat", 2, targets=(strict,), balancing=Balancing.RANDOM)
    schedule, explanation = made_plan(fleet(nodes=3, workloads=(lonely,)), peak_rps=12_000.0)
    for k, (one, window) in enumerate(zip(explanation.shortages, schedule.windows, strict=True)):
        # Queues of their own at 1 % load: 100 replicas for each of a hundred thousand erlangs, a rate-weighted mean.
        rates = Wave(12_000.0)("chat", window, None).rates_rps
        needed = one.missing_gpus / 2 + schedule.workloads[0].replicas[k]
        assert needed == pytest.approx(100.0 * 10.0 * (rates**2).sum() / rates.sum(), rel=1e-3)
        assert needed > 1_000_000


def test_a_target_out_of_reach_takes_what_makes_waiting_negligible_and_no_gpus_are_said_to_help() -> None:
    never = Target(kind=TargetKind.LATENCY, bound_s=12.0)
    near = replace(never, percentile=0.999 * -math.expm1(-1.2))

    def planned(target: Target) -> tuple[Schedule, Explanation]:
        return made_plan(fleet(workloads=(workload("chat", 1, targets=(target,)), workload("agents", 2))))

    schedule, explanation = planned(never)
    as_near, without = planned(near)
    assert not without.shortages
    assert schedule.workloads[0].replicas == as_near.workloads[0].replicas
    assert schedule.workloads[0].holds_rps == pytest.approx(as_near.workloads[0].holds_rps)
    assert min(schedule.workloads[0].holds_rps) > 0
    assert schedule.pools[0].production_nodes == as_near.pools[0].production_nodes
    assert [one.workload for one in explanation.shortages] == ["chat"] * 3
    for shortage in explanation.shortages:
        assert shortage.missing_gpus is None
        assert shortage.required == 0.95
        assert 0.998 * -math.expm1(-1.2) < shortage.attainment < -math.expm1(-1.2)


def test_work_that_is_not_served_waits_into_the_next_window_and_is_said() -> None:
    _, explanation = made_plan(fleet(nodes=5), peak_rps=4.0)
    assert any("wait over from the window before" in warning for warning in explanation.warnings)
    assert list(explanation.warnings) == sorted(explanation.warnings)


def test_a_week_of_two_patterns_is_planned_as_one_cycle() -> None:
    schedule, explanation = made_plan(fleet(patterns=[WEEKDAYS, WEEKEND]))
    nodes = schedule.pools[0].production_nodes
    assert len(nodes) == 5
    assert max(nodes[3:]) < max(nodes[:3])
    assert explanation.bound.gap == 0.0
    daily = 8 * (5 * sum(n * h for n, h in zip(nodes[:3], (8, 10, 6), strict=True)) + 2 * 12 * sum(nodes[3:])) / 7
    assert explanation.gpu_hours_per_day.production == pytest.approx(daily)


def test_dated_exceptions_get_windows_of_their_own() -> None:
    launch = DatedException(name="launch", start=Date(2026, 9, 18), until=Date(2026, 9, 20), demand_factor=1.3)
    holiday = DatedException(name="holiday", start=Date(2026, 9, 21), until=Date(2026, 9, 22), like=Weekday.SUN)
    past = replace(launch, name="past", start=Date(2026, 9, 1), until=Date(2026, 9, 2))
    later = replace(launch, name="later", start=Date(2026, 12, 1), until=Date(2026, 12, 2))
    of = fleet(patterns=[WEEKDAYS, WEEKEND], exceptions=(launch, holiday, past, later))
    schedule, explanation = made_plan(of)
    plain, _ = made_plan(fleet(patterns=[WEEKDAYS, WEEKEND]))
    dated = [window for window in schedule.windows if window.valid_from is not None]
    assert schedule.windows[:5] == plain.windows
    assert [window.name for window in dated] == [
        "launch-fri-0000",
        "launch-fri-0800",
        "launch-fri-1800",
        "launch-sat-0000",
        "launch-sat-1200",
        "holiday-0000",
        "holiday-1200",
    ]
    assert {(window.valid_from, window.valid_until) for window in dated[:5]} == {(launch.start, launch.until)}
    assert schedule.workloads[0].replicas[:5] == plain.workloads[0].replicas
    assert schedule.workloads[0].replicas[6] > plain.workloads[0].replicas[1]
    assert schedule.workloads[0].replicas[-2:] == plain.workloads[0].replicas[3:]
    assert len(explanation.reasons["chat"]) == len(schedule.windows)


def test_a_workload_that_the_exception_does_not_name_keeps_its_own_days() -> None:
    launch = DatedException(
        name="launch", start=Date(2026, 9, 18), until=Date(2026, 9, 19), like=Weekday.SUN, workloads=("chat",)
    )
    (dated,) = dated_timelines([WEEKDAYS, WEEKEND], [launch], after=Date(2026, 9, 15), before=Date(2026, 9, 29))
    assert dated.past_window(0, "chat").days == WEEK[5:]
    assert dated.past_window(0, "agents").days == (Weekday.FRI,)


def test_dated_exceptions_that_share_a_date_are_refused_by_name() -> None:
    week = DatedException(name="golden-week", start=Date(2026, 9, 18), until=Date(2026, 9, 25), like=Weekday.SUN)
    launch = DatedException(name="launch", start=Date(2026, 9, 24), until=Date(2026, 9, 26), demand_factor=1.8)
    with pytest.raises(InputError, match=r"golden-week and launch both hold on 2026-09-24") as refused:
        made_plan(fleet(exceptions=(launch, week)))
    assert refused.value.kind == "exceptions_overlap"
    behind = [
        replace(one, start=one.start.subtract(days=60), until=one.until.subtract(days=60)) for one in (week, launch)
    ]
    made_plan(fleet(exceptions=(*behind, replace(week, until=launch.start), launch)))


def test_chosen_windows_keep_their_limits_and_cost_no_more_than_given_ones() -> None:
    free = fleet(patterns=[DayPattern(days=WEEK, choose=Choose(at_most=3, shortest_s=7200.0))])
    schedule, explanation = made_plan(free)
    assert 1 <= len(schedule.windows) <= 3
    assert all(window.nominal_hours >= 2 for window in schedule.windows)
    _, given = made_plan(fleet())
    assert explanation.bound.objective <= given.bound.objective * (1 + 1e-9)
    assert explanation.bound.few_windows is not None
    assert explanation.bound.few_windows >= -1e-9


class Ripple(Wave):
    """Every other hour a little more than a replica fewer would hold."""

    def __call__(self, name: str, window: Window, exception: DatedException | None) -> WindowDemand:
        calm = super().__call__(name, window, exception)
        first = minute_of(window.start) // 60
        hours = np.arange(first, first + max(1, round(window.nominal_hours)))
        rates = np.where(hours % 2 == 0, 2.9, 3.0)
        return replace(calm, rates_rps=rates, value_rates_rps=rates)


def test_one_window_may_cost_less_than_the_finest_grid_where_every_hour_holds_alone() -> None:
    pool = Pool(name="h100", gpus_per_node=1, nodes=60, moves_at_once=2)
    patterns = [DayPattern(days=WEEK, choose=Choose(at_most=24, shortest_s=3600.0))]
    of = fleet(patterns=patterns, pools=(pool,), workloads=(workload("chat", 1),))
    schedule, explanation = plan(of, Ripple(), at=AT, valid_until=UNTIL, provenance=PROVENANCE)
    hourly = replace(of, patterns=(DayPattern(days=WEEK, starts=tuple(map(Time, range(24)))),))
    _, finest = plan(hourly, Ripple(), at=AT, valid_until=UNTIL, provenance=PROVENANCE)
    assert len(schedule.windows) == 1
    assert explanation.bound.few_windows is not None
    assert explanation.bound.few_windows < -0.01
    assert explanation.bound.few_windows == pytest.approx(explanation.bound.objective / finest.bound.objective - 1.0)


def test_chosen_windows_of_a_week_keep_given_patterns() -> None:
    free = fleet(patterns=[DayPattern(days=WEEK[:5], choose=Choose(at_most=2, shortest_s=6 * 3600.0)), WEEKEND])
    schedule, _ = made_plan(free)
    weekend = [window for window in schedule.windows if window.days == WEEK[5:]]
    assert [window.start for window in weekend] == [Time(0), Time(12)]
    assert 1 <= len(schedule.windows) - 2 <= 2


def test_local_search_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    free = fleet(patterns=[DayPattern(days=WEEK, choose=Choose(at_most=4, shortest_s=7200.0))])
    _, exact = made_plan(free)
    monkeypatch.setattr("ebbtide.allocate.choose.EXACT_CELLS", 0)
    _, local = made_plan(free)
    assert exact.bound.objective <= local.bound.objective * (1 + 1e-9) <= exact.bound.objective * 1.02


class Shifts(Wave):
    """One works from eight to eight, the other at night, both far above what the pool serves."""

    def __call__(self, name: str, window: Window, exception: DatedException | None) -> WindowDemand:
        calm = super().__call__(name, window, exception)
        first = minute_of(window.start) // 60
        hours = np.arange(first, first + max(1, round(window.nominal_hours))) % 24
        rates = np.where(((hours >= 8) & (hours < 20)) == (name == "chat"), 5.0, 0.0)
        return replace(calm, rates_rps=rates, value_rates_rps=rates)


@pytest.mark.parametrize("cells", [0, 30_000_000])
def test_of_boundaries_with_the_same_shortage_those_that_serve_most_are_chosen(
    monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    # Nobody is served in time wherever a window begins, and one window would be the cheapest; but in a window of both
    # the GPUs of the one idle while the other waits.
    monkeypatch.setattr("ebbtide.allocate.choose.EXACT_CELLS", cells)
    patterns = [DayPattern(days=WEEK, choose=Choose(at_most=3, shortest_s=7200.0))]
    two = (workload("chat", 1, min_replicas=0), workload("agents", 1, min_replicas=0))
    of = fleet(patterns=patterns, nodes=4, workloads=two)
    schedule, _ = plan(of, Shifts(), at=AT, valid_until=UNTIL, provenance=PROVENANCE)
    assert [window.start for window in schedule.windows] == [Time(8), Time(20)]
    assert [column.replicas for column in schedule.workloads] == [(16, 0), (0, 16)]


def test_static_peak_needs_every_peak_at_once_and_frees_no_more_than_there_is() -> None:
    patterns = [DayPattern(days=WEEK, starts=(Time(8), Time(20)))]
    two = (workload("chat", 1, min_replicas=0), workload("agents", 1, min_replicas=0))
    of = fleet(patterns=patterns, nodes=4, workloads=two)
    whole = plan_fleet(of, Shifts(), at=AT, valid_until=UNTIL)
    assert whole.cycle[0].replicas == ((16, 0), (0, 16))
    hours = explanation_of(whole, PROVENANCE).gpu_hours_per_day
    assert (hours.static_nodes, hours.static_missing_nodes) == (2, 2)
    assert hours.freed == pytest.approx(2 * 8 * 24 - hours.production - hours.moving) == pytest.approx(0.0)
    calm = plan_fleet(
        replace(of, pools=(Pool(name="h100", gpus_per_node=8, nodes=9, min_production_nodes=7),)),
        Wave(0.1),
        at=AT,
        valid_until=UNTIL,
    )
    assert (calm.cycle[0].static_needed_nodes, calm.cycle[0].static_nodes) == (7, 7)


def test_nodes_that_never_leave_are_no_move() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=9, min_production_nodes=7)
    two = tuple(replace(one, waiting_cost_usd_per_request_h=0.5) for one in fleet().workloads)
    kept = plan_fleet(fleet(pools=(pool,), workloads=two), Wave(0.5), at=AT, valid_until=UNTIL).cycle[0]
    assert kept.nodes == (7, 7, 7)
    assert kept.replicas_alone == kept.replicas
    assert kept.windows[1].allocation(4) != kept.replicas[1]


def test_what_windows_would_hold_by_themselves_is_what_they_hold_where_moves_are_free() -> None:
    costly = Pool(name="h100", gpus_per_node=8, nodes=30, yield_time_s=6 * 3600.0, reclaim_time_s=6 * 3600.0)
    free = replace(costly, yield_time_s=0.0, reclaim_time_s=0.0)
    research = Research(value_usd_per_gpu_h=2.0, value_given=True, checkpoint_interval_s=0.0)
    two = tuple(replace(one, waiting_cost_usd_per_request_h=0.5) for one in fleet().workloads)
    held, by_itself = (
        plan_fleet(fleet(pools=(pool,), workloads=two, research=research), Wave(), at=AT, valid_until=UNTIL).cycle[0]
        for pool in (costly, free)
    )
    assert held.replicas != by_itself.replicas
    assert held.replicas_alone == by_itself.replicas == by_itself.replicas_alone
    words = {reason.bound for w in range(2) for reason in workload_reasons(held, w)}
    assert "move" in words
    assert "move" not in {reason.bound for w in range(2) for reason in workload_reasons(by_itself, w)}
    assert held.static_nodes < 30


class Spike(Wave):
    """One busy hour: in a long window its share of the requests is small, and so is what the target asks for."""

    def __call__(self, name: str, window: Window, exception: DatedException | None) -> WindowDemand:
        first = minute_of(window.start) // 60
        hours = np.arange(first, first + round(window.nominal_hours)) % 24
        rates = np.where(hours == 14, 6.0, 2.0)
        calm = super().__call__(name, window, exception)
        return replace(calm, rates_rps=rates, value_rates_rps=rates)


def least_gpus_of(of: Fleet, demand_of: Wave | None = None) -> tuple[tuple[Window, ...], tuple[LeastPool, ...]]:
    return fewest_nodes(of, demand_of or Wave(), progress=silent)


def test_the_fewest_nodes_of_chosen_windows_are_just_enough() -> None:
    patterns = [DayPattern(days=WEEK, choose=Choose(at_most=3, shortest_s=7200.0))]
    spike = Spike()

    def shortages(nodes: int) -> int:
        of = fleet(patterns=patterns, nodes=nodes)
        return len(plan(of, spike, at=AT, valid_until=UNTIL, provenance=PROVENANCE)[1].shortages)

    large = fleet(patterns=patterns, nodes=40)
    windows, (least,) = least_gpus_of(large, spike)
    assert max(least.production_nodes) + 2 == least.nodes
    assert len(least.production_nodes) == len(windows) <= 3
    assert shortages(least.nodes) == 0
    assert shortages(least.nodes - 1) > 0
    assert max(plan_fleet(large, spike, at=AT, valid_until=UNTIL).cycle[0].nodes) + 2 > least.nodes


def test_the_fewest_nodes_are_just_enough() -> None:
    of = fleet()
    windows, (least,) = least_gpus_of(of)
    assert len(windows) == 3
    assert not least.unreachable
    enough = fleet(nodes=least.nodes)
    assert not made_plan(enough)[1].shortages
    assert made_plan(fleet(nodes=least.nodes - 1))[1].shortages
    assert least.gpus == 8 * least.nodes


def test_a_target_beyond_the_users_maximum_is_named_unreachable() -> None:
    of = fleet(workloads=(workload("chat", 1, max_replicas=3), workload("agents", 2)))
    _, (least,) = least_gpus_of(of)
    assert least.unreachable == ("chat",)


def test_a_target_that_no_number_of_replicas_meets_counts_as_far_as_it_can_be_met() -> None:
    never = Target(kind=TargetKind.LATENCY, bound_s=12.0, percentile=0.95)  # service alone is longer for 30 %
    _, (least,) = least_gpus_of(fleet(workloads=(workload("chat", 1, targets=(never,)), workload("agents", 2))))
    _, (without,) = least_gpus_of(fleet(workloads=(workload("agents", 2),)))
    assert least.unreachable == ("chat",)
    # service within 12 of a mean of 10 seconds: 1 − e^−1.2 of the requests, of which waiting may take a thousandth
    near = Target(kind=TargetKind.LATENCY, bound_s=12.0, percentile=0.999 * -math.expm1(-1.2))
    _, (enough,) = least_gpus_of(fleet(workloads=(workload("chat", 1, targets=(near,)), workload("agents", 2))))
    assert not enough.unreachable
    assert least.production_nodes == enough.production_nodes
    assert least.nodes > without.nodes


def test_a_pool_without_workloads_stays_with_research() -> None:
    spare = Pool(name="spare", gpus_per_node=4, nodes=3)
    of = fleet(pools=(*fleet().pools, spare))
    schedule, _ = made_plan(of)
    assert schedule.pools[1].production_nodes == (0, 0, 0)
    assert schedule.pools[1].ephemeral_nodes == (3, 3, 3)


def test_minimum_production_nodes_never_leave() -> None:
    pool = replace(fleet().pools[0], min_production_nodes=9)
    whole = plan_fleet(fleet(pools=(pool,)), Wave(), at=AT, valid_until=UNTIL)
    assert min(whole.cycle[0].nodes) >= 9
