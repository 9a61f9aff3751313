"""One window of a small fleet, exactly: any curves, any widths.

Workloads of one width are joined into a class curve over their total count; the classes are then chosen together.
Widths that pack perfectly need volume only (``program_window``), others a table of what packs (``table_window``), and
the packing program where that would be too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ebbtide.allocate.class_curves import by_count, class_curves, class_members
from ebbtide.allocate.knapsack import Choices, Stages, staged_pairs
from ebbtide.allocate.packing import NodeShape
from ebbtide.allocate.packing_table import PackingTable
from ebbtide.allocate.program_window import by_program
from ebbtide.allocate.table_window import by_table
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactWindow:
    """The exact answer for every count of nodes 0 … M.

    ``choices`` above ``low`` replicas. ``deficit`` is the least shortage with the least unserved load at it
    (``unserved.joint``), and its own ``deficit_bound``; ``money[m]`` the least waiting cost with m nodes at both, inf
    below ``needed_nodes``; ``class_more[m]`` how many replicas above its low every width gets.
    """

    shape: NodeShape
    choices: Choices
    low: Ints
    needed_nodes: int
    deficit: int
    money: Floats
    deficit_bound: float
    class_more: dict[int, Ints]

    def replicas(self, nodes: int) -> Ints:
        """Replicas per workload with so many nodes."""
        more = np.zeros(len(self.low), dtype=np.int64)
        for members, stages, count in zip(self._classes, self._stages, self.class_more[nodes].tolist(), strict=True):
            more[members] = stages.back(count)
        return self.low + more

    @property
    def bound(self) -> Floats:
        """The proven lower bound of ``money``: itself."""
        return self.money

    @cached_property
    def _classes(self) -> list[Ints]:
        return class_members(self.choices.width)

    @cached_property
    def _stages(self) -> list[Stages]:
        most = max(int(more.max(initial=0)) for more in self.class_more.values())
        return [staged_pairs(by_count(self.choices.pick(members)), most) for members in self._classes]


def solve_exactly(
    shape: NodeShape, choices: Choices, low: Ints, nodes: int, table: PackingTable | None = None
) -> ExactWindow | None:
    """The exact window for up to ``nodes`` nodes; None where not even ``low`` packs into them.

    ``table`` is the pool's, for as many nodes; without one, widths that do not pack perfectly are a matter of integer
    programs, and ``UnsolvedError`` says that one of them was given up.
    """
    curves = class_curves(shape, choices, low, nodes)
    if curves is None:
        return None
    found = by_program(curves) if shape.perfect or table is None else by_table(curves, table)
    if found is None:
        return None
    return ExactWindow(
        shape=shape,
        choices=choices,
        low=low,
        needed_nodes=found.needed_nodes,
        deficit=found.deficit,
        deficit_bound=float(found.deficit),
        money=found.money,
        class_more=found.more,
    )


def exact_work(choices: Choices, spare: int) -> float:
    """Additions that ``solve_exactly`` makes where widths pack perfectly, for ``spare`` units above the lows."""
    work, counts = 0.0, []
    for members in class_members(choices.width):
        most = min(float((choices.length[members] - 1).sum()), spare / float(choices.width[members[0]]))
        work += float(choices.length[members].sum()) * most
        counts.append(most)
    return work + sum(counts) * spare
