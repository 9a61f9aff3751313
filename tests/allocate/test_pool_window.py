"""From planned demand to what m nodes give, against plain formulas and exhaustive search."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult

from ebbtide.allocate.packing_program import PackingProgram
from ebbtide.allocate.pool_window import PoolWindow, pool_windows
from ebbtide.errors import InputError
from ebbtide.fleet.planned import WindowDemand
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.queueing.station import Station

CONFIDENCE = 0.8
RESEARCH = Research(value_usd_per_gpu_h=2.0)


def workload(name: str = "chat", **changes: object) -> Workload:
    fields: dict[str, object] = {
        "name": name,
        "demand": DemandRef(source="log", key=name),
        "pool": "h100",
        "gpus_per_replica": 1,
        "service": Service(time_s=4.0, scv=1.0),
        "targets": (Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.9),),
        "balancing": Balancing.POOLED,
        "waiting_cost_usd_per_request_h": 1.0,
    }
    return Workload(**(fields | changes))


def demand(days: list[list[float]], service_time_s: float = 4.0, margin: float = 1.0) -> WindowDemand:
    """One scenario a day with the given rates; money on the same rates without the margin."""
    rates = np.array([rate for day in days for rate in day])
    bounds = np.cumsum([0, *[len(day) for day in days]])
    return WindowDemand(
        rates_rps=rates * margin,
        scv=np.ones(len(rates)),
        offsets=bounds,
        day=np.arange(len(days)),
        days=len(days),
        value_rates_rps=rates,
        value_scv=np.ones(len(rates)),
        service_time_s=service_time_s,
        service_scv=1.0,
    )


def windows_of(pool: Pool, workloads: list[Workload], demands: list[WindowDemand], hours: float = 2.0) -> PoolWindow:
    found = pool_windows(
        pool,
        tuple(workloads),
        tuple((one,) for one in demands),
        hours=np.array([hours]),
        research=RESEARCH,
        confidence=CONFIDENCE,
    )
    return found[0]


def erlang_c(servers: int, load: float) -> float:
    """Probability of waiting in M/M/c, by the textbook recursion of Erlang B."""
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    return servers * blocked / (servers - load * (1.0 - blocked))


def attained(servers: int, rate: float, service_s: float, bound_s: float) -> float:
    load = rate * service_s
    if servers <= load:
        return 0.0
    return 1.0 - erlang_c(servers, load) * math.exp(-(servers - load) / service_s * bound_s)


def attained_latency(servers: int, rate: float, service_s: float, bound_s: float) -> float:
    """P(W + S ≤ t) in M/M/c: W is 0 or exponential, S exponential, one integral over W by the midpoint rule."""
    load = rate * service_s
    if servers <= load:
        return 0.0
    late = erlang_c(servers, load)
    pace = (servers - load) / service_s
    edges = np.linspace(0.0, bound_s, 4001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    waits = np.exp(-pace * edges[:-1]) - np.exp(-pace * edges[1:])
    in_time = -np.expm1(-(bound_s - middle) / service_s)
    return (1.0 - late) * -math.expm1(-bound_s / service_s) + late * float(waits @ in_time)


def waiting(servers: int, rate: float, service_s: float, horizon_s: float) -> float:
    """rate · E[min(W, horizon)] in M/M/c."""
    load = rate * service_s
    if servers <= load:
        return rate * horizon_s
    pace = (servers - load) / service_s
    return rate * erlang_c(servers, load) / pace * (1.0 - math.exp(-pace * horizon_s))


class Brute:
    """The same problem by exhaustive search over all replicas, for widths that pack by volume.

    Where all that targets ask for (up to the maxima) fits, it is held; else only the minima are, and the order is
    shortage, unserved load, money.
    """

    def __init__(self, pool: Pool, workloads: list[Workload], demands: list[WindowDemand], hours: float) -> None:
        self.pool, self.workloads, self.demands, self.hours = pool, workloads, demands, hours

    def share(self, n: int, rates: np.ndarray, target: Target, service_s: float) -> float:
        """Share of a day's requests within the target."""
        within = attained if target.kind is TargetKind.WAIT else attained_latency
        shares = [within(n, rate, service_s, target.bound_s) for rate in rates]
        return float(np.dot(shares, rates) / rates.sum()) if rates.sum() else 1.0

    def planned_share(self, target: Target, service_s: float) -> float:
        """What is asked for; of a target that service alone (exponential) misses, 0.999 of what it leaves."""
        alone = 1.0 - math.exp(-target.bound_s / service_s)
        out_of_reach = target.kind is TargetKind.LATENCY and alone < target.percentile
        return 0.999 * alone if out_of_reach else target.percentile

    def deficit(self, w: int, n: int) -> float:
        one, planned, missing = self.workloads[w], self.demands[w], []
        for day in range(planned.days):
            rates = planned.rates_rps[planned.offsets[day] : planned.offsets[day + 1]]
            total = 0.0
            for target in one.targets:
                asked = self.planned_share(target, planned.service_time_s)
                total += max(0.0, asked - self.share(n, rates, target, planned.service_time_s))
            missing.append(total)
        held = math.ceil(CONFIDENCE * planned.days - 1e-9)
        return one.weight * float(planned.rates_rps.mean()) * sorted(missing)[held - 1] * self.hours

    def day_need(self, w: int, day: int) -> int:
        """Replicas that one day needs; needs are looked for up to eight times what the pool holds."""
        one, planned = self.workloads[w], self.demands[w]
        rates = planned.rates_rps[planned.offsets[day] : planned.offsets[day + 1]]
        most = 8 * (self.pool.max_production_nodes * self.pool.gpus_per_node // one.gpus_per_replica)

        def holds(n: int, target: Target) -> bool:
            asked = self.planned_share(target, planned.service_time_s)
            return self.share(n, rates, target, planned.service_time_s) >= asked

        return next((n for n in range(1, most + 1) if all(holds(n, one_of) for one_of in one.targets)), most + 1)

    def unserved(self, w: int, n: int) -> int:
        """What the deciding day asks beyond n replicas, in 2^-16 of the window's claim, rounded down."""
        planned = self.demands[w]
        days = [planned.rates_rps[a:b] for a, b in itertools.pairwise(planned.offsets)]
        hardest = sorted(range(len(days)), key=lambda day: (self.day_need(w, day), days[day].mean()))
        rates = days[hardest[math.ceil(CONFIDENCE * planned.days - 1e-9) - 1]]
        share = float(np.maximum(0.0, rates - n / planned.service_time_s).sum() / rates.sum())
        own = self.workloads[w].weight * float(planned.rates_rps.mean())
        claim = sum(
            one.weight * float(d.rates_rps.mean()) * len(one.targets)
            for one, d in zip(self.workloads, self.demands, strict=True)
        )
        return math.floor(share * own / claim * 65536 + 1e-6) if self.deficit(w, n) > 0.0 else 0

    def money(self, w: int, n: int) -> float:
        one, planned = self.workloads[w], self.demands[w]
        horizon_s = self.hours * 3600.0
        each = [waiting(n, rate, planned.service_time_s, horizon_s) for rate in planned.value_rates_rps]
        return one.waiting_cost_usd_per_request_h * float(np.mean(each))

    def held(self, w: int) -> int:
        one = self.workloads[w]
        need = next(n for n in range(200) if self.deficit(w, n) == 0.0)
        return min(max(need, one.min_replicas), one.max_replicas or 10**9)

    def answer(self) -> tuple[int, float, list[float]]:
        room = self.pool.max_production_nodes * self.pool.gpus_per_node
        held = [self.held(w) for w in range(len(self.workloads))]
        short = sum(n * one.gpus_per_replica for n, one in zip(held, self.workloads, strict=True)) > room
        if short:
            held = [one.min_replicas for one in self.workloads]
        tables = []
        for w, one in enumerate(self.workloads):
            top = min(room // one.gpus_per_replica, one.max_replicas or 10**9)
            tables.append(
                [
                    (n, self.deficit(w, n), self.money(w, n), self.unserved(w, n) if short else 0)
                    for n in range(held[w], top + 1)
                ]
            )
        found = []
        for rows in itertools.product(*tables):
            gpus = sum(row[0] * one.gpus_per_replica for row, one in zip(rows, self.workloads, strict=True))
            if gpus <= room:
                nodes = -(-gpus // self.pool.gpus_per_node)
                found.append(
                    (sum(row[1] for row in rows), nodes, sum(row[2] for row in rows), sum(row[3] for row in rows))
                )
        least = min(row[0] for row in found)
        claim = sum(
            one.weight * float(d.rates_rps.mean()) * len(one.targets) * self.hours
            for one, d in zip(self.workloads, self.demands, strict=True)
        )
        good = [row for row in found if row[0] <= least + 3e-9 * claim]
        good = [row for row in good if row[3] == min(other[3] for other in good)]
        money = [
            min((row[2] for row in good if row[1] <= m), default=math.inf)
            for m in range(self.pool.max_production_nodes + 1)
        ]
        return min(row[1] for row in good), least, money


rates = st.lists(st.lists(st.floats(0.05, 1.2), min_size=1, max_size=3), min_size=1, max_size=6)


@st.composite
def small_pools(draw) -> tuple[Pool, list[Workload], list[WindowDemand]]:
    pool = Pool(name="h100", gpus_per_node=4, nodes=draw(st.integers(1, 4)))
    workloads, demands = [], []
    for i in range(draw(st.integers(1, 3))):
        percentiles = draw(st.lists(st.sampled_from([0.5, 0.9, 0.95]), min_size=1, max_size=2))
        targets = tuple(
            Target(kind=TargetKind.WAIT, bound_s=draw(st.sampled_from([0.5, 2.0])), percentile=p) for p in percentiles
        )
        least = draw(st.integers(0, 1))
        workloads.append(
            workload(
                f"w{i}",
                gpus_per_replica=draw(st.sampled_from([1, 2, 4])),
                targets=targets,
                weight=draw(st.sampled_from([0.5, 1.0, 3.0])),
                waiting_cost_usd_per_request_h=draw(st.sampled_from([0.0, 0.5, 20.0])),
                min_replicas=least,
                max_replicas=draw(st.sampled_from([None, least + 1, 4])),
            )
        )
        demands.append(demand(draw(rates), margin=draw(st.sampled_from([1.0, 1.15]))))
    minima = sum(one.min_replicas * one.gpus_per_replica for one in workloads)
    if minima > pool.nodes * pool.gpus_per_node:
        pool = Pool(name="h100", gpus_per_node=4, nodes=3)
    return pool, workloads, demands


@settings(max_examples=60)
@given(small_pools())
def test_equals_exhaustive_search(fleet: tuple[Pool, list[Workload], list[WindowDemand]]) -> None:
    pool, workloads, demands = fleet
    found = windows_of(pool, workloads, demands)
    needed, shortage, money = Brute(pool, workloads, demands, 2.0).answer()
    assert found.shortage == pytest.approx(shortage, rel=1e-6, abs=1e-7)
    assert found.needed_nodes == needed
    value = pool.nodes * pool.gpus_per_node * RESEARCH.value_usd_per_gpu_h
    np.testing.assert_allclose(found.cost_usd_per_h, money, rtol=1e-6, atol=1e-6 * value)
    np.testing.assert_array_equal(found.bound_usd_per_h, found.cost_usd_per_h)


@settings(max_examples=25)
@given(small_pools(), st.sampled_from([3.0, 6.0]), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_target_out_of_reach_claims_no_more_than_can_be_met(
    fleet: tuple[Pool, list[Workload], list[WindowDemand]], bound_s: float, percentile: float
) -> None:
    pool, workloads, demands = fleet
    latency = Target(kind=TargetKind.LATENCY, bound_s=bound_s, percentile=percentile)  # service alone: 53 % or 78 %
    workloads = [replace(workloads[0], targets=(latency,)), *workloads[1:]]
    found = windows_of(pool, workloads, demands)
    needed, shortage, money = Brute(pool, workloads, demands, 2.0).answer()
    assert found.shortage == pytest.approx(shortage, rel=1e-5, abs=1e-6)
    assert found.needed_nodes == needed
    value = pool.nodes * pool.gpus_per_node * RESEARCH.value_usd_per_gpu_h
    np.testing.assert_allclose(found.cost_usd_per_h, money, rtol=1e-6, atol=1e-6 * value)


def test_the_last_replica_of_a_target_out_of_reach_is_worth_no_more_than_it_gives() -> None:
    hopeless = workload("hopeless", targets=(Target(kind=TargetKind.LATENCY, bound_s=4.0, percentile=0.99),))
    helped = workload("helped", targets=(Target(kind=TargetKind.LATENCY, bound_s=40.0, percentile=0.99),))
    found = windows_of(
        Pool(name="h100", gpus_per_node=4, nodes=4), [hopeless, helped], [demand([[1.5]]), demand([[1.6]])]
    )
    ceiling = 0.999 * (1.0 - math.exp(-1.0))

    def missing(first: int) -> float:
        ours = max(0.0, ceiling - attained_latency(first, 1.5, 4.0, 4.0))
        return 1.5 * ours + 1.6 * max(0.0, 0.99 - attained_latency(16 - first, 1.6, 4.0, 40.0))

    first = min(range(17), key=missing)
    assert found.allocation(4) == (first, 16 - first)
    assert found.shortage == pytest.approx(2.0 * missing(first), rel=1e-4)


def test_required_is_what_the_confidence_day_needs() -> None:
    # Five days, four of them must hold: the fourth smallest need. The wildest day is left out.
    days = [[0.5], [0.7], [0.9], [1.1], [9.0]]
    found = windows_of(Pool(name="h100", gpus_per_node=8, nodes=4), [workload()], [demand(days)])
    least = next(n for n in range(1, 50) if attained(n, 1.1, 4.0, 2.0) >= 0.9)
    assert found.required.tolist() == [least]
    assert found.floor.tolist() == [5]
    assert not found.short


def test_leftover_gpus_are_used_where_they_save_money() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=2)
    found = windows_of(pool, [workload()], [demand([[0.6]])])
    assert found.required[0] < 8
    assert found.allocation(1)[0] > found.required[0]
    free = windows_of(pool, [workload(waiting_cost_usd_per_request_h=0.0)], [demand([[0.6]])])
    assert free.allocation(1) == tuple(free.required.tolist())


def test_a_maximum_below_the_need_is_a_shortage_though_gpus_are_free() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=4)
    found = windows_of(pool, [workload(max_replicas=2)], [demand([[1.0]])])
    assert found.short
    assert found.shortage == pytest.approx(0.9 * 1.0 * 2.0, rel=1e-6)
    assert (found.needed_nodes, found.allocation(1)) == (1, (2,))
    assert found.reason(0, 2).bound == "maximum"
    assert found.reason(0, 2).refused is None


def test_a_wait_costs_no_longer_than_users_have_patience() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=4)
    found = windows_of(pool, [workload(patience_s=10.0)], [demand([[1.0]])])
    station = Station(replicas=2, arrival_rate_rps=1.0, service_time_s=4.0, patience_s=10.0)
    t = np.linspace(0.0, 10.0, 20_001)
    expected = float(np.trapezoid(station.wait_tail(t), t))  # E[min(W, 10 s)] at 1 request a second
    assert found.reason(0, 2).given.waiting == pytest.approx(expected, rel=1e-6)
    assert expected < 0.95 * float(station.mean_wait_s)


def test_minima_hold_even_when_short() -> None:
    pool = Pool(name="h100", gpus_per_node=4, nodes=1)
    busy = workload("busy", weight=100.0)
    idle = workload("idle", min_replicas=2)
    found = windows_of(pool, [busy, idle], [demand([[1.5]]), demand([[0.01]])])
    assert found.short
    assert found.allocation(1)[1] >= 2


def test_a_workload_that_can_hardly_be_served_keeps_all_gpus_that_serve_somebody() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=3)
    found = windows_of(pool, [workload(min_replicas=1)], [demand([[127.0 / 4.0] * 4] * 3)])
    assert found.short
    assert found.shortage == pytest.approx(0.9 * 127.0 / 4.0 * 2.0, rel=1e-6)  # nobody is served in time
    assert (found.needed_nodes, found.allocation(3)) == (3, (24,))


