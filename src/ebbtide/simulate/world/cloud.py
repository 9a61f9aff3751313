"""The provider: takes named nodes out, brings others, and does neither as asked when troubled.

What it does follows from sizes alone: of too many nodes it takes some (those named first), of too few it orders more.
A machine that was taken out lies in stock until another order brings it to the other side.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count

from ebbtide.control.state import Side, Tenure
from ebbtide.fleet.pool import Pool
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.machines import Host, Machine, NodePool
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace, Provider, Troubles

PROVIDER = "provider"


@dataclass(slots=True, eq=False)
class Order:
    """One node that a pool is owed. ``idle``: it failed, and nobody works on it now. ``short``: no capacity yet."""

    pool: NodePool
    idle: bool = False
    short: bool = False


class Cloud:
    """One provider for one pool's machines, on both sides."""

    def __init__(
        self, pool: Pool, line: Timeline, tally: Tally, dice: Dice, troubles: Troubles, pace: Pace, provider: Provider
    ) -> None:
        self.pool, self.troubles = pool, troubles
        self.sides = {side: NodePool(pool.name, side, pool.gpus_per_node, line, tally) for side in Side}
        self.machines: list[Machine] = []
        self.stock: deque[Machine] = deque()
        self.orders: dict[Order, None] = {}
        self.waiting: deque[Order] = deque()  # due, and nothing in stock
        self.out_until_s = 0.0
        self._line, self._tally, self._dice, self._provider = line, tally, dice, provider
        told_s = {Side.PRODUCTION: pool.reclaim_time_s, Side.RESEARCH: pool.yield_time_s}
        self._toward = {side: pace.toward(told_s[side]) for side in Side}
        self._names = count(1)

    def begin(self, production_nodes: int) -> None:
        """Stand all machines up as they are at the start: reserved ones in research, the others as told."""
        for number in range(self.pool.nodes):
            reserved = number < self.pool.reserved_nodes
            in_production = not reserved and number - self.pool.reserved_nodes < production_nodes
            side = self.sides[Side.PRODUCTION if in_production else Side.RESEARCH]
            machine = self._machine(reserved=reserved)
            tenure = Tenure.RESERVED if reserved else Tenure.EPHEMERAL
            side.add(self._host(machine, side.side, tenure, whole=True))
            side.size += 1

    def _machine(self, *, reserved: bool = False, extra: bool = False, ours: bool = True) -> Machine:
        machine = Machine(number=len(self.machines) + 1, pool=self.pool.name, reserved=reserved, extra=extra, ours=ours)
        self.machines.append(machine)
        return machine

    def _host(self, machine: Machine, side: Side, tenure: Tenure | None, *, whole: bool) -> Host:
        number = machine.number if self._provider is Provider.RELABEL else next(self._names)
        name = (
            f"{self.pool.name}-{number}"
            if self._provider is Provider.RELABEL
            else f"{self.pool.name}-{side[0]}{number}"
        )
        made = number if self._provider is Provider.CLOUD else machine.number
        return Host(
            name=name,
            side=side,
            machine=machine,
            provider_id=f"{self._provider}://{self.pool.name}/{made}",
            tenure=tenure,
            full_gpus=self.pool.gpus_per_node,
            gpus=self.pool.gpus_per_node if whole else 0,
            ready=whole,
            since_s=self._line.now_s,
            startup_taint=not whole,
            joining=not whole,
            marked=not whole,
        )

    def write_size(self, side: Side, size: int, named: tuple[str, ...] = ()) -> None:
        """Somebody writes a pool's size and names nodes that are to go. The same again: it tries again what failed."""
        pool = self.sides[side]
        pool.resize(size)
        for name in named:
            host = pool.hosts.get(name)
            if host is not None and not host.leaving:
                self._take_out(pool, host)
        self._level(pool)
        for order in self.orders:
            if order.pool is pool and order.idle:
                self._work_on(order, crowd=1)

    def _level(self, pool: NodePool) -> None:
        """Order what a pool lacks; take what it has too much, of orders first, then of nodes: any, as providers do."""
        owed = [order for order in self.orders if order.pool is pool]
        surplus = len(pool.machines) - pool.leaving + len(owed) - pool.size
        for order in reversed(owed[max(len(owed) - surplus, 0) :] if surplus > 0 else []):
            del self.orders[order]
            surplus -= 1
            self._restock()
        for _ in range(surplus):
            standing = list(pool.standing())
            host = self._dice.pick([host for host in standing if host.machine.extra] or standing)
            self._tally.did(PROVIDER, "took a node that nobody named", host.name, self._line.now_s)
            self._take_out(pool, host)
        if surplus < 0:
            self._order(pool, -surplus)

    def _order(self, pool: NodePool, nodes: int) -> None:
        come = nodes
        if nodes > 1 and self._dice.chance(self.troubles.delivery_part):
            come = 1 + int(self._dice.share() * (nodes - 1))
            self._tally.did(PROVIDER, "had capacity for a part only", pool.name, self._line.now_s)
        for index in range(nodes):
            order = Order(pool)
            self.orders[order] = None
            if index < come:
                self._work_on(order, crowd=nodes)
            else:
                order.short = True
                pool.stock(self._line.now_s)
                self._line.after(self._dice.between(self.troubles.stall_s), self._deliver, order)

    def _work_on(self, order: Order, *, crowd: int) -> None:
        """How long an order takes, and whether it comes to anything."""
        dice, troubles, pace = self._dice, self.troubles, self._toward[order.pool.side]
        took_s = dice.between(pace.delivery_s) * (1.0 + pace.crowd_factor * (crowd.bit_length() - 1))
        order.idle = False
        if dice.chance(troubles.delivery_fails):
            self._line.after(took_s, self._fail, order)
            return
        if dice.chance(troubles.delivery_stalls):
            took_s += dice.between(troubles.stall_s)
        elif dice.chance(troubles.delivery_late):
            took_s *= dice.between(troubles.late_factor)
        self._line.after(took_s, self._deliver, order)

    def _fail(self, order: Order) -> None:
        """The provider gives up, and tries again by itself much later: unless it is asked anew."""
        if order in self.orders:
            order.idle = True
            self._tally.did(PROVIDER, "failed to bring a node", order.pool.name, self._line.now_s)
            self._line.after(self._dice.between(self.troubles.stall_s), self._retry, order)

    def _retry(self, order: Order) -> None:
        if order.idle and order in self.orders:
            self._work_on(order, crowd=1)

    def _wait(self, order: Order) -> None:
        self.waiting.append(order)
        order.pool.stock(self._line.now_s)

    def _deliver(self, order: Order) -> None:
        if order not in self.orders:
            return  # cancelled, or brought before
        if not self.stock or self._line.now_s < self.out_until_s:
            self._wait(order)
            return
        del self.orders[order]
        self._say_stock()
        self._join(order.pool, self.stock.popleft())
        if self._dice.chance(self.troubles.delivery_twice):
            machine = self._machine(extra=True)
            self._tally.did(PROVIDER, "brought a node twice", order.pool.name, self._line.now_s)
            self._join(order.pool, machine)
            self._line.after(self._dice.between(self.troubles.noticed_s), self.take_back, machine)

    def _restock(self) -> None:
        """Orders that waited for capacity go on, as far as there is any."""
        self.waiting = deque(order for order in self.waiting if order in self.orders)
        if self._line.now_s < self.out_until_s:
            return
        for _ in range(min(len(self.stock), len(self.waiting))):
            order = self.waiting.popleft()
            self._line.after(self._dice.between(self._toward[order.pool.side].ready_s), self._deliver, order)
        self._say_stock()

    def _say_stock(self) -> None:
        if not self.waiting and not any(order.short for order in self.orders):
            for pool in self.sides.values():
                pool.stock(None)

    def run_out(self, lasts_s: float) -> None:
        """No capacity for a while, whatever is in stock."""
        self.out_until_s = max(self.out_until_s, self._line.now_s + lasts_s)
        self._tally.did(PROVIDER, "ran out of capacity", self.pool.name, self._line.now_s)
        self._line.at(self.out_until_s, self._restock)

    def _join(self, pool: NodePool, machine: Machine) -> None:
        """The Node object appears: not Ready, without GPUs, with the joining taint and the template's tenure."""
        host = self._host(machine, pool.side, Tenure.EPHEMERAL, whole=False)
        pool.add(host)
        ready_s = self._dice.between(self._toward[pool.side].ready_s)
        if self._dice.chance(self.troubles.never_ready):
            self._tally.did(PROVIDER, "brought a node that is never Ready", host.name, self._line.now_s)
            ready_s = self._dice.between(self.troubles.mended_s)
        self._line.after(ready_s, self._ready, pool, host)

    def _ready(self, pool: NodePool, host: Host) -> None:
        if host.standing:
            pool.set_ready(host, True)
            self._line.after(self._dice.between(self._toward[pool.side].gpus_s), self._plug, pool, host)

    def _plug(self, pool: NodePool, host: Host) -> None:
        """The device plugin comes up, or only for some of the GPUs; somebody mends those hours later."""
        if not host.standing or not host.startup_taint:
            return
        if self._dice.chance(self.troubles.broken_gpus):
            gpus = int(self._dice.share() * host.full_gpus)
            self._tally.did(PROVIDER, f"brought a node with {gpus} GPUs", host.name, self._line.now_s)
            pool.set_gpus(host, gpus)
            self._line.after(self._dice.between(self.troubles.mended_s), self.mend, host)
        else:
            pool.set_gpus(host, host.full_gpus)

    def mend(self, host: Host) -> None:
        """All GPUs are back, and the node is Ready."""
        pool = self.sides[host.side]
        if host.standing:
            pool.set_ready(host, True)
            if host.gpus < host.full_gpus or host.startup_taint:
                pool.set_gpus(host, host.full_gpus)

    def _take_out(self, pool: NodePool, host: Host) -> None:
        host.leaving = True
        pool.leaving += 1
        pool.touch(host)
        took_s = self._dice.between(self._toward[pool.side.other].removal_s)
        if self._dice.chance(self.troubles.removal_stalls):
            took_s += self._dice.between(self.troubles.stall_s)
        elif self._dice.chance(self.troubles.removal_slow):
            took_s *= self._dice.between(self.troubles.slow_factor)
        self._line.after(took_s, self._gone, pool, host)

    def _gone(self, pool: NodePool, host: Host) -> None:
        if not host.standing:
            return
        pool.remove(host)
        if host.machine.recalled:
            self._forget(host.machine)
        else:
            host.machine.stocked_s = self._line.now_s
            self.stock.append(host.machine)
            self._restock()

    def _forget(self, machine: Machine) -> None:
        if machine.ours:
            self._tally.stand(self.pool.name, machine.place, None, self._line.now_s)
        machine.place = None

    def take_back(self, machine: Machine) -> None:
        """A machine that is not the fleet's goes: the provider noticed, or whoever joined it took it away."""
        host, machine.recalled = machine.host, True
        if machine in self.stock:
            self.stock.remove(machine)
            self._forget(machine)
        elif host is not None and not host.leaving:
            pool = self.sides[host.side]
            counted = len(pool.machines) - pool.leaving <= pool.size  # somebody had counted it in
            replaced = machine.extra and len(self.stock) > len(self.orders)
            if counted and not replaced:
                pool.resize(pool.size - 1)
            self._take_out(pool, host)
            if counted and replaced:  # the one that it stood for was never asked for again, and lies in stock
                self._level(pool)

    def heal(self) -> None:
        """Nothing is wrong with the provider any more, and what it owes comes in ordinary time."""
        self.out_until_s = self._line.now_s
        for pool in self.sides.values():
            for host in list(pool.machines.values()):
                self.mend(host)
                if host.leaving:
                    removal_s = self._toward[pool.side.other].removal_s
                    self._line.after(self._dice.between(removal_s), self._gone, pool, host)
        for machine in [one for one in self.machines if one.extra and one.place is not None]:
            self.take_back(machine)
        self._square_up()
        self._line.after(self._dice.between(self.troubles.noticed_s), self._put_back)
        for order in list(self.orders):
            delivery_s = self._toward[order.pool.side].delivery_s
            self._line.after(self._dice.between(delivery_s), self._deliver, order)
        self._restock()

    def _put_back(self) -> None:
        """Somebody sees machines that lie in stock for an hour and that nobody asks for: research's size gets them."""
        idle = sum(machine.stocked_s < self._line.now_s - 3600.0 for machine in self.stock) - len(self.orders)
        if idle > 0:
            self._tally.did("alice", f"put {idle} forgotten machines back", self.pool.name, self._line.now_s)
            self.write_size(Side.RESEARCH, self.sides[Side.RESEARCH].size + idle)

    def _square_up(self) -> None:
        """Somebody lowers a size that asks for more machines than there are: what was taken back is owed no more."""
        asked = sum(pool.size for pool in self.sides.values())
        there = sum((one.place is not None or one.host is not None) and not one.recalled for one in self.machines)
        for order in list(self.orders)[: max(asked - there, 0)]:
            del self.orders[order]
            order.pool.resize(order.pool.size - 1)
            self._tally.did("alice", "lowered a size that nothing can fill", order.pool.name, self._line.now_s)

    def lend(self, side: Side) -> Machine:
        """A strange machine joins a side by hand: no tenure, not of the pool's size."""
        machine = self._machine(ours=False)
        pool = self.sides[side]
        pool.add(self._host(machine, side, None, whole=True))
        pool.resize(pool.size + 1)
        return machine

    def lose(self, host: Host, who: str) -> None:
        """Somebody else removes a node and lowers the size with it."""
        pool = self.sides[host.side]
        pool.resize(pool.size - 1)
        self._tally.did(who, "removed a node", host.name, self._line.now_s)
        if not host.leaving:
            self._take_out(pool, host)
