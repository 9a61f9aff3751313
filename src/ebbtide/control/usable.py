"""Whether a node can be counted on: Ready, schedulable, all GPUs there, no start-up taint, stable (§6.4)."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.control.state import Node, PoolSeen, Tenure
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


def survey(seen: PoolSeen, pool: Pool) -> Survey:
    """The nodes by what can be done with them; the last surveys are kept, by the identity of what was seen."""
    key = (id(seen), pool.name)
    kept = _kept.get(key)
    if kept is not None and kept[0] is seen and kept[1] is pool:
        return kept[2]
    found = _surveyed(seen, pool)
    if len(_kept) >= 256:  # several pools on two sides, a few sights of each
        _kept.clear()
    _kept[key] = (seen, pool, found)
    return found


_kept: dict[tuple[int, str], tuple[PoolSeen, Pool, Survey]] = {}


def _surveyed(seen: PoolSeen, pool: Pool) -> Survey:
    whole: dict[str, Node] = {}
    faulty: dict[str, Node] = {}
    cordoned: dict[str, Node] = {}
    joining: dict[str, Node] = {}
    reserved: dict[str, Node] = {}
    opted_out: dict[str, Node] = {}
    strangers: dict[str, Node] = {}
    for node in seen.nodes:
        if node.tenure is None:
            strangers[node.name] = node
        elif not node.managed:
            opted_out[node.name] = node
        elif node.tenure is Tenure.RESERVED:
            reserved[node.name] = node
        elif node.joining:
            joining[node.name] = node
        elif fault_of(node, pool):
            faulty[node.name] = node
        elif node.cordoned:
            cordoned[node.name] = node
        else:
            whole[node.name] = node
    return Survey(
        whole=whole,
        faulty=faulty,
        cordoned=cordoned,
        joining=joining,
        reserved=reserved,
        opted_out=opted_out,
        strangers=strangers,
        latest_s=max((node.since_s for node in whole.values()), default=float("-inf")),
    )
