"""What no plan can exceed: a linear relaxation by energies, proven from its dual multipliers (§5.11 for jobs).

In an interval [a, b] a job that is done in time on a hollow takes at least its energy there: GPUs times the shortest
overlap of its run with [a, b], over all starts between its first possible one and its last (energetic reasoning,
Erschler & Lopez 1990; Baptiste, Le Pape & Nuijten 2001, ch. 3). The energies of the jobs that are in time on a hollow
fit its GPU-hours. With fractions of jobs allowed that is a linear program; its rows are found as they are broken.

What is stated is not the solver's word: for any multipliers y >= 0 of the rows, the capacities weighed with y plus, job
by job, the best of nothing and value less weighed energies is an upper bound (weak duality). That sum is taken here.

What belongs here: the bound. What doesn't: plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.batch.hollows import Hollow
from ebbtide.batch.instance import Instance, Ints

Floats = NDArray[np.float64]
MARKS = 64  # ends of intervals: 64 give 2,016 of them
ROUNDS = 6
ROWS_A_ROUND = 250
METHOD = "linear relaxation by energies"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Options:
    """Jobs on hollows: option k is job ``job[k]`` on ``hollow[k]``, in ``[first_s, last_s]``, at least ``length_s``.

    A run without a break lies in one stay of its nodes: an option for each. One that may be interrupted has the stays
    of node ``node`` (−1: no break) for its time.
    """

    job: Ints
    hollow: Ints
    first_s: Floats
    last_s: Floats
    length_s: Floats
    gpus: Floats
    node: Ints


def value_bound(instance: Instance, values: Floats | None = None, *, rounds: int = ROUNDS) -> float:
    """An upper bound on the value of jobs done in time, over all plans of the instance.

    ``values`` replace the jobs' own (all at least 0). More ``rounds`` of rows make it no looser.
    """
    worth = instance.values_usd if values is None else values
    options = _options(instance)
    total = float(worth[np.unique(options.job)].sum()) if len(options.job) else 0.0
    if total <= 0:
        return 0.0
    marks = _marks(instance)
    first, last = (marks[index] for index in np.triu_indices(len(marks), k=1))
    energies = [_energies(instance, options, hollow, first, last) for hollow in range(len(instance.hollows))]
    capacity = [_capacity_gpu_s(hollow, first, last) for hollow in instance.hollows]
    return min(total, _relaxed(options, worth, energies, capacity, rounds))


def _options(instance: Instance) -> _Options:
    """What every way of every job could be."""
    rows = [
        (job, int(instance.way_hollow[way]), *option)
        for job in range(len(instance.jobs))
        for way in range(int(instance.way_first[job]), int(instance.way_first[job + 1]))
        for option in _spans(instance, job, way)
    ]
    columns = np.array(rows, dtype=float).reshape(len(rows), 7).T
    return _Options(
        job=columns[0].astype(np.int64),
        hollow=columns[1].astype(np.int64),
        first_s=columns[2],
        last_s=columns[3],
        length_s=columns[4],
        gpus=columns[5],
        node=columns[6].astype(np.int64),
    )


def _spans(instance: Instance, job: int, way: int) -> Iterator[tuple[float, float, float, float, int]]:
    """First start and last end of a way in the empty hollow, its length, its GPUs, and the node whose stays it has."""
    hollow = instance.hollows[int(instance.way_hollow[way])]
    per_node = hollow.gpus_per_node // int(instance.way_gpus[way])
    node = -(-int(instance.way_pods[way]) // per_node) - 1  # of any so many nodes, one is there no longer than this one
    length, gpus = float(instance.way_length_s[way]), float(instance.way_pods[way] * instance.way_gpus[way])
    release, latest = float(instance.release_s[job]), float(instance.latest_s[job])
    stays = [(max(start, release), min(end, latest)) for start, end in hollow.stays(node)]
    stays = [(start, end) for start, end in stays if start < end]
    for start, end in stays:
        if end - start >= length:
            yield start, end, length, gpus, -1
    if instance.way_loss_s[way] >= 0 and len(stays) > 1 and sum(end - start for start, end in stays) >= length:
        yield stays[0][0], stays[-1][1], length, gpus, node


def _marks(instance: Instance) -> Floats:
    """Ends of intervals: where hollows change, and quantiles of releases and deadlines."""
    edges = {edge for hollow in instance.hollows for edge in hollow.edges_s}
    instants = np.concatenate([instance.release_s, instance.latest_s]).astype(float)
    room = max(MARKS - len(edges), MARKS // 2)
    quantiles = np.quantile(instants, np.linspace(0.0, 1.0, room), method="nearest")
    few = sorted(edges)[:: -(-len(edges) // (MARKS // 2))] if len(edges) > MARKS // 2 else sorted(edges)
    return np.unique(np.concatenate([quantiles, np.array(few)]))


def _energies(instance: Instance, options: _Options, hollow: int, first: Floats, last: Floats) -> Floats:
    """GPU-seconds that each option takes at least in each interval, shape (intervals, options); 0 on other hollows."""
    found = np.zeros((len(first), len(options.job)))
    mine = np.flatnonzero(options.hollow == hollow)
    if len(mine) == 0:
        return found
    a, b = first[:, None], last[:, None]
    start, end, length = options.first_s[mine], options.last_s[mine], options.length_s[mine]
    left = np.minimum(b, start + length) - np.maximum(a, start)
    right = np.minimum(b, end) - np.maximum(a, end - length)
    overlap = np.minimum(left, right)
    for node in np.unique(options.node[mine]):
        if node >= 0:
            these = options.node[mine] == node
            here = _stayed(instance.hollows[hollow], int(node))
            before = here(np.maximum(a, start[these])) - here(start[these])
            after = here(end[these]) - here(np.minimum(b, end[these]))
            overlap[:, these] = length[these] - before - after
    found[:, mine] = np.maximum(overlap, 0.0) * options.gpus[mine]
    return found


def _stayed(hollow: Hollow, node: int) -> Callable[[Floats], Floats]:
    """How long a node has been there until an instant."""
    edges, filled = [hollow.edges_s[0]], [0.0]
    for start, end in hollow.stays(node):
        edges += [start, end]
        filled += [filled[-1], filled[-1] + end - start]
    return lambda at: np.interp(at, edges, filled)


def _capacity_gpu_s(hollow: Hollow, first: Floats, last: Floats) -> Floats:
    """GPU-seconds of a hollow in each interval."""
    edges = np.array(hollow.edges_s)
    filled = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.array(hollow.nodes) * hollow.gpus_per_node)])
    found: Floats = np.interp(last, edges, filled) - np.interp(first, edges, filled)
    return found


def _relaxed(options: _Options, worth: Floats, energies: list[Floats], capacity: list[Floats], rounds: int) -> float:
    """The least of the bounds that the rounds prove."""
    rows = np.zeros((0, len(options.job)))
    limits = np.zeros(0)
    share = np.ones(len(options.job))
    best = np.inf
    for _ in range(rounds):
        more, more_limits = _broken(energies, capacity, share)
        if len(more_limits) == 0:
            break
        rows, limits = np.vstack([rows, more]), np.concatenate([limits, more_limits])
        share, multipliers = _solved(options, worth, rows, limits)
        best = min(best, _dual(options, worth, rows, limits, multipliers))
        slack = multipliers <= 1e-12
        keep = ~slack | (rows @ share >= 0.98 * limits)
        rows, limits = rows[keep], limits[keep]
    return float(best) if np.isfinite(best) else float(worth.sum())


def _broken(energies: list[Floats], capacity: list[Floats], share: Floats) -> tuple[Floats, Floats]:
    """The rows that the shares break most, by the part by which they exceed, scaled to a capacity of 1."""
    found, limits, excess = [], [], []
    for energy, held in zip(energies, capacity, strict=True):
        over = energy @ share - held
        scale = np.maximum(held, 1.0)
        chosen = np.flatnonzero(over > 1e-6 * scale)
        found.append(energy[chosen] / scale[chosen, None])
        limits.append(held[chosen] / scale[chosen])
        excess.append(over[chosen] / scale[chosen])
    worst = np.argsort(-np.concatenate(excess), kind="stable")[:ROWS_A_ROUND]
    return np.vstack(found)[worst], np.concatenate(limits)[worst]


def _solved(options: _Options, worth: Floats, rows: Floats, limits: Floats) -> tuple[Floats, Floats]:
    """The relaxation's shares and its rows' multipliers."""
    from scipy.optimize import linprog  # half a second: imported only when used
    from scipy.sparse import csr_array, vstack

    jobs, place = np.unique(options.job, return_inverse=True)
    once = csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(len(jobs), len(place)))
    scale = max(float(worth.max()), 1e-300)
    found = linprog(
        -worth[options.job] / scale,
        A_ub=vstack([once, csr_array(rows)]),
        b_ub=np.concatenate([np.ones(len(jobs)), limits]),
        bounds=(0.0, None),
        method="highs",
    )  # type: ignore[call-overload] # the stubs know no sparse arrays
    if found.x is None:  # the solver gave up: no multipliers, no news
        return np.zeros(len(options.job)), np.zeros(len(limits))
    multipliers = np.maximum(-found.ineqlin.marginals[len(jobs) :], 0.0) * scale
    return np.asarray(found.x), multipliers


def _dual(options: _Options, worth: Floats, rows: Floats, limits: Floats, multipliers: Floats) -> float:
    """The bound that the multipliers prove."""
    gain = worth[options.job] - multipliers @ rows
    best = np.zeros(len(worth))
    np.maximum.at(best, options.job, gain)
    return float(multipliers @ limits + best.sum())
