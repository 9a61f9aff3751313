"""A neighbourhood solved by CP-SAT: some jobs of a placing are free, the others stay, the free ones are placed anew.

Optional intervals, one for each way that a free job may go, and a cumulative resource for each hollow (Laborie &
Rogerie 2008; Perron, Didier & Gay 2023). Time is not cut into slots. The resource counts the GPUs of a hollow, not of
nodes: the answer is an order and starts, which the list scheduler then puts on nodes (``neighbourhoods``). A way that
the tide interrupts stays as it is or is left out.

What belongs here: the model. What doesn't: which jobs are freed, and what is made of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ebbtide.batch.fitting import Placing
from ebbtide.batch.instance import Instance, Ints

LOOKS = 60  # stretches of what others take, over the neighbourhood's time
MOST_EXACT = 100  # runs of others that are modelled as they are
MOST_PROVEN = 60  # jobs of which it is asked whether they all fit
VALUE_STEPS = 1_000_000  # the objective is in whole numbers: a millionth of the neighbourhood's value


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """What CP-SAT says of the free jobs: starts of those that it has in time (in seconds), by job.

    ``proven``: whether no better set of these jobs is in time on these hollows, nodes aside.
    """

    starts_s: dict[int, int]
    proven: bool


def solve_neighbourhood(placing: Placing, free: Ints, *, seed: int, effort: float) -> Suggested:
    """The free jobs placed anew beside all others, for the most value in time, then the most jobs in time.

    ``effort``: CP-SAT's deterministic time. The same arguments, the same answer.
    """
    from ortools.sat.python import cp_model  # a third of a second: imported only when used

    model = _Model(cp_model, placing, free)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = effort
    solver.parameters.cp_model_presolve = False  # neighbourhoods are small and many: it takes longer than it saves
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Suggested(starts_s={}, proven=False)
    starts = {job: int(solver.value(start)) for job, start, present in model.options if solver.boolean_value(present)}
    return Suggested(starts_s=starts, proven=bool(status == cp_model.OPTIMAL))


class _Model:
    """The model of a neighbourhood. ``options``: job, start and presence of every way."""

    def __init__(self, cp_model: Any, placing: Placing, free: Ints) -> None:
        self._cp, self._placing = cp_model, placing
        self._exact = len(placing.runs) <= MOST_EXACT or bool(np.isin(placing.run_job, free).all())
        self.model = cp_model.CpModel()
        self.options: list[tuple[int, Any, Any]] = []
        self._free = {int(job) for job in free}
        self._demands: list[list[tuple[Any, int]]] = [[] for _ in placing.instance.hollows]
        self._present: dict[int, list[Any]] = {}
        self._ends: dict[int, list[tuple[Any, Any]]] = {}
        self._begins: dict[int, list[tuple[Any, Any]]] = {}
        starts = placing.start_s
        for job in sorted(self._free):
            self._add_job(job, starts)
        for job in sorted(self._free):
            self._add_chain(job)
        self._add_resources(self._stays())
        self._add_objective()

    def demand_all(self) -> None:
        """Every free job must be in time."""
        for present in self._present.values():
            self.model.add_at_least_one(present) if present else self.model.add_bool_or([])

    def _add_job(self, job: int, starts: Ints) -> None:
        instance, placing = self._placing.instance, self._placing
        release, latest = _limits(placing, job, self._free, starts)
        self._present[job], self._ends[job], self._begins[job] = [], [], []
        held = int(placing.way_of[job])
        runs = placing.runs[placing.run_job == job]
        for way in range(int(instance.way_first[job]), int(instance.way_first[job + 1])):
            length = int(instance.way_length_s[way])
            domain = [list(span) for span in _starts(instance, way, release, latest)]
            if domain:
                start = self.model.new_int_var_from_domain(self._cp.Domain.from_intervals(domain), "")
                present = self.model.new_bool_var("")
                interval = self.model.new_optional_fixed_size_interval_var(start, length, present, "")
                self._add_way(job, way, present, [interval], start, start + length)
                here = held == way and len(runs) == 1 and placing.end_s[job] <= latest
                self.model.add_hint(present, here)
                if here:
                    self.model.add_hint(start, int(runs[0, 1]))
        if len(runs) > 1 and placing.end_s[job] <= latest and runs[0, 1] >= release:  # interrupted: as it is, or not
            present = self.model.new_bool_var("")
            spans = [
                self.model.new_optional_fixed_size_interval_var(int(start), int(end - start), present, "")
                for _, start, end, _ in runs
            ]
            self._add_way(job, held, present, spans, int(runs[0, 1]), int(placing.end_s[job]))
            self.model.add_hint(present, True)
        if len(self._present[job]) > 1:
            self.model.add_at_most_one(self._present[job])

    def _add_way(self, job: int, way: int, present: Any, spans: list[Any], start: Any, end: Any) -> None:
        instance = self._placing.instance
        gpus = int(instance.way_pods[way] * instance.way_gpus[way])
        self._demands[int(instance.way_hollow[way])] += [(span, gpus) for span in spans]
        self._present[job].append(present)
        self._begins[job].append((present, start))
        self._ends[job].append((present, end))
        self.options.append((job, start, present))

    def _add_chain(self, job: int) -> None:
        """A job is in time only if those before it are, and starts when they have ended."""
        instance = self._placing.instance
        for before in instance.after[instance.after_first[job] : instance.after_first[job + 1]]:
            if int(before) not in self._free:
                continue
            self.model.add(sum(self._present[job]) <= sum(self._present[int(before)]))
            for present, start in self._begins[job]:
                for other, end in self._ends[int(before)]:
                    self.model.add(start >= end).only_enforce_if(present, other)

    def _stays(self) -> Placing:
        """The placing without the free jobs: what their GPUs are taken from."""
        from ebbtide.batch.fitting import place

        order = np.array(sorted(self._free), dtype=np.int64)
        nowhere = np.full(len(self._placing.way_of), self._placing.instance.until_s, dtype=np.int64)
        return place(self._placing.instance, order, release_s=nowhere, standing=self._placing)

    def _add_resources(self, stays: Placing) -> None:
        instance = self._placing.instance
        marks = _marks(self._placing, np.array(sorted(self._free), dtype=np.int64))
        for hollow, demands in enumerate(self._demands):
            if not demands:
                continue
            capacity = instance.hollows[hollow].most_nodes * instance.hollows[hollow].gpus_per_node
            spans, gpus = [span for span, _ in demands], [many for _, many in demands]
            held = _taken(stays, hollow)
            for start, end, taken in held if self._exact else _joined(held, marks):
                spans.append(self.model.new_fixed_size_interval_var(start, end - start, ""))
                gpus.append(min(taken, capacity))
            self.model.add_cumulative(spans, gpus, capacity)

    def _add_objective(self) -> None:
        values = self._placing.instance.values_usd
        total = max(float(values[sorted(self._free)].sum()), 1e-9)
        terms = []
        for job, present in self._present.items():
            # One step more for each job: of equal values the more jobs.
            terms += [(1 + round(VALUE_STEPS * float(values[job]) / total)) * one for one in present]
        self.model.maximize(sum(terms))


def _limits(placing: Placing, job: int, free: set[int], starts: Ints) -> tuple[int, int]:
    """From when to when a job may run, by its own times and by the jobs around it that stay."""
    instance = placing.instance
    release, latest = int(instance.release_s[job]), int(instance.latest_s[job])
    for before in instance.after[instance.after_first[job] : instance.after_first[job + 1]]:
        if int(before) not in free:
            release = max(release, int(placing.end_s[before]))
    for later in np.flatnonzero(instance.after == job):
        other = int(np.searchsorted(instance.after_first, later, side="right")) - 1
        if other not in free and placing.way_of[other] >= 0:
            latest = min(latest, int(starts[other]))
    return release, latest


def _starts(instance: Instance, way: int, release: int, latest: int) -> list[tuple[int, int]]:
    """The stretches in which a way may start: its nodes are there until it has ended."""
    hollow = instance.hollows[int(instance.way_hollow[way])]
    per_node = hollow.gpus_per_node // int(instance.way_gpus[way])
    nodes, length = -(-int(instance.way_pods[way]) // per_node), int(instance.way_length_s[way])
    stays = hollow.stays(nodes - 1)
    found = ((max(int(np.ceil(start)), release), min(int(end), latest) - length) for start, end in stays)
    return [(first, last) for first, last in found if first <= last]


def _taken(stays: Placing, hollow: int) -> list[tuple[int, int, int]]:
    """Stretches with the GPUs of a hollow that are taken, or away, in them."""
    instance, own = stays.instance, stays.instance.hollows[hollow]
    steps: dict[int, int] = {}
    for edge, before, count in zip(own.edges_s, (own.most_nodes, *own.nodes), own.nodes, strict=False):
        at = max(int(np.ceil(edge)), instance.at_s) if count > before else max(int(edge), instance.at_s)
        steps[at] = steps.get(at, 0) + (before - count) * own.gpus_per_node
    ways = stays.way_of[stays.run_job]
    mine = instance.way_hollow[ways] == hollow
    gpus = instance.way_pods[ways[mine]] * instance.way_gpus[ways[mine]]
    for (_, begin, end, _), many in zip(stays.runs[mine].tolist(), gpus.tolist(), strict=True):
        steps[begin] = steps.get(begin, 0) + many
        steps[end] = steps.get(end, 0) - many
    found, taken, since = [], 0, instance.at_s
    for at in (*sorted(steps), instance.until_s):
        if taken > 0 and at > since:
            found.append((since, at, taken))
        taken, since = taken + steps.get(at, 0), at
    return found


def _marks(placing: Placing, free: Ints) -> Ints:
    """Where the model looks at what others take: evenly over the free jobs' times, and where they start and end now."""
    instance = placing.instance
    first, last = int(instance.release_s[free].min()), int(instance.latest_s[free].max())
    mine = np.isin(placing.run_job, free)
    own = np.concatenate([placing.run_start_s[mine], placing.run_end_s[mine], instance.latest_s[free]])
    inside = own[(own >= first) & (own <= last)]
    return np.unique(np.concatenate([np.linspace(first, last, LOOKS).astype(np.int64), inside]))