def test_of_two_that_cannot_be_stable_the_heavier_is_served_first() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=3)
    light, heavy = workload("light", weight=1.0), workload("heavy", weight=3.0)
    crowd = demand([[127.0 / 4.0] * 4] * 3)
    assert windows_of(pool, [light, heavy], [crowd, crowd]).allocation(3) == (1, 23)
    # Four times as fast, a replica of the light one serves 1 a second at weight 1, not ¼ at weight 3.
    fast = workload("light", service=Service(time_s=1.0, scv=1.0))
    assert windows_of(pool, [fast, heavy], [demand([[127.0] * 4] * 3, 1.0), crowd]).allocation(3) == (23, 1)


def test_minima_that_do_not_fit_are_the_users_error() -> None:
    pool = Pool(name="h100", gpus_per_node=8, nodes=2)
    three = workload(gpus_per_replica=5, min_replicas=3)
    with pytest.raises(InputError) as caught:
        windows_of(pool, [three], [demand([[0.1]])])
    assert caught.value.kind == "minima_do_not_fit"
    assert "24 GPUs" in str(caught.value) or "15 GPUs" in str(caught.value)


def test_a_window_without_demand_needs_only_the_minimum() -> None:
    empty = demand([[0.0, 0.0]])
    found = windows_of(Pool(name="h100", gpus_per_node=8, nodes=2), [workload(min_replicas=0)], [empty])
    assert (found.needed_nodes, found.shortage) == (0, 0.0)
    assert found.allocation(0) == (0,)
    reason = found.reason(0, 0)
    assert (reason.rate_rps, reason.target_share, reason.given.attainment) == (0.0, 0.0, 1.0)


