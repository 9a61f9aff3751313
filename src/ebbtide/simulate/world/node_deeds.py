"""What strangers and bad luck do to nodes."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.control.state import Side
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.machines import Host, Machine
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.things import AUTOSCALER, PERSON, Deed, Things
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import LASTS_S, Trouble

_EVICTED_AFTER_S = 300.0  # a pod's toleration of a node that is not Ready


class NodeDeeds:
    """People, hardware and other autoscalers."""

    def __init__(self, things: Things, line: Timeline, tally: Tally, dice: Dice) -> None:
        self.things = things
        self._line, self._tally, self._dice = line, tally, dice
        self.deeds: dict[Trouble, Deed] = {
            Trouble.CORDON: self._cordon,
            Trouble.UNCORDON: self._uncordon,
            Trouble.AUTOSCALER: self._autoscaler,
            Trouble.DELETE_NODE: self._delete_node,
            Trouble.STRANGE_NODE: self._strange_node,
            Trouble.NOT_READY: self._not_ready,
            Trouble.SICK_GPU: self._sick_gpu,
            Trouble.STOCK_OUT: self._stock_out,
        }

    def _did(self, who: str, what: str, to: str) -> None:
        self._tally.did(who, what, to, self._line.now_s)

    def _host(self, what: str, fits: Callable[[Host], bool]) -> Host | None:
        sides = [pool for cloud in self.things.clouds.values() for pool in cloud.sides.values()]
        if what:
            found = [pool.hosts[what] for pool in sides if what in pool.hosts]
            return found[0] if found else None
        hosts = [host for pool in sides for host in pool.hosts.values() if fits(host)]
        return self._dice.pick(hosts) if hosts else None

    def _touch(self, host: Host) -> None:
        self.things.clouds[host.machine.pool].sides[host.side].touch(host)

    def _cordon(self, what: str) -> Callable[[], None] | None:
        host = self._host(what, lambda host: not host.cordoned)
        if host is None:
            return None
        self._did(PERSON, "cordoned", host.name)
        host.cordoned, host.cordoned_by_us = True, False
        self._touch(host)
        return lambda: self._lift(host)

    def _lift(self, host: Host) -> None:
        if host.cordoned and not host.cordoned_by_us:
            host.cordoned = False
            self._touch(host)

    def _uncordon(self, what: str) -> None:
        host = self._host(what, lambda host: host.cordoned and host.cordoned_by_us)
        if host is not None:
            self._did(PERSON, "uncordoned", host.name)
            host.cordoned = host.cordoned_by_us = False
            self._touch(host)

    def _autoscaler(self, what: str) -> Callable[[], None] | None:
        """It removes a node that is empty and that nobody marked; somebody puts the size back much later."""
        host = self._host(what, self._looks_idle)
        if host is None or not self._looks_idle(host):
            return None
        cloud, side = self.things.clouds[host.machine.pool], host.side
        cloud.lose(host, AUTOSCALER)
        self.things.edited("pool", f"{side}/{cloud.pool.name}")
        return lambda: self._size_back(cloud, side)

    def _looks_idle(self, host: Host) -> bool:
        machine = host.machine
        idle = host.ready and not (host.residents or host.marked or host.leaving)
        return idle and machine.ours and not machine.reserved

    def _size_back(self, cloud: Cloud, side: Side) -> None:
        machines = sum(one.place is not None or one.host is not None for one in cloud.machines)
        if sum(pool.size for pool in cloud.sides.values()) < machines:  # nobody else did before
            self._did(PERSON, "put the size back", f"{side}/{cloud.pool.name}")
            cloud.write_size(side, cloud.sides[side].size + 1)
            self.things.edited("pool", f"{side}/{cloud.pool.name}")

    def _delete_node(self, what: str) -> Callable[[], None] | None:
        host = self._host(what, lambda host: host.machine.ours and not host.joining and not host.leaving)
        if host is None:
            return None
        self._did(PERSON, "deleted the Node object of", host.name)
        pool = self.things.clouds[host.machine.pool].sides[host.side]
        pool.hide(host)
        return lambda: pool.show(host) if host.standing and not host.there else None

    def _strange_node(self, what: str) -> Callable[[], None] | None:
        clouds = list(self.things.clouds.values())
        cloud = self.things.clouds[what] if what else self._dice.pick(clouds)
        side = self._dice.pick(list(Side))
        machine = cloud.lend(side)
        self._did(PERSON, "joined a strange node to", f"{side}/{cloud.pool.name}")
        self.things.edited("pool", f"{side}/{cloud.pool.name}")
        return lambda: self._take_home(cloud, machine)

    def _take_home(self, cloud: Cloud, machine: Machine) -> None:
        if machine.host is not None:
            cloud.take_back(machine)

    def _not_ready(self, what: str) -> Callable[[], None] | None:
        host = self._host(what, lambda host: host.ready and not host.joining)
        if host is None:
            return None
        self._did("hardware", "a node is not Ready", host.name)
        cloud = self.things.clouds[host.machine.pool]
        cloud.sides[host.side].set_ready(host, False)
        self._line.after(_EVICTED_AFTER_S, self._evict_all, host)
        return lambda: cloud.mend(host)

    def _evict_all(self, host: Host) -> None:
        """Pods on a node that stays silent are deleted and replaced; none of them is seen to go."""
        if host.ready or not host.standing:
            return
        for deployment in self.things.deployments.values():
            here = [one for one in deployment.pods if host in one.hosts]
            if here:
                deployment.end(here)
                deployment.reconcile()

    def _sick_gpu(self, what: str) -> Callable[[], None] | None:
        host = self._host(what, lambda host: host.ready and host.gpus == host.full_gpus)
        if host is None:
            return None
        self._did("hardware", "a node lost a GPU", host.name)
        cloud = self.things.clouds[host.machine.pool]
        cloud.sides[host.side].set_gpus(host, host.full_gpus - 1)
        return lambda: cloud.mend(host)

    def _stock_out(self, what: str) -> None:
        name = what or self._dice.pick(list(self.things.clouds))
        self.things.clouds[name].run_out(self._dice.between(LASTS_S[Trouble.STOCK_OUT]))