def _joined(taken: list[tuple[int, int, int]], marks: Ints) -> list[tuple[int, int, int]]:
    """Between two marks the most that is taken: a little too much, in a tenth of the stretches."""
    most = np.zeros(len(marks) - 1, dtype=np.int64)
    for start, end, many in taken:
        first = max(int(np.searchsorted(marks, start, side="right")) - 1, 0)
        last = int(np.searchsorted(marks, end, side="left"))
        most[first:last] = np.maximum(most[first:last], many)
    found: list[tuple[int, int, int]] = []
    for begin, stop, held in zip(marks[:-1].tolist(), marks[1:].tolist(), most.tolist(), strict=True):
        if held and found and found[-1][1:] == (begin, held):
            found[-1] = (found[-1][0], stop, held)
        elif held:
            found.append((begin, stop, held))
    return found


def proven_late(instance: Instance, *, seed: int, effort: float = 2.0) -> bool:
    """Whether it is proven that not all jobs of an instance can be in time; False: not known.

    A job without a way proves it. Otherwise CP-SAT is asked whether all jobs fit their hollows' GPUs, nodes aside:
    where not even that is so, no plan has them in time. Not asked where a job may be interrupted (its runs are not
    modelled), nor of more than ``MOST_PROVEN`` jobs.
    """
    if (np.diff(instance.way_first) == 0).any():
        return True
    if len(instance.jobs) > MOST_PROVEN or (instance.way_loss_s >= 0).any():
        return False
    from ortools.sat.python import cp_model

    from ebbtide.batch.fitting import place

    nothing = place(instance, np.zeros(0, dtype=np.int64))
    model = _Model(cp_model, nothing, np.arange(len(instance.jobs)))
    model.demand_all()
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = effort
    return bool(solver.solve(model.model) == cp_model.INFEASIBLE)
