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
    """One pool's nodes on one side, sorted once for each sight; in no order that means anything.

    ``whole``: ephemeral, ours, schedulable and without fault; their instability is looked at by the clock. ``faulty``:
    ours with a fault. ``cordoned``: without fault, but unschedulable. ``joining``: with our joining taint.
    ``reserved``: never to be touched. ``opted_out``: ours, and left alone. ``strangers``: no tenure label.
    ``latest_s``: since when the youngest whole node is as it is.
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
        return sum(map(len, kinds))

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


WHOLE, FAULTY, CORDONED, JOINING, RESERVED, OPTED_OUT, STRANGERS = range(7)


def survey(seen: PoolSeen, pool: Pool, side: Side) -> Survey:
    """The nodes of a pool on one side by what can be done with them.

    The last survey is kept, and of a new sight only nodes that are other objects than before are looked at: most are
    the same at most looks. What comes back depends on ``seen`` and ``pool`` alone.
    """
    kept = _kept.get((side, pool.name))
    if kept is None or kept.pool is not pool:
        kept = _Kept(seen=PoolSeen(), pool=pool, by_id={}, found=_of([{}, {}, {}, {}, {}, {}, {}], float("-inf")))
    if kept.seen is not seen:
        kept = _kept[side, pool.name] = _changed(kept, seen)
    return kept.found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A survey, and its nodes by identity: they are kept alive with it, so no other object can have theirs."""

    seen: PoolSeen
    pool: Pool
    by_id: dict[int, Node]
    found: Survey


_kept: dict[tuple[Side, str], _Kept] = {}


def _changed(kept: _Kept, seen: PoolSeen) -> _Kept:
    """The survey of a new sight: what is another object than before leaves its shelf, and comes on its own."""
    by_id = dict(zip(map(id, seen.nodes), seen.nodes, strict=True))
    shelves = _shelves(kept.found)
    copied: set[int] = set()

    def shelf(number: int) -> dict[str, Node]:
        if number not in copied:
            copied.add(number)
            shelves[number] = shelves[number].copy()
        return shelves[number]

    latest_s, youngest_gone = kept.found.latest_s, False
    for gone in kept.by_id.keys() - by_id.keys():
        node = kept.by_id[gone]
        number = _shelf(node, kept.pool)
        del shelf(number)[node.name]
        youngest_gone |= number == WHOLE and node.since_s == latest_s
    for new in by_id.keys() - kept.by_id.keys():
        node = by_id[new]
        number = _shelf(node, kept.pool)
        shelf(number)[node.name] = node
        if number == WHOLE:
            latest_s = max(latest_s, node.since_s)
    if youngest_gone:
        latest_s = max((node.since_s for node in shelves[WHOLE].values()), default=float("-inf"))
    return _Kept(seen=seen, pool=kept.pool, by_id=by_id, found=_of(shelves, latest_s))


def _shelves(found: Survey) -> list[dict[str, Node]]:
    return [
        found.whole,
        found.faulty,
        found.cordoned,
        found.joining,
        found.reserved,
        found.opted_out,
        found.strangers,
    ]


def _of(shelves: list[dict[str, Node]], latest_s: float) -> Survey:
    whole, faulty, cordoned, joining, reserved, opted_out, strangers = shelves
    return Survey(
        whole=whole,
        faulty=faulty,
        cordoned=cordoned,
        joining=joining,
        reserved=reserved,
        opted_out=opted_out,
        strangers=strangers,
        latest_s=latest_s,
    )


def _shelf(node: Node, pool: Pool) -> int:
    """The number of its kind, in the order of ``Survey``'s fields."""
    if node.tenure is None:
        return STRANGERS
    if not node.managed:
        return OPTED_OUT
    if node.tenure is Tenure.RESERVED:
        return RESERVED
    if node.joining:
        return JOINING
    if fault_of(node, pool):
        return FAULTY
    return CORDONED if node.cordoned else WHOLE
