"""What an action does to this world. Most say what is to be, so that doing them again changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ebbtide.control import actions as act
from ebbtide.control.state import Bounds, Side
from ebbtide.control.world import Result
from ebbtide.fleet.fleet import Fleet
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.node_doors import NodeDoors
from ebbtide.simulate.world.tally import OURS, Tally
from ebbtide.simulate.world.timeline import Timeline
from ebbtide.simulate.world.troubles import Pace

Written = tuple[str, str]  # kind and name of an object that is written with a precondition


def side_of(action: act.Action) -> Side:
    """The cluster that an action needs: a side is named, or research's quota and work, or production and home."""
    kind = type(action)
    if kind in _SIDED:
        return action.side  # type: ignore[attr-defined, no-any-return] # those kinds have one
    if kind in _RESEARCH:
        return Side.RESEARCH
    if isinstance(action, act.Restore) and action.what.startswith(("quota/", "node/research/")):
        return Side.RESEARCH
    return Side.PRODUCTION


_SIDED = frozenset(
    {
        act.Cordon,
        act.Uncordon,
        act.Drain,
        act.DeletePods,
        act.RemoveNodes,
        act.GrowPool,
        act.Admit,
        act.Quarantine,
    }
)
_RESEARCH = frozenset({act.SetQuota, act.Park, act.Activate})


def written_by(action: act.Action) -> Written | None:
    """The object that an action writes under the condition that it is as it was seen; None: it sets no condition."""
    if isinstance(action, (act.SetReplicas, act.Surge, act.SetBounds)):
        return "workload", action.workload
    if isinstance(action, act.SetQuota):
        return "quota", action.pool
    if isinstance(action, (act.GrowPool, act.RemoveNodes)):
        return "pool", f"{action.side}/{action.pool}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The ways in. Wrongs that no world would refuse are done, and written down in the tally."""

    fleet: Fleet
    clouds: dict[str, Cloud]
    deployments: dict[str, Deployment]
    queues: dict[str, Queue]
    tally: Tally
    line: Timeline
    pace: Pace
    _ways: dict[type, Callable[[Any], Result]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = NodeDoors(clouds=self.clouds, queues=self.queues, tally=self.tally, line=self.line)
        self._ways.update(nodes.ways())
        self._ways.update(
            {
                act.SetQuota: self._set_quota,
                act.Park: self._park,
                act.Activate: self._activate,
                act.LowerDeletionCost: self._lower_cost,
                act.SetReplicas: self._set_replicas,
                act.Surge: self._set_replicas,
                act.SetBounds: self._set_bounds,
                act.Restore: self._restore,
            }
        )

    def do(self, action: act.Action) -> Result:
        """Do it, and count it where it was done."""
        result = self._ways[type(action)](action)
        if result is Result.DONE:
            self.tally.counts[OURS, type(action).__name__] += 1
        return result

    def _wrong(self, what: str, to: str) -> None:
        self.tally.wrong(what, to, self.line.now_s)

    # --- workloads

    def _set_replicas(self, action: act.SetReplicas | act.Surge) -> Result:
        one = self.deployments.get(action.workload)
        if one is None:
            return Result.REFUSED
        if action.replicas < min(one.workload.min_replicas, one.wanted):
            self._wrong(f"{action.replicas} replicas, at least {one.workload.min_replicas}", action.workload)
        if one.wanted != action.replicas:
            one.scale(action.replicas, OURS)
            self._autoscale_soon(one)
        return Result.DONE

    def _set_bounds(self, action: act.SetBounds) -> Result:
        """An autoscaler is told once, and acts within its period; least above most is refused (fact 17)."""
        one = self.deployments.get(action.workload)
        if one is None or one.manners.autoscaler is None or action.bounds.least > action.bounds.most:
            return Result.REFUSED
        if action.bounds.least < one.workload.min_replicas:
            self._wrong(f"bounds from {action.bounds.least}, at least {one.workload.min_replicas}", action.workload)
        if one.bounds != action.bounds:
            one.set_bounds(action.bounds, OURS)
            self._autoscale_soon(one)
        return Result.DONE

    def _autoscale_soon(self, one: Deployment) -> None:
        if one.manners.autoscaler is not None:
            self.line.after(self.pace.autoscaler_period_s, one.autoscale, loud=False)

    def _lower_cost(self, action: act.LowerDeletionCost) -> Result:
        one = self.deployments.get(action.workload)
        if one is None:
            return Result.REFUSED
        one.lower_cost(action.nodes)
        return Result.DONE

    # --- research

    def _set_quota(self, action: act.SetQuota) -> Result:
        queue = self.queues.get(action.pool)
        if queue is None or action.gpus < 0:
            return Result.REFUSED
        if queue.quota_gpus != action.gpus:
            queue.set_quota(action.gpus, OURS)
        return Result.DONE

    def _park(self, action: act.Park) -> Result:
        """Only what Kueue knows can be deactivated; what is gone already need not be."""
        for queue in self.queues.values():
            job = queue.find(action.work)
            if job is not None:
                if not job.known:
                    return Result.REFUSED
                if job.reserved:
                    self._wrong("ended work on reserved nodes", job.name)
                queue.park(job, ours=True)
                return Result.DONE
        return Result.DONE

    def _activate(self, action: act.Activate) -> Result:
        """Never what others deactivated (§7.5)."""
        for queue in self.queues.values():
            job = queue.find(action.work)
            if job is not None and not job.active:
                if not job.parked_by_us:
                    return Result.REFUSED
                queue.activate(job)
        return Result.DONE

    # --- giving back

    def _restore(self, action: act.Restore) -> Result:
        """A quarantined node's mark, or a field's value, as ``kind/name:field`` names it."""
        name, _, field_name = action.what.partition(":")
        kind, _, name = name.partition("/")
        if kind == "node":
            side, _, _ = name.rpartition("/")
            return Result.DONE if side in ("", *Side) else Result.REFUSED  # its cordon is another action's
        if kind == "quota":
            return self._set_quota(act.SetQuota(pool=name, gpus=int(action.value), why=action.why))
        if kind != "workload":
            return Result.REFUSED
        if field_name == "replicas":
            return self._set_replicas(act.SetReplicas(workload=name, replicas=int(action.value), why=action.why))
        return self._set_bounds(act.SetBounds(workload=name, bounds=Bounds.of(action.value), why=action.why))
