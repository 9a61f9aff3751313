"""Every action as API calls, on the objects as they were last seen; a refusal is an ``ApiError``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ebbtide.adapters.kubernetes import node_acts
from ebbtide.adapters.kubernetes.bindings import Bindings
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.drain import delete_pods, drain
from ebbtide.adapters.kubernetes.events import Reference
from ebbtide.adapters.kubernetes.looks import Looked
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.adapters.kubernetes.quota import Quota, write_quota
from ebbtide.adapters.kubernetes.references import reference_of
from ebbtide.adapters.kubernetes.replica_acts import lower_cost, set_bounds, set_replicas
from ebbtide.adapters.kubernetes.replica_sight import Production
from ebbtide.adapters.kubernetes.rereading import rereading
from ebbtide.adapters.kubernetes.research_acts import activate, park
from ebbtide.adapters.kubernetes.research_sight import Research
from ebbtide.adapters.nodepools.protocol import NodePool
from ebbtide.control import actions as act
from ebbtide.control.state import Bounds, Side

_RESEARCH = (act.SetQuota, act.Park, act.Activate)
# Each reads its object itself and is right whatever it finds; the others stand on what was seen (§6.8).
_REREAD = frozenset(
    {act.Cordon, act.Uncordon, act.Quarantine, act.Admit, act.RemoveNodes, act.GrowPool, act.Park, act.Activate}
)


def side_of_action(action: act.Action) -> Side:
    """The cluster that an action needs: the side it names, or research's quota and work, or production and home."""
    side = getattr(action, "side", None)
    if isinstance(side, Side):
        return side
    if isinstance(action, _RESEARCH):
        return Side.RESEARCH
    if isinstance(action, act.Restore) and action.what.startswith("quota/"):
        return Side.RESEARCH
    return Side.PRODUCTION


class Acts:
    """What was seen last, and a way for each kind of action. What we wrote counts as seen."""

    def __init__(
        self, clusters: Mapping[Side, Cluster], bindings: Bindings, node_pools: Mapping[str, NodePool]
    ) -> None:
        self._clusters, self._bindings, self._node_pools = clusters, bindings, node_pools
        self._production = Production(replicas={}, scales={}, autoscalers={})
        self._research = Research(work=(), paths={})
        self._quota: Quota | None = None
        self._ways: dict[type, Callable[[Any], None]] = {
            act.Cordon: lambda one: node_acts.cordon(self._of(one), one.node),
            act.Uncordon: lambda one: node_acts.uncordon(self._of(one), one.node),
            act.Quarantine: lambda one: node_acts.cordon(self._of(one), one.node, quarantine=True),
            act.Admit: lambda one: node_acts.admit(self._of(one), one.side, one.node, one.tenure),
            act.Drain: lambda one: drain(self._of(one), one.node),
            act.DeletePods: lambda one: delete_pods(self._of(one), one.node),
            act.RemoveNodes: self._remove_nodes,
            act.GrowPool: self._grow_pool,
            act.SetQuota: lambda one: self._set_quota(one.pool, one.gpus),
            act.Park: self._park,
            act.Activate: self._activate,
            act.LowerDeletionCost: self._lower_cost,
            act.SetReplicas: lambda one: self._set_replicas(one.workload, one.replicas),
            act.Surge: lambda one: self._set_replicas(one.workload, one.replicas),
            act.SetBounds: lambda one: self._set_bounds(one.workload, one.bounds),
            act.Restore: self._restore,
        }

    def know(self, looked: Looked) -> None:
        """Remember the objects behind a sight."""
        self._production = looked.production or self._production
        if looked.research is not None:
            self._research, self._quota = looked.research, looked.quota

    def do(self, action: act.Action) -> None:
        """Do it; ``ApiError`` where it was not done."""
        way = self._ways[type(action)]
        if type(action) in _REREAD:
            rereading(lambda: way(action))
        else:
            way(action)

    def about(self, action: act.Action) -> Reference | None:
        """The object that an action is about, as it was seen."""
        return reference_of(action, self._bindings, self._production, self._research, self._quota)

    def _of(self, action: Any) -> Cluster:
        return self._clusters[action.side]

    def _missing(self, side: Side, what: str) -> ApiError:
        asked = Asked(cluster=self._clusters[side].name, verb="find", resource=what)
        return ApiError(Kind.MISSING, asked, "it was not seen")

    # --- nodes

    def _provider(self, pool: str, side: Side) -> NodePool:
        if pool not in self._node_pools:
            raise self._missing(side, f"provider of pool {pool}")
        return self._node_pools[pool]

    def _remove_nodes(self, action: act.RemoveNodes) -> None:
        self._provider(action.pool, action.side).remove(action.side, action.nodes, action.size)

    def _grow_pool(self, action: act.GrowPool) -> None:
        self._provider(action.pool, action.side).grow(action.side, action.size)

    # --- research

    def _set_quota(self, pool: str, gpus: int) -> None:
        quota = self._quota
        if quota is None or pool not in quota.flavors or gpus < 0:
            raise self._missing(Side.RESEARCH, f"quota of pool {pool}")
        if quota.gpus[pool] == gpus:
            return
        self._quota = write_quota(self._clusters[Side.RESEARCH], quota, pool, gpus)

    def _park(self, action: act.Park) -> None:
        """Only what Kueue knows can be deactivated; what is gone already need not be."""
        work = next((one for one in self._research.work if one.name == action.work), None)
        if work is not None and action.work not in self._research.paths:
            raise self._missing(Side.RESEARCH, f"Kueue Workload of {action.work}")
        if work is not None:
            park(self._clusters[Side.RESEARCH], self._research.paths[action.work], work.pool)

    def _activate(self, action: act.Activate) -> None:
        path = self._research.paths.get(action.work)
        if path is not None:
            activate(self._clusters[Side.RESEARCH], path)

    # --- workloads

    def _set_replicas(self, workload: str, replicas: int) -> None:
        scaled = self._production.scales.get(workload)
        if scaled is None:
            raise self._missing(Side.PRODUCTION, f"scale of {workload}")
        if scaled.replicas != replicas:
            set_replicas(self._clusters[Side.PRODUCTION], scaled, replicas)
            self._production.scales[workload] = replace(scaled, replicas=replicas)

    def _set_bounds(self, workload: str, bounds: Bounds) -> None:
        autoscaler = self._production.autoscalers.get(workload)
        if autoscaler is None:
            raise self._missing(Side.PRODUCTION, f"autoscaler of {workload}")
        if autoscaler.bounds != bounds:
            written = set_bounds(self._clusters[Side.PRODUCTION], autoscaler, bounds)
            self._production.autoscalers[workload] = written

    def _lower_cost(self, action: act.LowerDeletionCost) -> None:
        scaled = self._production.scales.get(action.workload)
        if scaled is None:
            raise self._missing(Side.PRODUCTION, f"scale of {action.workload}")
        space = self._bindings.workload(action.workload).namespace
        lower_cost(self._clusters[Side.PRODUCTION], space, scaled, action.nodes)

    # --- giving back

    def _restore(self, action: act.Restore) -> None:
        """A field's value, as memory names it: ``kind/name:field``."""
        name, _, field = action.what.partition(":")
        kind, _, name = name.partition("/")
        if kind == "quota":
            self._set_quota(name, int(action.value))
        elif kind == "workload" and field == "replicas":
            self._set_replicas(name, int(action.value))
        elif kind == "workload" and field == "bounds":
            self._set_bounds(name, Bounds.of(action.value))
        elif kind != "node":  # its cordon is another action's
            raise self._missing(Side.PRODUCTION, action.what)
