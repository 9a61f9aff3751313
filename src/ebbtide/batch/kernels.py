"""Compiled list scheduling: jobs one after the other, each where and when it ends first among what is still free.

The serial schedule generation scheme (Kolisch 1996) over nodes: every node has a step profile of free GPUs; a gang is
placed whole, a pod never spans nodes, several pods may share one. A way that may be interrupted is placed in runs that
end when its nodes leave; each interruption costs its loss.

Imported by ``fitting`` only. Arrays are those of ``instance.Instance``. A run r of the answer belongs to job
``run_job[r]`` and holds ``part_pods`` pods on ``part_node`` for the parts ``run_part[r]:run_part[r+1]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEVER = np.int64(1) << 60
MOST_RUNS = 64  # interruptions of one job: two months of days


@njit(cache=True)
def profiles(node_gpus, stay_first, stay_start, stay_end, room):  # type: ignore[no-untyped-def] # numba infers
    """Free GPUs of every node over time: breaks, what is free from each on, how many breaks."""
    count = len(node_gpus)
    times = np.empty((count, room), np.int64)
    free = np.zeros((count, room), np.int64)
    size = np.zeros(count, np.int64)
    for node in range(count):
        times[node, 0] = -NEVER
        last = 1
        for stay in range(stay_first[node], stay_first[node + 1]):
            if times[node, last - 1] == stay_start[stay]:
                free[node, last - 1] = node_gpus[node]
            else:
                times[node, last] = stay_start[stay]
                free[node, last] = node_gpus[node]
                last += 1
            times[node, last] = stay_end[stay]
            free[node, last] = 0
            last += 1
        size[node] = last
    return times, free, size


@njit(cache=True)
def _place(times, size, at):  # type: ignore[no-untyped-def] # numba infers from the call
    """The step that holds ``at``."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= at:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def _split_step(times, free, size, at):  # type: ignore[no-untyped-def] # numba infers from the call
    """Put a break at ``at``; its step and the new number of breaks."""
    step = _place(times, size, at)
    if times[step] == at:
        return step, size
    for k in range(size, step + 1, -1):
        times[k] = times[k - 1]
        free[k] = free[k - 1]
    times[step + 1] = at
    free[step + 1] = free[step]
    return step + 1, size + 1


@njit(cache=True)
def take(times, free, size, node, start, end, gpus):  # type: ignore[no-untyped-def] # numba infers from the call
    """Take GPUs of a node in ``[start, end)`` (negative: give them back)."""
    first, size[node] = _split_step(times[node], free[node], size[node], start)
    last, size[node] = _split_step(times[node], free[node], size[node], end)
    for step in range(first, last):
        free[node, step] -= gpus


@njit(cache=True)
def _least_free(times, free, size, start, end):  # type: ignore[no-untyped-def] # numba infers from the call
    """The fewest free GPUs in ``[start, end)``, and when the last step with so few ends."""
    step = _place(times, size, start)
    least, until = free[step], NEVER
    while True:
        if free[step] <= least:
            least = free[step]
            until = times[step + 1] if step + 1 < size else NEVER
        step += 1
        if step >= size or times[step] >= end:
            return least, until


@njit(cache=True)
def fit_whole(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, node_gpus, first, last, pods, gpus, length, release, before, spare
):
    """The earliest start from ``release`` on at which the gang fits for ``length`` without a break, done by ``before``.

    NEVER where there is none. ``spare[node]`` then holds the fewest free GPUs of each node over that time.
    """
    at = release
    while at + length <= before:
        held, later = 0, NEVER
        for node in range(first, last):
            least, until = _least_free(times[node], free[node], size[node], at, at + length)
            spare[node] = least
            held += least // gpus
            if least // gpus < node_gpus[node] // gpus:  # else no later start finds more room on it
                later = min(later, until)
        if held >= pods:
            return at
        at = later
    return NEVER


@njit(cache=True)
def _leaves(stays, node, at):  # type: ignore[no-untyped-def] # numba infers from the call
    """When the node leaves that is there at ``at``; ``at`` where it isn't there."""
    stay_first, stay_start, stay_end = stays
    for stay in range(stay_first[node], stay_first[node + 1]):
        if stay_start[stay] <= at < stay_end[stay]:
            return stay_end[stay]
    return at


