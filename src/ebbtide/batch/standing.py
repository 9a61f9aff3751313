"""A plan that stands, laid onto today's hollows: what of it still holds, and what is broken (§7.6).

What belongs here: places back to arrays, checked against nodes that are there and GPUs that are free. What doesn't:
what to do about a broken place (``replan``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ebbtide.batch.fitting import Placing
from ebbtide.batch.instance import Instance
from ebbtide.batch.plan import Place


def placing_of(instance: Instance, places: Mapping[str, Place]) -> tuple[Placing, tuple[str, ...]]:
    """The places that still hold as a placing, and the names of the jobs whose place is broken.

    A place holds where its nodes are there in all its runs, its GPUs are free beside those of the jobs before it in the
    mapping (who comes first, keeps), its length is that of a way of the job's, and what it comes after has ended.
    Runs that ended before the instance begins are left out, one under way begins with it.
    """
    board = _Board(instance)
    broken = []
    for number in _chains_first(instance, places):
        name = instance.jobs[number].name
        if not board.put(number, places[name]):
            broken.append(name)
    return board.placing(), tuple(broken)


def _chains_first(instance: Instance, places: Mapping[str, Place]) -> list[int]:
    """The jobs that have a place, in the mapping's order, by planned start within chains."""
    number = {job.name: place for place, job in enumerate(instance.jobs)}
    wanted = [number[name] for name in places if name in number]
    chained = {job for job in wanted if instance.jobs[job].after}
    loose = [job for job in wanted if job not in chained]
    return loose + sorted(chained, key=lambda job: places[instance.jobs[job].name].start_s)


class _Board:
    """Nodes with what is taken of them so far."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._hollow = {(one.pool, one.tenure): place for place, one in enumerate(instance.hollows)}
        self._stays = [
            [
                (int(instance.stay_start_s[k]), int(instance.stay_end_s[k]))
                for k in range(int(instance.stay_first[node]), int(instance.stay_first[node + 1]))
            ]
            for node in range(len(instance.node_gpus))
        ]
        self._held: list[list[tuple[int, int, int]]] = [[] for _ in instance.node_gpus]
        self._way = np.full(len(instance.jobs), -1, dtype=np.int64)
        self._end = np.full(len(instance.jobs), np.int64(1) << 60, dtype=np.int64)
        self._runs: list[tuple[int, int, int, int]] = []
        self._parts: list[tuple[int, int]] = []

    def put(self, job: int, wanted: Place) -> bool:
        """Take the place's GPUs; False where it does not hold."""
        way = self._way_of(job, wanted)
        runs = [
            (max(round(run.start_s), self._instance.at_s), round(run.end_s), run.nodes)
            for run in wanted.runs
            if round(run.end_s) > self._instance.at_s
        ]
        if way is None or not runs or not self._in_order(job, runs[0][0], runs[-1][1]):
            return False
        first = int(self._instance.hollow_first[self._instance.way_hollow[way]])
        last = int(self._instance.hollow_first[self._instance.way_hollow[way] + 1])
        gpus = int(self._instance.way_gpus[way])
        taken: list[tuple[int, int, list[tuple[int, int]]]] = []
        for start, end, held in runs:
            named = [(first + node, pods) for node, pods in held if first + node < last]
            nodes = named if sum(pods for _, pods in named) == wanted.pods else []
            nodes = nodes if all(self._free(node, start, end) >= pods * gpus for node, pods in nodes) else []
            nodes = nodes or self._nodes(first, last, start, end, wanted.pods, gpus)
            if not nodes:
                return False
            taken.append((start, end, nodes))
        self._take(job, way, gpus, taken)
        return True

    def placing(self) -> Placing:
        """All that was put."""
        return Placing(
            instance=self._instance,
            way_of=self._way,
            end_s=self._end,
            runs=np.array(self._runs, dtype=np.int64).reshape(len(self._runs), 4),
            parts=np.array(self._parts, dtype=np.int64).reshape(len(self._parts), 2),
        )

    def _take(self, job: int, way: int, gpus: int, taken: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
        for start, end, nodes in taken:
            self._runs.append((job, start, end, len(self._parts)))
            for node, pods in nodes:
                self._parts.append((node, pods))
                self._held[node].append((start, end, pods * gpus))
        self._way[job], self._end[job] = way, taken[-1][1]

    def _way_of(self, job: int, wanted: Place) -> int | None:
        hollow = self._hollow.get((wanted.pool, wanted.tenure))
        instance = self._instance
        for way in range(int(instance.way_first[job]), int(instance.way_first[job + 1])):
            shape = (int(instance.way_pods[way]), int(instance.way_gpus[way]))
            if instance.way_hollow[way] == hollow and shape == (wanted.pods, wanted.gpus_per_pod):
                return way
        return None

    def _in_order(self, job: int, start: int, end: int) -> bool:
        instance = self._instance
        before = instance.after[instance.after_first[job] : instance.after_first[job + 1]]
        return start >= instance.at_s and end <= instance.until_s and all(self._end[one] <= start for one in before)

    def _free(self, node: int, start: int, end: int) -> int:
        """GPUs of a node that are free in all of ``[start, end)``; 0 where it isn't there."""
        if not any(first <= start and end <= last for first, last in self._stays[node]):
            return 0
        held = [(a, b, many) for a, b, many in self._held[node] if a < end and start < b]
        most = max(
            (sum(many for a, b, many in held if a <= at < b) for at in {start, *(a for a, _, _ in held)}), default=0
        )
        return int(self._instance.node_gpus[node]) - most

    def _nodes(self, first: int, last: int, start: int, end: int, pods: int, gpus: int) -> list[tuple[int, int]]:
        """Other nodes of the hollow at the same time: the plan's are only numbers."""
        found: list[tuple[int, int]] = []
        for node in range(last - 1, first - 1, -1):
            many = min(self._free(node, start, end) // gpus, pods)
            if many > 0:
                found.append((node, many))
                pods -= many
            if pods == 0:
                return found
        return []
