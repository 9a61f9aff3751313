"""The ground truth: what a controller never sees whole, for those who check what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.control.state import Side
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.machines import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTruth:
    """One machine. ``side`` None: it travels, or lies in the provider's stock. ``node`` "": no Node object stands."""

    number: int
    pool: str
    side: Side | None
    node: str
    reserved: bool
    extra: bool
    joining: bool
    leaving: bool
    whole: bool
    usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTruth:
    """One pool's machines counted: every one of the fleet's is in exactly one of the first five.

    ``usable``: those of a side that can take pods. ``strange`` ones are not the fleet's; ``extra`` were sent
    although nobody asked.
    """

    production: int
    research: int
    reserved: int
    moving: int
    hidden: int
    usable_production: int
    usable_research: int
    extra: int
    strange: int

    @property
    def total(self) -> int:
        """The fleet's machines, each once; ``extra`` ones are among them."""
        return self.production + self.research + self.reserved + self.moving + self.hidden


def machine_truth(machine: Machine) -> MachineTruth:
    """One machine as it is."""
    host = machine.host
    return MachineTruth(
        number=machine.number,
        pool=machine.pool,
        side=None if host is None else host.side,
        node=host.name if host is not None and host.there else "",
        reserved=machine.reserved,
        extra=machine.extra,
        joining=host is not None and host.joining,
        leaving=host is not None and host.leaving,
        whole=host is not None and host.ready and host.gpus == host.full_gpus,
        usable=host is not None and host.takes_pods and host.gpus == host.full_gpus,
    )


def machines_of(cloud: Cloud) -> Iterable[MachineTruth]:
    """The fleet's machines of one pool, extra ones too, those that left for good not."""
    return (machine_truth(one) for one in cloud.machines if one.ours and one.place is not None)


def pool_truth(cloud: Cloud) -> PoolTruth:
    """One pool counted, machine by machine."""
    counts: Counter[str] = Counter()
    for one in machines_of(cloud):
        counts[_where(one)] += 1
        counts["extra"] += one.extra
        if one.usable and not one.reserved and one.side is not None:
            counts[f"usable {one.side}"] += 1
    return PoolTruth(
        production=counts["production"],
        research=counts["research"],
        reserved=counts["reserved"],
        moving=counts["moving"],
        hidden=counts["hidden"],
        usable_production=counts["usable production"],
        usable_research=counts["usable research"],
        extra=counts["extra"],
        strange=sum(not one.ours and one.host is not None for one in cloud.machines),
    )


def _where(one: MachineTruth) -> str:
    if one.side is None or one.leaving or one.joining:
        return "moving"
    if not one.node:
        return "hidden"
    if one.reserved:
        return "reserved" if one.side is Side.RESEARCH else "moving"
    return one.side.value