@njit(cache=True)
def fit_run(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, first, last, pods, gpus, length, least_run, release, before, spare, stays
):
    """The earliest run of at most ``length`` and at least ``least_run`` that ends early only where its nodes leave.

    Its start and end; NEVER where there is none ``before``. ``spare`` as in ``fit_whole``, 0 on nodes that leave
    before the run ends.
    """
    at = release
    while at < before:
        later, end, held = NEVER, NEVER, 0
        for node in range(first, last):  # the longest stays first: a run ends when its first node leaves
            leaves = min(_leaves(stays, node, at), at + length)
            spare[node] = 0
            step = _place(times[node], size[node], at)
            if step + 1 < size[node]:
                later = min(later, times[node, step + 1])
            if leaves - at < min(least_run, length) or held >= pods:
                continue
            least = _least_free(times[node], free[node], size[node], at, leaves)[0]
            if least >= gpus:
                spare[node] = least
                held += least // gpus
                end = min(end, leaves)
        if held >= pods and end <= before:
            return at, end
        at = later
    return NEVER, NEVER


@njit(cache=True)
def _choose(spare, first, last, pods, gpus, parts, begun):  # type: ignore[no-untyped-def] # numba infers
    """Give the gang its nodes, the fullest ones that still hold what is left of it; where the parts then end."""
    left = pods
    while left > 0:
        best, best_room = -1, 0
        for node in range(last - 1, first - 1, -1):
            room = spare[node] // gpus
            roomier = best_room < left and room > best_room
            tighter = best_room >= left and room >= left and spare[node] < spare[best]
            if roomier or tighter:
                best, best_room = node, room
        parts[begun, 0], parts[begun, 1] = best, min(left, best_room)
        spare[best] = 0
        begun += 1
        left -= best_room
    return begun


@njit(cache=True)
def schedule(  # type: ignore[no-untyped-def] # numba infers from the call
    order, release, latest, last_end, thrift, ways, way_gpus, after_first, after, node_gpus, hollow_first, stays, room,
    pinned_way, pinned_end, pinned_runs, pinned_parts
):  # fmt: skip
    """Place the jobs of ``order``, predecessors before their successors; jobs that are not in it are left out.

    A job goes the way that ends first, at equal ends the earlier listed; with ``thrift``, of the ways that end by
    ``latest`` the one of the fewest GPU-seconds. What fits no way by ``latest`` is placed after all others, by
    ``last_end``. Jobs with a ``pinned_way`` stand as the pinned runs say. Comes back with the way of every job (−1:
    none), its end, and the runs with their parts.
    """
    times, free, size = profiles(node_gpus, stays[0], stays[1], stays[2], room)
    way_hollow, way_pods = ways[1], ways[2]
    way_of, ends = pinned_way.copy(), pinned_end.copy()
    jobs, pinned = len(release), len(pinned_runs)
    runs = np.zeros((16 + 2 * jobs + pinned, 4), np.int64)
    parts = np.zeros((16 + 2 * jobs + len(pinned_parts), 2), np.int64)
    runs[:pinned], parts[: len(pinned_parts)] = pinned_runs, pinned_parts
    counts = np.array([pinned, len(pinned_parts)])  # of runs, of parts
    times, free = _take_pinned(times, free, size, pinned_runs, pinned_parts, way_of, way_gpus)
    spare = np.zeros(len(node_gpus), np.int64)
    spans, kept = np.zeros((MOST_RUNS, 2), np.int64), np.zeros((MOST_RUNS, 2), np.int64)
    for turn in range(2):
        for job in order:
            ready = _ready(release, after_first, after, ends, job)
            before, thrifty = (min(latest[job], last_end[job]), thrift) if turn == 0 else (last_end[job], False)
            if way_of[job] >= 0 or ready >= before or (turn == 1 and latest[job] >= last_end[job]):
                continue
            way, end, count = _best_way(
                times, free, size, node_gpus, hollow_first, stays, ways, job, ready, before, thrifty, spare, spans,
                kept
            )  # fmt: skip
            if way < 0:
                continue
            first, last = hollow_first[way_hollow[way]], hollow_first[way_hollow[way] + 1]
            for k in range(count):
                runs, parts = _room(runs, counts[0] + 2), _room(parts, counts[1] + way_pods[way])
                if (size[first:last] + 2 > times.shape[1]).any():
                    times, free = _wider(times), _wider(free)
                _run(
                    times, free, size, node_gpus, first, last, stays, job, way_pods[way], way_gpus[way], kept[k, 0],
                    kept[k, 1], count > 1, spare, runs, parts, counts
                )  # fmt: skip
            way_of[job], ends[job] = way, end
    return way_of, ends, runs[: counts[0]], parts[: counts[1]]


@njit(cache=True)
def _take_pinned(times, free, size, runs, parts, way_of, way_gpus):  # type: ignore[no-untyped-def] # numba infers
    """Take the GPUs of runs that stand already; the profiles may have to be wider then."""
    for run in range(len(runs)):
        last = runs[run + 1, 3] if run + 1 < len(runs) else len(parts)
        for part in range(runs[run, 3], last):
            node = parts[part, 0]
            if size[node] + 2 > times.shape[1]:
                times, free = _wider(times), _wider(free)
            take(times, free, size, node, runs[run, 1], runs[run, 2], parts[part, 1] * way_gpus[way_of[runs[run, 0]]])
    return times, free


