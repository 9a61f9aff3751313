"""Production: workloads with their replicas, as Deployments, StatefulSets and autoscalers treat them.

A replica is one pod, or the pods of one that is wider than a node (then it takes whole nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ebbtide.control.state import Bounds, Replicas, Tenure
from ebbtide.fleet.workload import Workload
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.machines import Host, NodePool, shares
from ebbtide.simulate.world.replicas import Manners, Phase, Replica, Scheduler
from ebbtide.simulate.world.tally import Series
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace, Troubles


class Deployment:
    """One workload's replicas and their controller."""

    def __init__(
        self,
        workload: Workload,
        manners: Manners,
        pool: NodePool,
        line: Timeline,
        dice: Dice,
        troubles: Troubles,
        pace: Pace,
        ready: Series,
        scheduler: Scheduler,
    ) -> None:
        self.workload, self.manners, self.pool, self.troubles = workload, manners, pool, troubles
        self.wanted = 0
        self.bounds = manners.bounds
        self.set_by = ""
        self.paused = False
        self.revision = 1
        self.rolling = False  # pods of an older revision are left
        self.pods: dict[Replica, None] = {}  # not deleted, oldest first
        self.pending: dict[Replica, None] = {}
        self.on: dict[str, int] = {}
        self.series = ready
        self.standing = Series()  # placed, ready or not, until they are deleted
        self.rate_rps: Callable[[], float | None] = _unknown
        self.cut = 0  # replicas that died under their requests
        self._ghosts = 0
        self._numbers = 0
        self._line, self._dice, self._pace, self._scheduler = line, dice, pace, scheduler
        self._cheap = False  # some pods carry a negative deletion cost
        self._scheduler.changed[self] = None

    def _changed(self) -> None:
        self._scheduler.changed[self] = None

    def begin(self, replicas: int) -> None:
        """Stand so many replicas up, ready from the first instant."""
        self.scale(replicas, "")
        for group in self._put():
            self._ready(group)

    def look(self) -> Replicas:
        """The scale and its pods as they read now."""
        return Replicas(
            workload=self.workload.name,
            wanted=self.wanted,
            ready=self.series.count,
            on=self.on.copy(),
            autoscaler=self.manners.autoscaler,
            bounds=self.bounds,
            lowest_least=int(self.manners.autoscaler is not None),
            lowered_cost=self._lowered(),
            disruptions_allowed=self.allowed,
            unschedulable=len(self.pending),
            rolling=self.rolling,
            paused=self.paused,
            ordered=self.manners.stateful,
            managed=self.manners.managed,
            set_by=self.set_by,
        )

    @property
    def allowed(self) -> int | None:
        """How many pods its budget lets go now."""
        return None if self.manners.budget is None else max(self.series.count - self.manners.budget, 0)

    def _lowered(self) -> frozenset[str]:
        if not self._cheap:
            return frozenset()
        low = {host.name for one in self.pods if one.lowered for host in one.hosts}
        if low:
            low.difference_update(host.name for one in self.pods if not one.lowered for host in one.hosts)
        return frozenset(low)

    def scale(self, replicas: int, who: str) -> None:
        """Somebody writes the scale."""
        self.wanted, self.set_by = replicas, who
        self.reconcile()

    def set_bounds(self, bounds: Bounds, who: str) -> None:
        """Somebody writes the autoscaler's bounds; it looks within its period."""
        self.bounds, self.set_by = bounds, who
        self._changed()

    def autoscale(self) -> None:
        """What a Horizontal Pod Autoscaler does each period: within its bounds, after its load; at 0 it is off."""
        rate_rps = self.rate_rps()
        if self.manners.autoscaler is None or self.bounds is None or self.wanted == 0:
            return
        load = self.wanted if rate_rps is None else -int(-rate_rps // self.manners.target_rps)
        wanted = min(max(load, self.bounds.least, 1), self.bounds.most)
        if wanted != self.wanted:
            self.scale(wanted, self.manners.autoscaler)

    def lower_cost(self, nodes: frozenset[str]) -> None:
        """The pods that stand on these nodes now carry a negative deletion cost, and no others."""
        self._cheap = bool(nodes)
        for one in self.pods:
            one.lowered = any(host.name in nodes for host in one.hosts)
        self._changed()

    def roll_out(self) -> None:
        """A new revision, a quarter of the replicas at a time."""
        self.revision += 1
        self.rolling = True
        self.reconcile()

    def reconcile(self) -> None:
        """Make as many as are wanted: end the surplus, add what lacks, go on with a rollout."""
        self._changed()
        new = old = len(self.pods)
        if self.rolling:
            new = sum(one.revision == self.revision for one in self.pods)
        old -= new
        self.rolling = old > 0
        surge = max(1, self.wanted // 4) if old else 0
        more = min(self.wanted - new, self.wanted + surge - new - old) - self._ghosts
        if more > 0:
            self._create(more)
        surplus = len(self.pods) - self.wanted - (surge if old else 0)
        if surplus > 0:
            self.end(self._first_to_go(surplus))
        if old:
            self._retire_old()

    def _create(self, count: int) -> None:
        for _ in range(count):
            self._numbers += 1
            one = Replica(self, self._numbers, self.revision)
            self.pods[one] = None
            self.pending[one] = None
        self._scheduler.ask_for(self)

    def _first_to_go(self, count: int) -> list[Replica]:
        """Seen: not placed, then not ready, then lower cost, then with more of its like on the node, then younger."""
        if self.manners.stateful:
            return sorted(self.pods, key=lambda one: -one.number)[:count]

        def order(one: Replica) -> tuple[int, bool, int, int]:
            together = self.on[one.hosts[0].name] if one.hosts else 0
            return one.phase, not one.lowered, -together, -one.number

        return sorted(self.pods, key=order)[:count]

    def _retire_old(self) -> None:
        """Old ones that are not ready go at once; ready ones while three quarters of the wanted stay ready."""
        spare = self.series.count - (self.wanted - self.wanted // 4)
        going = []
        for one in self.pods:
            if one.revision < self.revision and (one.phase < Phase.READY or spare > 0):
                spare -= one.phase is Phase.READY
                going.append(one)
        self.end(going)
        if going:
            self.reconcile()

    def place(self) -> None:
        """Put pending replicas where there is room; the others stay Pending."""
        for ones in self._put():
            self._line.after(self._startup_s(), self._ready, ones, loud=False)

    def _put(self) -> list[list[Replica]]:
        """Pending replicas that found room, together those of one node: they pull their weights together."""
        gpus, pool = self.workload.gpus_per_replica, self.pool
        started: dict[Host, list[Replica]] = {}
        for one in list(self.pending):
            hosts = pool.find(Tenure.EPHEMERAL, gpus)
            if hosts is None:
                break
            del self.pending[one]
            one.phase, one.hosts = Phase.STARTING, hosts
            for host, share in shares(gpus, hosts, pool.full_gpus).items():
                pool.hold(host, one, share)
                pool.take(host, share)
                self.on[host.name] = self.on.get(host.name, 0) + 1
            self.standing.add(1, self._line.now_s)
            started.setdefault(hosts[0], []).append(one)
            self._changed()
        return list(started.values())

    def _startup_s(self) -> float:
        startup_s = self.workload.startup_time_s * self._dice.between(self._pace.startup_factor)
        if self._dice.chance(self.troubles.pods_slow):
            startup_s *= self._dice.between(self.troubles.slow_factor)
        return startup_s

    def _ready(self, ones: list[Replica]) -> None:
        for one in ones:
            if one.phase is Phase.STARTING:
                one.phase = Phase.READY
                self.recount(one)
        if self.rolling:
            self.reconcile()

    def recount(self, one: Replica) -> None:
        """Count a replica as ready, or no longer."""
        ready = one.phase is Phase.READY and all(host.serves for host in one.hosts)
        if ready is not one.counted:
            one.counted = ready
            self._changed()
            self.series.add(1 if ready else -1, self._line.now_s)

    def end(self, ones: Iterable[Replica]) -> None:
        """Delete pods: they finish their requests within their grace, or hang."""
        going: dict[Host, list[Replica]] = {}
        for one in ones:
            self._leave(one, Phase.TERMINATING)
            if one.hosts:
                going.setdefault(one.hosts[0], []).append(one)
            else:
                one.phase = Phase.GONE
        for host, those in going.items():
            if self._dice.chance(self.troubles.pods_hang) or not host.ready:
                self._line.after(self._pace.pod_grace_s, self._hang, those)
                took_s = self._dice.between(self.troubles.mended_s)
            else:
                took_s = self._pace.pod_grace_s * self._dice.share()
            self._line.after(took_s, self.gone, those, loud=host.cordoned)

    def _leave(self, one: Replica, phase: Phase) -> None:
        self.pods.pop(one, None)
        self.pending.pop(one, None)
        self._changed()
        if one.phase < Phase.TERMINATING:
            if one.hosts:
                self.standing.add(-1, self._line.now_s)
            for host in one.hosts:
                self.on[host.name] -= 1
                if not self.on[host.name]:
                    del self.on[host.name]
        one.phase = phase
        self.recount(one)

    def _hang(self, ones: list[Replica]) -> None:
        for one in ones:
            if one.phase is Phase.TERMINATING:
                one.hung = True
                for host in one.hosts:
                    host.hung += 1
                    self.pool.touch(host)

    def gone(self, ones: Iterable[Replica]) -> None:
        """Pods are off their nodes, and their GPUs free."""
        for one in ones:
            if one.phase is Phase.GONE:
                continue
            one.phase = Phase.GONE
            for host in one.hosts:
                share = host.residents[one]
                host.hung -= one.hung
                self.pool.free(host, one)
                self.pool.take(host, -share)

    def heal(self) -> None:
        """What hangs is gone, and a rollout that was stuck ends."""
        hanging = {one: None for host in self.pool.machines.values() for one in host.residents}
        self.gone([one for one in hanging if isinstance(one, Replica) and one.hung and one.deployment is self])
        if self.rolling:
            self.end([one for one in self.pods if one.revision < self.revision])
            self.reconcile()

    def evict(self, host: Host) -> bool:
        """Evict what stands on a node, as far as the budget lets it go; False where it refuses some."""
        here = [one for one in host.residents if isinstance(one, Replica) and one.deployment is self]
        here = [one for one in here if one.phase < Phase.TERMINATING]
        allowed = self.allowed
        going = []
        for one in here:
            if allowed is not None and one.counted:
                if allowed == 0:
                    continue
                allowed -= 1
            going.append(one)
        if going:
            self.end(going)
            self.reconcile()
        return len(going) == len(here)

    def kill(self, one: Replica) -> None:
        """Delete a pod without grace: gone at once, with its requests, and replaced."""
        self.cut += one.counted
        self.pods.pop(one, None)
        if one.phase < Phase.TERMINATING:
            self._leave(one, Phase.TERMINATING)
        self.gone([one])
        self.reconcile()

    def lost(self, one: Replica) -> None:
        """A replica is dead: it is replaced only after its pods were collected."""
        if one.phase is Phase.GONE:
            return
        if one.phase < Phase.TERMINATING:
            self.cut += one.counted
            self.orphaned(one)
        self.gone([one])

    def orphaned(self, one: Replica) -> None:
        """The pods' Node object is gone; the Deployment goes on counting them for a while."""
        if one.phase < Phase.TERMINATING:
            self._leave(one, Phase.TERMINATING)
            self._ghosts += 1
            self._line.after(self._pace.pod_gc_s, self._collect, one, loud=False)

    def _collect(self, one: Replica) -> None:
        self._ghosts -= 1
        self.gone([one])
        self.reconcile()


def _unknown() -> float | None:
    """Nobody measures the load."""
    return None