ODD = [
    workload("a", gpus_per_replica=3, balancing=Balancing.RANDOM, patience_s=20.0),
    workload("b", gpus_per_replica=3, balancing=Balancing.RANDOM, waiting_cost_usd_per_request_h=0.0),
    workload("c", gpus_per_replica=5, balancing=Balancing.RANDOM, waiting_cost_usd_per_request_h=9.0, patience_s=20.0),
]


def odd_windows(nodes: int, windows: int = 24) -> tuple[PoolWindow, ...]:
    """Windows of widths 3, 3 and 5 on nodes of 16, with rates of a day; most are short on 12 nodes, one on 48."""
    rates = 2.0 - 1.6 * np.cos(np.arange(windows) / windows * 2.0 * np.pi)
    days = [[[demand([[scale * rate, 1.1 * scale * rate]]) for rate in rates]] for scale in (1.0, 0.4, 0.7)]
    return pool_windows(
        Pool(name="h100", gpus_per_node=16, nodes=nodes),
        tuple(ODD),
        [one for (one,) in days],
        hours=np.full(windows, 24.0 / windows),
        research=RESEARCH,
        confidence=CONFIDENCE,
    )


@pytest.mark.parametrize("nodes", [12, 48])
def test_widths_that_do_not_divide_the_node_ask_no_program(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table for the pool; there used to be a program for nearly every count of nodes in every window."""
    monkeypatch.setattr(PackingProgram, "solve", lambda *_, **__: pytest.fail("an integer program was asked"))
    found = odd_windows(nodes)
    assert 0 < sum(window.short for window in found) < len(found)
    assert all((np.diff(window.cost_usd_per_h[window.needed_nodes :]) <= 0.0).all() for window in found)


@pytest.mark.parametrize("nodes", [12, 48])
def test_a_solver_that_gives_up_leaves_a_plan_with_a_proven_bound(nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = odd_windows(nodes)
    monkeypatch.setattr("ebbtide.allocate.pool_window.packing_table", lambda *_: None)
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: OptimizeResult(status=4, x=None, message="no luck"))
    for one, best in zip(odd_windows(nodes), exact, strict=True):
        assert one.needed_nodes >= best.needed_nodes
        assert one.shortage_bound <= best.shortage * (1.0 + 1e-9)
        if one.shortage == best.shortage:
            held = slice(one.needed_nodes, None)
            assert (one.cost_usd_per_h[held] >= best.cost_usd_per_h[held] - 1e-9).all()
        if not best.short:
            assert (one.bound_usd_per_h <= best.cost_usd_per_h + 1e-9).all()


def test_an_allocation_below_the_needed_nodes_is_refused() -> None:
    found = windows_of(Pool(name="h100", gpus_per_node=1, nodes=9), [workload()], [demand([[1.0]])])
    with pytest.raises(ValueError, match="needs"):
        found.allocation(found.needed_nodes - 1)


class TestReason:
    """The why of one number (§5.12)."""

    pool = Pool(name="h100", gpus_per_node=8, nodes=4)

    def reason(self, given: int | None = None, **changes: object):
        found = windows_of(self.pool, [workload(**changes)], [demand([[1.0, 1.2]])])
        return found.reason(0, int(found.required[0]) if given is None else given), found

    def test_standings_follow_the_formulas(self) -> None:
        reason, found = self.reason()
        given = int(found.required[0])
        share = (attained(given, 1.0, 4.0, 2.0) + 1.2 * attained(given, 1.2, 4.0, 2.0)) / 2.2
        assert reason.given.attainment == pytest.approx(share, rel=1e-9)
        each = [np.mean([waiting(n, rate, 4.0, 7200.0) for rate in (1.0, 1.2)]) for n in (given - 1, given, given + 1)]
        assert reason.given.waiting == pytest.approx(each[1], rel=1e-9)
        assert reason.given.gain_usd_per_h == pytest.approx(each[0] - each[1], rel=1e-9)
        assert reason.refused is not None
        assert reason.refused.gain_usd_per_h == pytest.approx(each[1] - each[2], rel=1e-9)
        assert (reason.floor.replicas, reason.bound, reason.cost_usd_per_h) == (5, "target", 2.0)
        assert reason.rate_rps == pytest.approx(1.1)
        assert reason.peak_rps == pytest.approx(1.2)

    def test_share_of_the_target_is_below_one_from_the_need_on(self) -> None:
        reason, found = self.reason()
        assert reason.target_share <= 1.0
        fewer = found.reason(0, int(found.required[0]) - 1)
        assert fewer.target_share > 1.0
        assert fewer.bound == "shortage"

    @pytest.mark.parametrize(
        ("more", "changes", "word"),
        [  # the target needs 7, and 5 are stable
            (0, {"min_replicas": 20}, "minimum"),
            (0, {"min_replicas": 20, "max_replicas": 20}, "minimum"),
            (2, {}, "room"),
            (2, {"waiting_cost_usd_per_request_h": 1000.0}, "gain"),
            (2, {"max_replicas": 9, "waiting_cost_usd_per_request_h": 1000.0}, "maximum"),
            (-2, {"max_replicas": 5}, "maximum"),
            (-2, {}, "shortage"),
            (0, {"targets": (Target(kind=TargetKind.WAIT, bound_s=1e4, percentile=0.5),)}, "floor"),
        ],
    )
    def test_the_word_says_what_held_the_number(self, more: int, changes: dict[str, object], word: str) -> None:
        _, found = self.reason(**changes)
        reason = found.reason(0, int(found.required[0]) + more)
        assert reason.bound == word
        assert reason.least_replicas == (5 if word == "floor" else 7)

    def test_nodes_that_are_not_moved_hold_the_number(self) -> None:
        _, found = self.reason()
        cases = found.context.cases(0, np.zeros(1, dtype=np.int64))

        def word(given: int, alone: int) -> str:
            return cases.reasons(np.array([given]), np.array([alone]))[0].bound

        # By itself the window would give 8 on fewer nodes, or 10 on more.
        assert [word(9, 8), word(9, 9), word(9, 10)] == ["move", "room", "move"]
        assert [word(7, 10), word(7, 7), word(6, 10)] == ["move", "target", "shortage"]

    def test_no_least_count_is_said_where_none_is_known(self) -> None:
        never = Target(kind=TargetKind.LATENCY, bound_s=4.0, percentile=0.9)
        assert self.reason(targets=(never,))[0].least_replicas is None
        tiny = windows_of(Pool(name="h100", gpus_per_node=1, nodes=1), [workload()], [demand([[1.0]])])
        assert tiny.reason(0, 1).least_replicas == 7
        far = windows_of(Pool(name="h100", gpus_per_node=1, nodes=1), [workload()], [demand([[3.0]])])
        assert far.reason(0, 1).least_replicas is None
