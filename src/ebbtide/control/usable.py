"""Whether a node can be counted on: Ready, schedulable, all GPUs there, no start-up taint, stable (§6.4)."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.control.state import Node, PoolSeen, Side, Tenure
from ebbtide.fleet.pool import Pool


def fault_of(node: Node, pool: Pool) -> str:
    """Why a node of a pool is not whole, in a word or two; "" where it is.

    A cordon and the joining taint are no faults of the machine, and not spoken of here.

    >>> from ebbtide.fleet.pool import Pool
    >>> pool = Pool(name="h100", gpus_per_node=8, nodes=1)
    >>> fault_of(Node(name="n", tenure=Tenure.EPHEMERAL, provider_id="", gpus=7), pool)
    '7 of 8 GPUs allocatable'
    """
    if not node.ready:
        return "not Ready"
    if node.gpus < pool.gpus_per_node:
        return f"{node.gpus} of {pool.gpus_per_node} GPUs allocatable"
    return "carries a start-up taint" if node.startup_taint else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One pool's nodes on one side, sorted once for each sight.

    ``whole``: ephemeral, ours, schedulable and without fault; their instability is looked at by the clock. ``faulty``:
    ours with a fault. ``cordoned``: without fault, but unschedulable. ``joining``: with our joining taint.
    ``reserved``: never to be touched. ``opted_out``: ours, and left alone. ``strangers``: no tenure label.
    """

    whole: dict[str, Node]
    faulty: dict[str, Node]
    cordoned: dict[str, Node]
    joining: dict[str, Node]
    reserved: dict[str, Node]
    opted_out: dict[str, Node]
    strangers: dict[str, Node]
    latest_s: float

    def owned(self) -> int:
        """Nodes that are ours, whatever their health."""
        kinds = (self.whole, self.faulty, self.cordoned, self.joining, self.reserved, self.opted_out)
        return sum(len(kind) for kind in kinds)

    def stands(self, name: str) -> bool:
        """Whether a Node of that name was seen, whoever's it is."""
        return self.find(name) is not None or any(
            name in kind for kind in (self.reserved, self.opted_out, self.strangers)
        )

    def find(self, name: str) -> Node | None:
        """The ephemeral node of that name, if it was seen."""
        for kind in (self.whole, self.cordoned, self.faulty, self.joining):
            if name in kind:
                return kind[name]
        return None


def survey(seen: PoolSeen, pool: Pool, side: Side) -> Survey:
    """The nodes of a pool on one side by what can be done with them.

    The last survey is kept, and of a new sight only nodes that are other objects than before are looked at: most are
    the same at most looks. What comes back depends on ``seen`` and ``pool`` alone.
    """
    kept = _kept.get((side, pool.name))
    if kept is None or kept.pool is not pool:
        kept = _Kept(seen=PoolSeen(), pool=pool, shelf_of={}, found=_sorted(PoolSeen(), pool, {})[0])
    if kept.seen is not seen:
        found, shelf_of = _sorted(seen, pool, kept.shelf_of)
        kept = _kept[side, pool.name] = _Kept(seen=seen, pool=pool, shelf_of=shelf_of, found=found)
    return kept.found


_Shelved = tuple[Node, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    seen: PoolSeen
    pool: Pool
    shelf_of: dict[str, _Shelved]
    found: Survey


_kept: dict[tuple[Side, str], _Kept] = {}


def _sorted(seen: PoolSeen, pool: Pool, known: dict[str, _Shelved]) -> tuple[Survey, dict[str, _Shelved]]:
    """The survey, and on which shelf each node came: ``known`` says it of those that did not change."""
    shelves: tuple[dict[str, Node], ...] = ({}, {}, {}, {}, {}, {}, {})
    shelf_of: dict[str, _Shelved] = {}
    latest_s = float("-inf")
    for node in seen.nodes:
        name = node.name
        shelved = known.get(name)
        if shelved is None or shelved[0] is not node:
            shelved = (node, _shelf(node, pool))
        shelf_of[name] = shelved
        shelves[shelved[1]][name] = node
        if shelved[1] == 0 and node.since_s > latest_s:
            latest_s = node.since_s
    whole, faulty, cordoned, joining, reserved, opted_out, strangers = shelves
    found = Survey(
        whole=whole,
        faulty=faulty,
        cordoned=cordoned,
        joining=joining,
        reserved=reserved,
        opted_out=opted_out,
        strangers=strangers,
        latest_s=latest_s,
    )
    return found, shelf_of


def _shelf(node: Node, pool: Pool) -> int:
    """The number of its kind, in the order of ``Survey``'s fields."""
    if node.tenure is None:
        return 6
    if not node.managed:
        return 5
    if node.tenure is Tenure.RESERVED:
        return 4
    if node.joining:
        return 3
    if fault_of(node, pool):
        return 1
    return 2 if node.cordoned else 0
