"""People and other controllers: what they do at an instant, and what undoes it.

Every deed goes to the tally by name. What lasts is undone by whoever did it, or by somebody who mends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ebbtide.control.state import Bounds, Side
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.machines import Host, Machine
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import LASTS_S, Pace, Trouble, Troubles

PERSON = "alice"
GITOPS = "argocd"
AUTOSCALER = "cluster-autoscaler"
_EVICTED_AFTER_S = 300.0  # a pod's toleration of a node that is not Ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """What there is to be struck. ``edited``: told of every object that a stranger wrote, as (kind, name)."""

    clouds: dict[str, Cloud]
    deployments: dict[str, Deployment]
    queues: dict[str, Queue]
    edited: Callable[[str, str], None]
    darken: Callable[[Side, float], None]


class Strangers:
    """Whoever else has a hand on the clusters."""

    def __init__(
        self, things: Things, line: Timeline, tally: Tally, dice: Dice, troubles: Troubles, pace: Pace
    ) -> None:
        self.things, self.troubles, self.pace = things, troubles, pace
        self.until_s = troubles.until_s
        self.undone: dict[int, Callable[[], None]] = {}  # what is to be undone still
        self._number = 0
        self._line, self._tally, self._dice = line, tally, dice
        self._deeds: dict[Trouble, Callable[[str], Callable[[], None] | None]] = {
            Trouble.CORDON: self._cordon,
            Trouble.UNCORDON: self._uncordon,
            Trouble.EDIT_REPLICAS: self._edit_replicas,
            Trouble.EDIT_QUOTA: self._edit_quota,
            Trouble.EDIT_BOUNDS: self._edit_bounds,
            Trouble.ROLLOUT: self._roll_out,
            Trouble.DEACTIVATE: self._deactivate,
            Trouble.GITOPS_REPLICAS: self._gitops_replicas,
            Trouble.GITOPS_QUOTA: self._gitops_quota,
            Trouble.GITOPS_BOUNDS: self._gitops_bounds,
            Trouble.AUTOSCALER: self._autoscaler,
            Trouble.DELETE_NODE: self._delete_node,
            Trouble.STRANGE_NODE: self._strange_node,
            Trouble.NOT_READY: self._not_ready,
            Trouble.SICK_GPU: self._sick_gpu,
            Trouble.STOCK_OUT: self._stock_out,
        }
        for trouble, per_day in troubles.per_day:
            self._next(trouble, per_day)

    def _next(self, trouble: Trouble, per_day: float) -> None:
        if per_day > 0.0:
            self._line.after(self._dice.gap_s(per_day), self._by_chance, trouble, per_day, loud=False)

    def _by_chance(self, trouble: Trouble, per_day: float) -> None:
        if self._line.now_s < self.until_s:
            self.strike(trouble)
            self._next(trouble, per_day)

    def strike(self, trouble: Trouble, what: str = "", lasts_s: float | None = None) -> None:
        """Let a trouble happen now, to the named object or to one by chance; nothing where there is none such."""
        if lasts_s is None:
            lasts_s = self._dice.between(LASTS_S[trouble]) if trouble in LASTS_S else 0.0
        if trouble in (Trouble.DARK_PRODUCTION, Trouble.DARK_RESEARCH):
            side = Side.PRODUCTION if trouble is Trouble.DARK_PRODUCTION else Side.RESEARCH
            self.things.darken(side, self._line.now_s + lasts_s)
            self._tally.did("network", trouble.value, side.value, self._line.now_s)
            return
        undo = self._deeds[trouble](what)
        if undo is not None:
            self._number += 1
            self.undone[self._number] = undo
            self._line.after(lasts_s, self._undo, self._number)

    def _undo(self, number: int) -> None:
        undo = self.undone.pop(number, None)
        if undo is not None:
            undo()

    def stop(self) -> None:
        """Undo everything that is still to be undone."""
        for number in list(self.undone):
            self._undo(number)

    def _did(self, who: str, what: str, to: str) -> None:
        self._tally.did(who, what, to, self._line.now_s)

    # --- nodes

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

    # --- workloads and quota

    def _deployment(self, what: str, *, scaled: bool) -> Deployment | None:
        """One by name, or one whose scale (or bounds, where an autoscaler has it) is written by hand."""
        if what:
            return self.things.deployments[what]
        fits = [one for one in self.things.deployments.values() if (one.manners.autoscaler is not None) is scaled]
        return self._dice.pick(fits) if fits else None

    def _write_scale(self, one: Deployment, replicas: int, who: str) -> None:
        if one.wanted != replicas:
            self._did(who, f"set replicas to {replicas}", one.workload.name)
            one.scale(replicas, who)
            self.things.edited("workload", one.workload.name)

    def _edit_replicas(self, what: str) -> None:
        one = self._deployment(what, scaled=False)
        if one is not None:
            self._write_scale(one, max(one.wanted + self._dice.pick((-2, -1, 1, 2)), 0), PERSON)

    def _edit_quota(self, what: str) -> None:
        queue = self.things.queues[what or self._dice.pick(list(self.things.queues))]
        change = self._dice.pick((-2, -1, 1, 2)) * queue.pool.full_gpus
        self._write_quota(queue, max(queue.quota_gpus + change, 0), PERSON)

    def _write_quota(self, queue: Queue, gpus: int, who: str) -> None:
        if queue.quota_gpus != gpus:
            self._did(who, f"set quota to {gpus}", queue.pool.name)
            queue.set_quota(gpus, who)
            self.things.edited("quota", queue.pool.name)

    def _edit_bounds(self, what: str) -> None:
        one = self._deployment(what, scaled=True)
        if one is not None and one.bounds is not None:
            least = max(one.bounds.least + self._dice.pick((-1, 1)), 0)
            self._write_bounds(one, Bounds(least=least, most=max(one.bounds.most, least, 1)), PERSON)

    def _write_bounds(self, one: Deployment, bounds: Bounds, who: str) -> None:
        if one.bounds != bounds:
            self._did(who, f"set bounds to {bounds.least}..{bounds.most}", one.workload.name)
            one.set_bounds(bounds, who)
            self.things.edited("workload", one.workload.name)
            self._line.after(self.pace.autoscaler_period_s, one.autoscale, loud=False)

    def _roll_out(self, what: str) -> None:
        one = self.things.deployments[what or self._dice.pick(list(self.things.deployments))]
        self._did("team", "rolled out", one.workload.name)
        one.roll_out()

    def _deactivate(self, what: str) -> Callable[[], None] | None:
        jobs = [(queue, job) for queue in self.things.queues.values() for job in queue.shown if job.known]
        jobs = [(queue, job) for queue, job in jobs if job.active and what in ("", job.name)]
        if not jobs:
            return None
        queue, job = self._dice.pick(jobs)
        self._did(PERSON, "deactivated", job.name)
        queue.park(job, ours=False)
        return lambda: queue.activate(job) if not job.parked_by_us else None

    # --- GitOps: what it saw first is what it puts back, every three minutes

    def _gitops_replicas(self, what: str) -> Callable[[], None] | None:
        one = self._deployment(what, scaled=False)
        if one is None:
            return None
        replicas = one.wanted
        return self._again_and_again(lambda: self._write_scale(one, replicas, GITOPS))

    def _gitops_quota(self, what: str) -> Callable[[], None]:
        queue = self.things.queues[what or self._dice.pick(list(self.things.queues))]
        gpus = queue.quota_gpus
        return self._again_and_again(lambda: self._write_quota(queue, gpus, GITOPS))

    def _gitops_bounds(self, what: str) -> Callable[[], None] | None:
        one = self._deployment(what, scaled=True)
        if one is None or one.bounds is None:
            return None
        bounds = one.bounds
        return self._again_and_again(lambda: self._write_bounds(one, bounds, GITOPS))

    def _again_and_again(self, write: Callable[[], None]) -> Callable[[], None]:
        going = [True]

        def sync() -> None:
            if going:
                write()
                self._line.after(self.pace.gitops_period_s, sync)

        self._line.after(self.pace.gitops_period_s, sync)
        return going.clear
