"""Jobs placed in hollows in a given order: the one door to the compiled list scheduler, and the score of what it made.

What belongs here: a placing as arrays, and how two placings compare: value in time, then deadlines held, then earliness
(§7.2). What doesn't: orders (``rules``), plans in words (``plan``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.batch.instance import Instance, Ints
from ebbtide.batch.rules import RULES, order_of


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Score:
    """What a placing is worth, compared in this order. ``value_usd``: of jobs done in time, to a millionth of a dollar.

    ``in_time``: jobs done by their deadline or, without one, by the horizon's end. ``earliness_s``: minus the sum of
    the planned ends of the jobs that are placed, counted from the beginning; what isn't placed counts as the horizon.
    """

    value_usd: float
    in_time: int
    earliness_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placing:
    """Where and when each job of an instance runs. Arrays as the compiled scheduler gives them.

    ``way_of[i]``: −1 where job i is not placed. ``end_s[i]`` is its planned end. Row r of ``runs``: job, start, end,
    and the first of its rows in ``parts``, which reach to the next run's: node, pods on it.
    """

    instance: Instance
    way_of: Ints
    end_s: Ints
    runs: Ints
    parts: Ints

    @property
    def run_job(self) -> Ints:
        """The job of each run."""
        return self.runs[:, 0]

    @property
    def run_start_s(self) -> Ints:
        """The start of each run."""
        return self.runs[:, 1]

    @property
    def run_end_s(self) -> Ints:
        """The end of each run."""
        return self.runs[:, 2]

    @property
    def run_part(self) -> Ints:
        """The first part of each run, and behind the last run the number of parts."""
        return np.append(self.runs[:, 3], len(self.parts))

    @property
    def part_node(self) -> Ints:
        """The node of each part."""
        return self.parts[:, 0]

    @property
    def part_pods(self) -> Ints:
        """The pods of each part."""
        return self.parts[:, 1]

    @property
    def in_time(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each job is done by its deadline, or by the horizon's end."""
        return (self.way_of >= 0) & (self.end_s <= self.instance.latest_s)

    @property
    def start_s(self) -> Ints:
        """Planned start of each job; the horizon's end where it isn't placed."""
        found = np.full(len(self.way_of), self.instance.until_s, dtype=np.int64)
        np.minimum.at(found, self.run_job, self.run_start_s)
        return found

    @property
    def score(self) -> Score:
        """What it is worth."""
        held, instance = self.in_time, self.instance
        ends = np.where(self.way_of >= 0, self.end_s, instance.until_s)
        return Score(
            value_usd=round(float(instance.values_usd[held].sum()), 6),
            in_time=int(held.sum()),
            earliness_s=-float((ends - instance.at_s).sum()),
        )


def place(
    instance: Instance,
    order: Ints,
    *,
    release_s: Ints | None = None,
    latest_s: Ints | None = None,
    thrift: bool = True,
    standing: Placing | None = None,
    late: bool = True,
) -> Placing:
    """The jobs of ``order`` placed one after the other, each where it ends first; the others are left out.

    ``release_s`` and ``latest_s`` replace the instance's. ``thrift``: of the ways that are in time, the one of the
    fewest GPU-seconds. Jobs that cannot be in time are placed after all others, or without ``late`` not at all. Jobs of
    ``standing`` that are not in ``order`` stay exactly where they are, and what they come after has ended by then.
    """
    from ebbtide.batch.kernels import NEVER, schedule  # numba: imported only when used

    pinned = _pinned(instance, order, standing, int(NEVER))
    latest = instance.latest_s if latest_s is None else latest_s
    stays = int(np.diff(instance.stay_first).max(initial=0))
    way_of, end_s, runs, parts = schedule(
        np.ascontiguousarray(order, dtype=np.int64),
        instance.release_s if release_s is None else release_s,
        latest,
        pinned.last_end_s if late else np.minimum(latest, pinned.last_end_s),
        thrift,
        (
            instance.way_first,
            instance.way_hollow,
            instance.way_pods,
            instance.way_gpus,
            instance.way_length_s,
            instance.way_loss_s,
        ),
        instance.way_gpus,
        instance.after_first,
        instance.after,
        instance.node_gpus,
        instance.hollow_first,
        (instance.stay_first, instance.stay_start_s, instance.stay_end_s),
        2 * stays + 66,
        pinned.way_of,
        pinned.end_s,
        pinned.runs,
        pinned.parts,
    )
    return Placing(instance=instance, way_of=way_of, end_s=end_s, runs=runs, parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pinned:
    """What stands already: ways and ends of its jobs, its runs and parts, and how late each other job may then end."""

    way_of: Ints
    end_s: Ints
    runs: Ints
    parts: Ints
    last_end_s: Ints


def _pinned(instance: Instance, order: Ints, standing: Placing | None, never: int) -> _Pinned:
    jobs = len(instance.jobs)
    last_end = np.full(jobs, instance.until_s, dtype=np.int64)
    if standing is None:
        return _Pinned(
            way_of=np.full(jobs, -1, dtype=np.int64),
            end_s=np.full(jobs, never, dtype=np.int64),
            runs=np.zeros((0, 4), dtype=np.int64),
            parts=np.zeros((0, 2), dtype=np.int64),
            last_end_s=last_end,
        )
    stays = standing.way_of >= 0
    stays[order] = False
    kept = stays[standing.run_job]
    counts = np.diff(standing.run_part)
    runs = standing.runs[kept].copy()
    runs[:, 3] = np.concatenate([[0], np.cumsum(counts[kept])])[:-1]
    later = np.repeat(np.arange(jobs), np.diff(instance.after_first))  # job later[k] comes after job after[k]
    held = stays[later]
    np.minimum.at(last_end, instance.after[held], standing.start_s[later[held]])
    return _Pinned(
        way_of=np.where(stays, standing.way_of, -1),
        end_s=np.where(stays, standing.end_s, never),
        runs=runs,
        parts=standing.parts[np.repeat(kept, counts)],
        last_end_s=last_end,
    )


def best_of_rules(instance: Instance) -> tuple[str, Placing]:
    """The best of the list rules and its name; of equals the earlier."""
    found = {name: place(instance, order_of(instance, rule(instance))) for name, rule in RULES.items()}
    best = max(found, key=lambda name: found[name].score)
    return best, found[best]
