"""Research: quota admits, nodes are looked for, gangs end whole; as Kueue was seen to do it.

What quota forgets and nodes do not is kept apart: a host's ``taken`` GPUs are promised to admitted work, its ``used``
ones are held by pods, those that are Terminating too.
"""

from __future__ import annotations

from collections.abc import Iterable

from ebbtide.control.state import ResearchWork, Tenure
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.jobs import Arrivals, Job, OnEviction, Stage
from ebbtide.simulate.world.machines import Host, NodePool, shares
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Troubles

_WITH_PODS = frozenset({Stage.ADMITTED, Stage.RUNNING, Stage.ENDING})


class Queue:
    """One pool's research work, reserved and ephemeral.

    ``quota_gpus``: nominal ephemeral quota; ``admitted_gpus``: what admitted work holds of it. ``shown``: work with
    pods, with quota, or inactive: what a controller sees. ``useful_gpu_s``, ``lost_gpu_s``: of work that has left.
    """

    def __init__(
        self, pool: NodePool, arrivals: Arrivals, line: Timeline, tally: Tally, dice: Dice, troubles: Troubles
    ) -> None:
        self.pool, self.arrivals, self.troubles = pool, arrivals, troubles
        self.quota_gpus = self.admitted_gpus = 0
        self.quota_set_by = ""
        self.queued: dict[bool, dict[Job, None]] = {False: {}, True: {}}
        self.homeless: dict[Job, None] = {}  # admitted, and without nodes
        self.waiting: dict[Job, None] = {}  # admitted to nodes that others still hold
        self.shown: dict[Job, None] = {}
        self.left: list[Job] = []
        self.changed: dict[Job, None] = {}  # to be seen anew
        self.quota_changed = True
        self._views: dict[str, ResearchWork] = {}
        self._line, self._tally, self._dice = line, tally, dice
        self._asked = False

    def look(self) -> Iterable[ResearchWork]:
        """The work that is seen."""
        at_s, views = self._line.now_s, self._views
        for job in self.changed:
            if job in self.shown:
                views[job.name] = job.look(at_s)
            else:
                views.pop(job.name, None)
        self.changed.clear()
        return views.values()

    def _show(self, job: Job) -> None:
        self.changed[job] = None
        if job.has_quota or job.stage in _WITH_PODS or not job.active:
            self.shown[job] = None
        else:
            self.shown.pop(job, None)

    def set_quota(self, gpus: int, who: str) -> None:
        """Somebody writes the nominal quota. Lowered below usage it ends nothing (fact 1)."""
        self.quota_gpus, self.quota_set_by, self.quota_changed = gpus, who, True
        self.ask()

    def ask(self) -> None:
        """There may be quota or room."""
        if not self._asked:
            self._asked = True
            self._line.at(self._line.now_s, self._admit, loud=False)

    def submit(self, job: Job) -> None:
        """Work comes, or comes again: before all that was submitted after it."""
        job.stage, job.hosts = Stage.QUEUED, ()
        queue = self.queued[job.reserved]
        queue[job] = None
        if job.run:
            for later in [one for one in queue if one.number > job.number]:
                queue[later] = queue.pop(later)
        self._show(job)

    def _admit(self) -> None:
        self._asked = False
        for job in list(self.waiting):
            self._start(job)
        for job in list(self.homeless):
            self._house(job)
        for reserved, queue in self.queued.items():
            if reserved and not (self.arrivals.load.fill_reserved and self.pool.has_room(Tenure.RESERVED)):
                continue
            self._fill(reserved)
            while admitted := self._admitted(queue):
                for job in admitted:
                    del queue[job]
                self._fill(reserved)

    def _fill(self, reserved: bool) -> None:
        queue = self.queued[reserved]
        while len(queue) < (1 if reserved else self.arrivals.load.backlog):
            self.submit(self.arrivals.next_job(self, reserved=reserved))

    def _admitted(self, queue: dict[Job, None]) -> list[Job]:
        admitted = []
        left_gpus = self.quota_gpus - self.admitted_gpus
        for job in queue:
            if (job.gpus <= left_gpus or job.reserved or not job.known) and self._admit_one(job):
                admitted.append(job)
                left_gpus = self.quota_gpus - self.admitted_gpus
        return admitted

    def _admit_one(self, job: Job) -> bool:
        """Quota first; with a topology also nodes that fit, cordoned ones left out (fact 8)."""
        if job.reserved or not job.known or self.arrivals.load.topology:
            hosts = self._find(job)
            if hosts is None:
                return False
            self._settle_on(job, hosts)
        else:
            self.homeless[job] = None
        job.stage = Stage.ADMITTED
        if job.known:
            job.has_quota = True
            self.admitted_gpus += 0 if job.reserved else job.gpus
        self._show(job)
        if job.hosts:
            self._start(job)
        else:
            self._house(job)
        return True

    def _find(self, job: Job) -> tuple[Host, ...] | None:
        return self.pool.find(Tenure.RESERVED if job.reserved else Tenure.EPHEMERAL, job.gpus)

    def _settle_on(self, job: Job, hosts: tuple[Host, ...]) -> None:
        job.hosts = hosts
        for host, share in shares(job.gpus, hosts, self.pool.full_gpus).items():
            self.pool.take(host, share)

    def _house(self, job: Job) -> None:
        hosts = self._find(job)
        if hosts is not None:
            del self.homeless[job]
            self._settle_on(job, hosts)
            self._start(job)

    def _start(self, job: Job) -> None:
        """Pods start where nothing Terminating is in their way; else they are Pending, with quota (fact 3)."""
        if not all(host.standing for host in job.hosts):
            self._lose_nodes(job)
            return
        need = shares(job.gpus, job.hosts, self.pool.full_gpus)
        if any(host.used + share > host.gpus or host.cordoned for host, share in need.items()):
            self.waiting[job] = None
            return
        self.waiting.pop(job, None)
        for host, share in need.items():
            self.pool.hold(host, job, share)
        job.stage, job.run = Stage.RUNNING, job.run + 1
        job.begun_s = self._line.now_s + self.arrivals.load.startup_s
        left_s = job.total_s - job.saved_s
        self._line.at(job.begun_s + left_s, self._finish, job, job.run, loud=False)
        if left_s > job.checkpoint_s and not job.reserved:  # what is never ended is not weighed
            self._line.at(job.begun_s + job.checkpoint_s, self._checkpoint, job, job.run, loud=False)
        self._show(job)

    def _checkpoint(self, job: Job, run: int) -> None:
        if job.run == run and job.stage is Stage.RUNNING:
            self.changed[job] = None
            self._line.after(job.checkpoint_s, self._checkpoint, job, run, loud=False)

    def _finish(self, job: Job, run: int) -> None:
        if job.run == run and job.stage is Stage.RUNNING:
            job.settle(self._line.now_s, saved=True)
            self._let_go(job)
            self._vacate(job)
            self._leave(job, Stage.DONE)

    def _leave(self, job: Job, stage: Stage) -> None:
        job.stage, job.active = stage, True
        self.left.append(job)
        self._show(job)
        if stage is Stage.LOST:
            job.write_off()
            self._tally.did("research", "lost work for good", job.name, self._line.now_s)
        self.ask()

    def _let_go(self, job: Job) -> None:
        """Quota and promised nodes are free as soon as pods are deleted, not when they are gone (fact 3)."""
        if job.has_quota:
            job.has_quota = False
            self.admitted_gpus -= 0 if job.reserved else job.gpus
        self._leave_nodes(job)
        self.ask()

    def _leave_nodes(self, job: Job) -> None:
        for host, share in shares(job.gpus, job.hosts, self.pool.full_gpus).items():
            self.pool.take(host, -share)
        self.homeless.pop(job, None)
        self.waiting.pop(job, None)

    def _vacate(self, job: Job) -> None:
        """Its pods are gone from all hosts; who waited for that may start."""
        for host in job.hosts:
            host.hung -= job.hung and job in host.residents
            self.pool.free(host, job)
        job.hosts, job.hung = (), False
        self.ask()

    def _lose_nodes(self, job: Job) -> None:
        """The nodes that it was to run on are not there any more: it looks for others, with its quota."""
        self._leave_nodes(job)
        job.hosts = ()
        self.homeless[job] = None
        self.ask()

    def park(self, job: Job, *, ours: bool) -> None:
        """``spec.active=false``: the whole gang ends (facts 2, 6); what does not requeue is lost."""
        if not job.active:
            return
        job.active, job.parked_by_us = False, ours
        if job.stage is Stage.QUEUED:
            self.queued[job.reserved].pop(job, None)
            job.stage = Stage.PARKED
        elif job.stage is Stage.ADMITTED:
            self._let_go(job)
            job.hosts, job.stage = (), Stage.PARKED
        elif job.stage is Stage.RUNNING:
            self._let_go(job)
            self._end(job)
        elif job.stage is Stage.ENDING and job.has_quota:  # evicted before, and about to run again
            self._let_go(job)
        self._show(job)

    def activate(self, job: Job) -> None:
        """``spec.active=true``: it requeues, and goes back where quota and an uncordoned node are (fact 4)."""
        job.active, job.parked_by_us = True, False
        if job.stage is Stage.PARKED:
            self.submit(job)
            self.ask()
        self._show(job)

    def _end(self, job: Job) -> None:
        """Its pods get the signal; they save what they can and go within their grace, or hang."""
        job.stage, job.ended_s = Stage.ENDING, self._line.now_s
        grace_s = self.arrivals.load.grace_s
        took_s = grace_s * max(self._dice.share(), 0.05) if job.saves_on_signal else 5.0
        if self._dice.chance(self.troubles.pods_hang):
            self._line.after(grace_s, self._hang, job, job.run)
            took_s = self._dice.between(self.troubles.mended_s)
        self._line.after(took_s, self.gone, job, job.run)

    def _hang(self, job: Job, run: int) -> None:
        if job.run == run and job.stage is Stage.ENDING:
            job.hung = True
            for host in job.hosts:
                host.hung += 1
                self.pool.touch(host)

    def gone(self, job: Job, run: int, *, killed: bool = False) -> None:
        """Its pods are gone; it waits anew, is parked, goes on looking for nodes, or is lost."""
        if job.run != run or job.stage is not Stage.ENDING:
            return
        job.settle(job.ended_s, saved=job.saves_on_signal and not killed and not job.hung)
        if job.has_quota:
            self._leave_nodes(job)
        self._vacate(job)
        if not job.requeues:
            self._leave(job, Stage.LOST)
        elif not job.active:
            job.stage = Stage.PARKED
            self._show(job)
        elif job.has_quota:
            job.stage = Stage.ADMITTED
            self.homeless[job] = None
            self._show(job)
            self.ask()
        else:
            self.submit(job)
            self.ask()

    def evict(self, job: Job) -> None:
        """A pod of it is evicted by a drain (fact 5): the gang starts anew, fails, or counts as complete."""
        if job.stage is not Stage.RUNNING:
            return
        if job.requeues and job.on_eviction is OnEviction.RETRIES:
            self._end(job)  # it costs a retry, and keeps its quota
            self._show(job)
            return
        if job.on_eviction is OnEviction.SILENTLY_COMPLETES and job.requeues:
            self._tally.did("research", "counted as complete what was not", job.name, self._line.now_s)
        job.requeues = False
        self._let_go(job)
        self._end(job)
        self._show(job)

    def kill(self, job: Job) -> None:
        """Its pods are deleted without grace: what was not saved is lost."""
        if job.stage is Stage.RUNNING:
            self.evict(job)
        self.gone(job, job.run, killed=True)

    def died(self, job: Job) -> None:
        """A machine is gone, and the pods there died unsaved."""
        if job.stage is Stage.RUNNING:
            self._tally.did("research", "died with a machine", job.name, self._line.now_s)
        self.kill(job)

    def heal(self) -> None:
        """What hangs is gone."""
        for job in [job for job in self.shown if job.hung]:
            self.gone(job, job.run)

    def totals(self) -> tuple[float, float, float]:
        """GPU-seconds useful, lost, and computed but neither yet, of all work so far."""
        every, at_s = self.every(), self._line.now_s
        open_s = sum((job.progress_s(at_s) - job.saved_s) * job.gpus for job in every)
        return sum(job.useful_gpu_s for job in every), sum(job.lost_gpu_s for job in every), open_s

    def every(self) -> tuple[Job, ...]:
        """All work so far: what has left first, what waits last."""
        return (*self.left, *self.shown, *self.queued[True], *self.queued[False])

    def find(self, name: str) -> Job | None:
        """Work that is seen, by name."""
        return next((job for job in self.shown if job.name == name), None)

    def here(self, host: Host) -> list[Job]:
        """Work with pods on a host."""
        return [job for job in host.residents if isinstance(job, Job)]
