"""Why a job starts when it does: what it waits for, told from the finished placing (§5.12 for jobs).

What belongs here: causes. What doesn't: sentences (``cli``, ``report``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ebbtide.batch.fitting import Placing, place
from ebbtide.batch.instance import Instance
from ebbtide.batch.plan import Cause, Reason

MOST_NAMED = 3  # jobs that a reason names


def reasons(placing: Placing, *, promised: Mapping[int, str] | None = None) -> list[Reason]:
    """The reason of every job, in the instance's order; ``promised``: jobs that stand where they were promised."""
    held = promised or {}
    return [_reason(placing, job, promised=job in held) for job in range(len(placing.instance.jobs))]


def _reason(placing: Placing, job: int, *, promised: bool) -> Reason:
    instance = placing.instance
    before = _before(instance, job)
    lost = [one for one in before if placing.way_of[one] < 0]
    if placing.way_of[job] < 0:
        if instance.way_first[job] == instance.way_first[job + 1]:
            return Reason(cause=Cause.TOO_WIDE)
        if lost:
            return Reason(cause=Cause.LOST_PREDECESSOR, jobs=_names(instance, lost))
        return Reason(cause=Cause.NO_ROOM, possible_s=_alone_s(instance, job, int(instance.release_s[job])))
    start = int(placing.start_s[job])
    ready = max([int(instance.release_s[job]), *(int(placing.end_s[one]) for one in before)])
    if start <= ready:
        last = [one for one in before if placing.end_s[one] == start > instance.release_s[job]]
        return Reason(cause=Cause.PREDECESSOR, jobs=_names(instance, last)) if last else Reason(cause=Cause.AT_ONCE)
    if promised:
        return Reason(cause=Cause.PROMISE)
    possible_s = _alone_s(instance, job, ready)
    if possible_s is None or possible_s >= start:
        return Reason(cause=Cause.TIDE)
    return Reason(cause=Cause.JOBS, jobs=_names(instance, _in_the_way(placing, job, start)), possible_s=possible_s)


def _alone_s(instance: Instance, job: int, ready: int) -> float | None:
    """When the job could start if there were no others; None: not at all."""
    release = instance.release_s.copy()
    release[job] = ready
    alone = place(_without_order(instance), np.array([job]), release_s=release)
    return float(alone.start_s[job]) if alone.way_of[job] >= 0 else None


def _without_order(instance: Instance) -> Instance:
    from dataclasses import replace

    return replace(instance, after_first=np.zeros_like(instance.after_first), after=instance.after[:0])


def _in_the_way(placing: Placing, job: int, start: int) -> list[int]:
    """The jobs that hold GPUs of the job's nodes until it starts, the widest first; else those that end last before."""
    mine = set()
    first = placing.run_part
    for run in np.flatnonzero(placing.run_job == job)[:1]:
        mine = set(placing.part_node[first[run] : first[run + 1]].tolist())
    here = np.isin(placing.part_node, list(mine))
    runs = np.repeat(np.arange(len(placing.runs)), np.diff(first))[here]
    runs = np.unique(runs[(placing.run_end_s[runs] <= start) & (placing.run_job[runs] != job)])
    if len(runs) == 0:
        return []
    last = runs[placing.run_end_s[runs] == placing.run_end_s[runs].max()]
    jobs = placing.instance.jobs
    return sorted({int(one) for one in placing.run_job[last]}, key=lambda one: (-jobs[one].gpus, one))


def _before(instance: Instance, job: int) -> list[int]:
    return [int(one) for one in instance.after[instance.after_first[job] : instance.after_first[job + 1]]]


def _names(instance: Instance, jobs: list[int]) -> tuple[str, ...]:
    return tuple(instance.jobs[one].name for one in jobs[:MOST_NAMED])
