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

    ``way_of[i]``: −1 where job i is not placed. ``end_s[i]`` is its planned end. Run r is of ``run_job[r]``, in
    ``[run_start_s[r], run_end_s[r])``, on ``part_node[k]`` with ``part_pods[k]`` pods for k in
    ``run_part[r]:run_part[r+1]``.
    """

    instance: Instance
    way_of: Ints
    end_s: Ints
    run_job: Ints
    run_start_s: Ints
    run_end_s: Ints
    run_part: Ints
    part_node: Ints
    part_pods: Ints

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
    instance: Instance, order: Ints, *, release_s: Ints | None = None, latest_s: Ints | None = None, thrift: bool = True
) -> Placing:
    """The jobs of ``order`` placed one after the other, each where it ends first; the others are left out.

    ``release_s`` and ``latest_s`` replace the instance's. ``thrift``: of the ways that are in time, the one of the
    fewest GPU-seconds. Jobs that cannot be in time are placed after all others.
    """
    from ebbtide.batch.kernels import schedule  # numba: imported only when used

    stays = int(np.diff(instance.stay_first).max(initial=0))
    found = schedule(
        np.ascontiguousarray(order, dtype=np.int64),
        instance.release_s if release_s is None else release_s,
        instance.latest_s if latest_s is None else latest_s,
        instance.until_s,
        thrift,
        instance.way_first,
        instance.way_hollow,
        instance.way_pods,
        instance.way_gpus,
        instance.way_length_s,
        instance.way_loss_s,
        instance.after_first,
        instance.after,
        instance.node_gpus,
        instance.hollow_first,
        instance.stay_first,
        instance.stay_start_s,
        instance.stay_end_s,
        2 * stays + 66,
    )
    way_of, end_s, run_job, run_start_s, run_end_s, run_part, parts = found
    return Placing(
        instance=instance,
        way_of=way_of,
        end_s=end_s,
        run_job=run_job,
        run_start_s=run_start_s,
        run_end_s=run_end_s,
        run_part=run_part,
        part_node=parts[:, 0],
        part_pods=parts[:, 1],
    )


def best_of_rules(instance: Instance) -> tuple[str, Placing]:
    """The best of the list rules and its name; of equals the earlier."""
    found = {name: place(instance, order_of(instance, rule(instance))) for name, rule in RULES.items()}
    best = max(found, key=lambda name: found[name].score)
    return best, found[best]
