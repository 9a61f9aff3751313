"""What people, GitOps and teams write over workloads, quota and research work."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.control.state import Bounds
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.dice import Dice
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.tally import Tally
from ebbtide.simulate.world.things import GITOPS, PERSON, Deed, Things
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace, Trouble


class Edits:
    """Writers of fields that we write too."""

    def __init__(self, things: Things, line: Timeline, tally: Tally, dice: Dice, pace: Pace) -> None:
        self.things = things
        self._line, self._tally, self._dice, self._pace = line, tally, dice, pace
        self.deeds: dict[Trouble, Deed] = {
            Trouble.EDIT_REPLICAS: self._edit_replicas,
            Trouble.EDIT_QUOTA: self._edit_quota,
            Trouble.EDIT_BOUNDS: self._edit_bounds,
            Trouble.ROLLOUT: self._roll_out,
            Trouble.DEACTIVATE: self._deactivate,
            Trouble.GITOPS_REPLICAS: self._gitops_replicas,
            Trouble.GITOPS_QUOTA: self._gitops_quota,
            Trouble.GITOPS_BOUNDS: self._gitops_bounds,
        }

    def _did(self, who: str, what: str, to: str) -> None:
        self._tally.did(who, what, to, self._line.now_s)

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
            self._did(who, f"set bounds to {bounds}", one.workload.name)
            one.set_bounds(bounds, who)
            self.things.edited("workload", one.workload.name)
            self._line.after(self._pace.autoscaler_period_s, one.autoscale, loud=False)

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
                self._line.after(self._pace.gitops_period_s, sync)

        self._line.after(self._pace.gitops_period_s, sync)
        return going.clear
