"""From a backtest to the values of its page: tables of scores, timelines of the stretches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np
from whenever import Instant

from ebbtide.adapters.report.backtest import BacktestPage, ScoreTable
from ebbtide.adapters.report.figures import percent, share_kept, wait, whole
from ebbtide.adapters.report.timeline import PoolTimeline, Steps, StretchTimeline, WorkloadTimeline
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.pool import Pool
from ebbtide.fleet.workload import Workload
from ebbtide.simulate.fcfs import Capacity
from ebbtide.simulate.scoring import Score
from ebbtide.workflows.backtest_trial import EBBTIDE
from ebbtide.workflows.replay import Backtested, Tested

SHARES = (0.5, 0.95, 0.99)
HEADINGS = ("P50 wait", "P95 wait", "P99 wait", "within targets", "windows held")


def page_of(found: Backtested) -> BacktestPage:
    """Everything that the page says."""
    ours = next(one for one in found.policies if one.name == EBBTIDE)
    regret = found.regret(ours)
    total = ours.production_gpu_h + ours.moving_gpu_h + ours.research_gpu_h
    return BacktestPage(
        version=version("ebbtide"),
        fleet=found.fleet.name,
        time_zone=found.fleet.time_zone,
        headline=f"Research got {whole(ours.research_gpu_h)} of {whole(total)} GPU-hours; "
        f"{share_kept(ours.score.attained)} of requests kept their targets",
        lede=f"{found.days} day{'s' if found.days > 1 else ''} of demand replayed, planned on what came before; "
        f"seed {found.seed}."
        + ("" if regret is None else f" Regret against hindsight: {percent(regret, 1)} of production's GPU-hours."),
        remarks=tuple(_remarks(found)),
        policies=_policies(found),
        notes=tuple((one.name, "; ".join(dict.fromkeys(one.notes))) for one in found.policies),
        workloads=tuple(_workload(found, one) for one in found.fleet.workloads),
        stretches=tuple(_stretch(found, one) for one in found.tested),
    )


def _remarks(found: Backtested) -> Iterator[str]:
    yield (
        "Windows held are those of ebbtide's plan, on every day. Lost is research's work since its last checkpoint. "
        "Waits are simulated: arrivals at the trace's rates and burstiness, services as the Fleet says."
    )
    if found.unscored:
        yield (
            f"{whole(found.unscored)} of {whole(found.intervals)} intervals were not observed: replayed at "
            "interpolated rates, not scored."
        )
    yield (
        "Nodes and moves are those of a simulated world that ebbtide's controller ran"
        + ("." if found.troubles == "none" else f", with {found.troubles} troubles.")
        + " Reactive has nodes as its pods come, and is thereby flattered."
    )


def _policies(found: Backtested) -> ScoreTable:
    headings = (
        "policy",
        *HEADINGS,
        "production, GPU-h",
        "moving",
        "research",
        "lost",
        "moves",
        "regret",
    )
    rows = []
    for one in found.policies:
        regret = found.regret(one)
        hours = (one.production_gpu_h, one.moving_gpu_h, one.research_gpu_h, one.lost_gpu_h, one.moves)
        regret_text = "–" if regret is None else percent(regret, 1)
        rows.append((one.name, *_cells(one.score), *(whole(value) for value in hours), regret_text))
    return ScoreTable(caption="Policies", headings=headings, rows=tuple(rows))


def _workload(found: Backtested, workload: Workload) -> ScoreTable:
    rows = []
    for one in found.policies:
        rows.append((one.name, "all", *_cells(one.of_workload(workload.name)), whole(one.gpu_h[workload.name])))
        rows += [("", label, *_cells(score), "") for label, score in one.scores[workload.name].items()]
    return ScoreTable(caption=workload.name, headings=("policy", "window", *HEADINGS, "GPU-h"), rows=tuple(rows))


def _cells(score: Score) -> tuple[str, ...]:
    waits = (score.wait_s(share) for share in SHARES)
    return (
        *("–" if math.isnan(one) else wait(one) for one in waits),
        share_kept(score.attained),
        f"{score.held.sum()} of {score.cells.sum()}",
    )


def _stretch(found: Backtested, tested: Tested) -> StretchTimeline:
    zone = found.fleet.time_zone
    begin, end = (Instant.from_timestamp(at).to_tz(zone).date() for at in (tested.fold.start_s, tested.fold.end_s))
    days = max(round((tested.fold.end_s - tested.fold.start_s) / 86_400), 1)
    labels = tuple(_day_label(begin.add(days=day), several=days > 10) for day in range(days))
    return StretchTimeline(
        name=f"{begin} to {end.subtract(days=1)}" if days > 1 else str(begin),
        days=days,
        labels=labels,
        pools=tuple(_pool(found, tested, pool) for pool in found.fleet.pools),
        workloads=tuple(_waits(found, tested, one) for one in found.fleet.workloads),
    )


def _day_label(date: object, *, several: bool) -> str:
    text = str(date)
    return text[8:] if several else text[5:]


def _pool(found: Backtested, tested: Tested, pool: Pool) -> PoolTimeline:
    held = {
        name: next(one for one in given.pools if one.pool.name == pool.name) for name, given in tested.realised.items()
    }
    ours, gpus = held[EBBTIDE], float(pool.gpus_per_node)
    edges = ours.edges_s - tested.fold.start_s
    bands = [np.asarray(side * gpus, dtype=np.float64) for side in (ours.production, ours.moving, ours.research)]
    busy = [
        _busy(tested, one.name) * (one.gpus_per_replica / one.service.concurrency)
        for one in found.fleet.workloads_of(pool.name)
    ]
    first = found.fleet.workloads_of(pool.name)[0].name if busy else None
    same = first is not None and all(len(one) == len(busy[0]) for one in busy)
    return PoolTimeline(
        pool=pool.name,
        gpus=pool.nodes * gpus,
        production=Steps(edges_s=edges, values=bands[0]),
        moving=Steps(edges_s=edges, values=bands[1]),
        research=Steps(edges_s=edges, values=bands[2]),
        busy=Steps(edges_s=_intervals(tested, first), values=np.sum(busy, axis=0))
        if first is not None and same
        else Steps(edges_s=np.array([0.0, 1.0]), values=np.array([np.nan])),
        others=tuple(
            (name, _coarse(one.edges_s - tested.fold.start_s, one.production, gpus))
            for name, one in held.items()
            if name != EBBTIDE
        ),
        moves=ours.moves,
    )


def _coarse(edges_s: Floats, nodes: Ints, gpus: float) -> Steps:
    new = np.insert(np.diff(nodes) != 0, 0, True)
    return Steps(edges_s=np.append(edges_s[:-1][new], edges_s[-1]), values=nodes[new] * gpus)


def _busy(tested: Tested, workload: str) -> Floats:
    """Slots that demand keeps busy, by interval; NaN where it was not observed."""
    stream = tested.streams[workload]
    load: Floats = np.where(stream.scored, stream.rates_rps * stream.service_time_s, np.nan)
    return load


def _intervals(tested: Tested, workload: str) -> Floats:
    stream = tested.streams[workload]
    edges: Floats = np.linspace(stream.start_s, stream.end_s, len(stream.rates_rps) + 1) - tested.fold.start_s
    return edges


def _waits(found: Backtested, tested: Tested, workload: Workload) -> WorkloadTimeline:
    name = workload.name
    capacity: Capacity = tested.realised[EBBTIDE].capacity[name]
    wait_s = tested.waits_s[EBBTIDE][name]
    target = workload.targets[0]
    edges = np.append(tested.cells.starts_s, tested.cells.end_s) - tested.fold.start_s
    inside = capacity.starts_s < tested.fold.end_s
    starts = np.append(np.maximum(capacity.starts_s[inside], tested.fold.start_s), tested.fold.end_s)
    return WorkloadTimeline(
        workload=name,
        replicas=Steps(edges_s=starts - tested.fold.start_s, values=capacity.replicas[inside].astype(np.float64)),
        busy=Steps(edges_s=_intervals(tested, name), values=_busy(tested, name) / workload.service.concurrency),
        share=Steps(edges_s=edges, values=wait_s / target.bound_s),
        wait_s=wait_s,
        missed=tested.missed[EBBTIDE][name],
        measure=f"P{100 * target.percentile:g} wait, target {target.kind.value} {target.bound_s:g}s",
    )