@njit(cache=True)
def _ready(release, after_first, after, ends, job):  # type: ignore[no-untyped-def] # numba infers from the call
    """When the job is released and all before it have ended."""
    ready = release[job]
    for k in range(after_first[job], after_first[job + 1]):
        ready = max(ready, ends[after[k]])
    return ready


@njit(cache=True)
def _best_way(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, node_gpus, hollow_first, stays, ways, job, ready, before, thrift, spare, spans, kept
):
    """The job's best way (−1: none), its end and the number of its runs, which stand in ``kept``."""
    way_first, way_hollow, way_pods, way_gpus, way_length, way_loss = ways
    best, best_end, best_work, best_count = -1, NEVER, NEVER, 0
    for way in range(way_first[job], way_first[job + 1]):
        first, last = hollow_first[way_hollow[way]], hollow_first[way_hollow[way] + 1]
        work = way_pods[way] * way_gpus[way] * way_length[way] if thrift else 0
        if best >= 0 and work > best_work:
            continue
        limit = before if best < 0 or work < best_work else min(before, best_end - 1)
        end, count = _spans(
            times, free, size, node_gpus, first, last, stays, way_pods[way], way_gpus[way], way_length[way],
            way_loss[way], ready, limit, spare, spans
        )  # fmt: skip
        if count > 0:
            best, best_end, best_work, best_count = way, end, work, count  # type: ignore[assignment] # likewise
            kept[:count] = spans[:count]
    return best, best_end, best_count


@njit(cache=True)
def _spans(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, node_gpus, first, last, stays, pods, gpus, length, loss, ready, limit, spare, spans
):
    """The runs that end first, at ``limit`` at the latest: whole, or broken by the tide where that ends sooner."""
    at = fit_whole(times, free, size, node_gpus, first, last, pods, gpus, length, ready, limit, spare)
    end = at + length if at < NEVER else NEVER
    if loss >= 0 and at > ready:
        last_end = min(limit, end - 1)
        split_end, count = _split(
            times, free, size, first, last, pods, gpus, length, loss, ready, last_end, spare, stays, spans
        )
        if split_end < end:
            return split_end, count
    if at == NEVER:
        return NEVER, 0
    spans[0, 0], spans[0, 1] = at, end
    return end, 1


@njit(cache=True)
def _run(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, node_gpus, first, last, stays, job, pods, gpus, start, stop, broken, spare, runs, parts, counts
):
    """Write a run down, give it its nodes and take their GPUs."""
    length = stop - start
    if broken:
        fit_run(times, free, size, first, last, pods, gpus, length, length, start, stop, spare, stays)
    else:
        fit_whole(times, free, size, node_gpus, first, last, pods, gpus, length, start, stop, spare)
    run, begun = counts[0], counts[1]
    runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3] = job, start, stop, begun
    counts[0] += 1
    counts[1] = _choose(spare, first, last, pods, gpus, parts, begun)
    for part in range(begun, counts[1]):
        take(times, free, size, parts[part, 0], start, stop, parts[part, 1] * gpus)


@njit(cache=True)
def _room(table, rows):  # type: ignore[no-untyped-def] # numba infers from the call
    """The table with at least so many rows."""
    if rows <= table.shape[0]:
        return table
    longer = np.zeros((2 * rows, table.shape[1]), table.dtype)
    longer[: table.shape[0]] = table
    return longer


@njit(cache=True)
def _wider(table):  # type: ignore[no-untyped-def] # numba infers from the call
    wider = np.zeros((table.shape[0], 2 * table.shape[1]), table.dtype)
    wider[:, : table.shape[1]] = table
    return wider


@njit(cache=True)
def _split(  # type: ignore[no-untyped-def] # numba infers from the call
    times, free, size, first, last, pods, gpus, length, loss, release, before, spare, stays, spans
):
    """Runs until the length is done, each interruption losing ``loss`` of it; their end (NEVER) and number."""
    left, at, count = length, release, 0
    while left > 0 and count < MOST_RUNS:
        start, stop = fit_run(times, free, size, first, last, pods, gpus, left, 2 * loss, at, before, spare, stays)
        if start == NEVER:
            return NEVER, 0
        spans[count, 0], spans[count, 1] = start, stop
        count += 1
        if stop - start >= left:
            return stop, count
        left -= stop - start - loss
        at = stop
    return NEVER, 0
