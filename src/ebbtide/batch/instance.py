"""Jobs and hollows as arrays: what the compiled list scheduler reads.

What belongs here: numbering jobs, nodes and ways to run, rounding times to whole seconds the safe way (starts and
lengths up, ends down). What doesn't: the order in which jobs are placed (``rules``), placing itself (``kernels``).

A *way* is a job's shape on one hollow, with its planned length: the quantile of its duration at the planned confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.job import Job

Ints = NDArray[np.int64]
PLANNED_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """A planning problem. Job i has ways ``way_first[i]:way_first[i+1]``; instants and lengths in whole seconds.

    ``latest_s[i]``: its planned end must not be later (its deadline, else the horizon's end). Node k belongs to hollow
    ``node_hollow[k]``; hollow h has nodes ``hollow_first[h]:hollow_first[h+1]``. Node k is there in the stretches
    ``stay_first[k]:stay_first[k+1]`` of ``stay_start_s``, ``stay_end_s``. ``way_loss_s``: what an interruption costs at
    most, −1 where the way must not be interrupted. Job i comes after ``after[after_first[i]:after_first[i+1]]``.
    """

    jobs: tuple[Job, ...]
    hollows: tuple[Hollow, ...]
    at_s: int
    until_s: int
    confidence: float
    release_s: Ints
    latest_s: Ints
    way_first: Ints
    way_hollow: Ints
    way_shape: Ints
    way_pods: Ints
    way_gpus: Ints
    way_length_s: Ints
    way_loss_s: Ints
    after_first: Ints
    after: Ints
    node_hollow: Ints
    node_gpus: Ints
    hollow_first: Ints
    stay_first: Ints
    stay_start_s: Ints
    stay_end_s: Ints

    def number(self, name: str) -> int:
        """A job's number; ``KeyError`` where there is no such job."""
        for place, job in enumerate(self.jobs):
            if job.name == name:
                return place
        raise KeyError(name)

    @property
    def values_usd(self) -> NDArray[np.float64]:
        """What each job is worth."""
        return np.array([job.value_usd for job in self.jobs])

    @property
    def work_gpu_s(self) -> NDArray[np.float64]:
        """GPU-seconds of each job's thriftiest way; infinite where it has none."""
        least = np.full(len(self.jobs), math.inf)
        work = (self.way_pods * self.way_gpus * self.way_length_s).astype(float)
        for job in range(len(self.jobs)):
            ways = work[self.way_first[job] : self.way_first[job + 1]]
            if len(ways):
                least[job] = ways.min()
        return least


def instance_of(
    jobs: Sequence[Job], hollows: Sequence[Hollow], *, at_s: float, confidence: float = PLANNED_CONFIDENCE
) -> Instance:
    """The arrays of a planning problem that begins at ``at_s`` and ends where the hollows do.

    ``KeyError`` where a job comes after one that is not among ``jobs``; cycles are the caller's to refuse (``order``).
    """
    until_s = int(min((hollow.edges_s[-1] for hollow in hollows), default=at_s + 1))
    number = {job.name: place for place, job in enumerate(jobs)}
    ways = [_ways(job, hollows, confidence) for job in jobs]
    flat = [way for some in ways for way in some]
    stays = [_stays(hollow, node, at_s) for hollow in hollows for node in range(hollow.most_nodes)]
    columns = np.array(flat, dtype=np.int64).reshape(len(flat), 6).T
    after = [[number[name] for name in job.after] for job in jobs]
    return Instance(
        jobs=tuple(jobs),
        hollows=tuple(hollows),
        at_s=math.ceil(at_s),
        until_s=until_s,
        confidence=confidence,
        release_s=_ints(math.ceil(max(job.earliest_start_s, at_s)) for job in jobs),
        latest_s=_ints(until_s if job.deadline_s is None else min(math.floor(job.deadline_s), until_s) for job in jobs),
        way_first=_firsts(ways),
        way_hollow=columns[0],
        way_shape=columns[1],
        way_pods=columns[2],
        way_gpus=columns[3],
        way_length_s=columns[4],
        way_loss_s=columns[5],
        after_first=_firsts(after),
        after=_ints(place for some in after for place in some),
        node_hollow=_ints(place for place, hollow in enumerate(hollows) for _ in range(hollow.most_nodes)),
        node_gpus=_ints(hollow.gpus_per_node for hollow in hollows for _ in range(hollow.most_nodes)),
        hollow_first=_firsts([range(hollow.most_nodes) for hollow in hollows]),
        stay_first=_firsts(stays),
        stay_start_s=_ints(start for some in stays for start, _ in some),
        stay_end_s=_ints(end for some in stays for _, end in some),
    )


def _ways(job: Job, hollows: Sequence[Hollow], confidence: float) -> list[tuple[int, int, int, int, int, int]]:
    """Hollow, shape, pods, GPUs a pod, planned length, loss: every shape on every hollow that could ever hold it.

    Ephemeral hollows stand first, so that at equal ends what may run there leaves reserved nodes free.
    """
    found = []
    places = sorted(range(len(hollows)), key=lambda place: hollows[place].tenure is Tenure.RESERVED)
    for place in places:
        hollow = hollows[place]
        if job.pools and hollow.pool not in job.pools:
            continue
        for number, shape in enumerate(job.shapes):
            nodes = shape.nodes(hollow.gpus_per_node)
            if nodes is not None and nodes <= hollow.most_nodes:
                length_s = max(math.ceil(shape.duration.quantile_s(confidence) - 1e-6), 1)
                splits = hollow.tenure is Tenure.EPHEMERAL and job.checkpoint_interval_s is not None
                loss_s = math.ceil(job.checkpoint_interval_s) if splits and job.checkpoint_interval_s else -1
                found.append((place, number, shape.pods, shape.gpus_per_pod, length_s, loss_s))
    return found


def _stays(hollow: Hollow, node: int, at_s: float) -> list[tuple[int, int]]:
    whole = ((math.ceil(max(start, at_s)), math.floor(end)) for start, end in hollow.stays(node))
    return [(start, end) for start, end in whole if start < end]


def _ints(values) -> Ints:  # type: ignore[no-untyped-def] # any iterable of numbers
    return np.array(list(values), dtype=np.int64)


def _firsts(groups) -> Ints:  # type: ignore[no-untyped-def] # any sequence of sized things
    return np.concatenate([[0], np.cumsum([len(one) for one in groups], dtype=np.int64)]).astype(np.int64)
