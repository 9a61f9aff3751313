"""Workloads as the controller's ``Replicas``: scale, pods on existing Ready nodes, budgets, rollouts, autoscalers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.adapters.kubernetes import marks
from ebbtide.adapters.kubernetes.autoscalers import Autoscaler, read_autoscalers
from ebbtide.adapters.kubernetes.bindings import WorkloadBinding
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.namespaces import list_by_namespace
from ebbtide.adapters.kubernetes.objects import Budget, Pod, condition, is_true, last_writer
from ebbtide.adapters.kubernetes.pods_of import pods_by_owner
from ebbtide.adapters.kubernetes.readings import Reading, is_deleted, is_ready, matches
from ebbtide.adapters.kubernetes.scales import Scaled, read_scales
from ebbtide.control.state import Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Production:
    """What actions need again of what was seen: the objects behind the workloads."""

    replicas: dict[str, Replicas]
    scales: dict[str, Scaled]
    autoscalers: dict[str, Autoscaler]


def read_production(
    cluster: Cluster, kinds: Kinds, workloads: tuple[WorkloadBinding, ...], reading: Reading
) -> Production:
    """All workloads whose scale is there; one that is not there is absent."""
    scales = read_scales(cluster, kinds, workloads)
    autoscalers = read_autoscalers(cluster, kinds, workloads)
    spaces = {one.name: one.namespace for one in workloads}
    budgets = list_by_namespace(cluster, "/apis/policy/v1", "poddisruptionbudgets", set(spaces.values()), Budget)
    selectors = {name: (spaces[name], scaled.selector) for name, scaled in scales.items()}
    pods = pods_by_owner(selectors, reading.pods)
    ready = {node.metadata.name for nodes in reading.nodes.values() for node in nodes if is_ready(node)}
    replicas = {
        name: _replicas(name, scaled, pods[name], budgets[spaces[name]], autoscalers.get(name), ready)
        for name, scaled in scales.items()
    }
    return Production(replicas=replicas, scales=scales, autoscalers=autoscalers)


def _replicas(
    name: str,
    scaled: Scaled,
    pods: list[Pod],
    budgets: Iterable[Budget],
    autoscaler: Autoscaler | None,
    ready_nodes: set[str],
) -> Replicas:
    meta = scaled.object.metadata
    living = [pod for pod in pods if not is_deleted(pod)]
    standing = [pod for pod in living if pod.spec.node_name]
    serving = sum(pod.spec.node_name in ready_nodes and is_true(pod.status.conditions, "Ready") for pod in standing)
    return Replicas(
        workload=name,
        wanted=scaled.replicas,
        ready=serving,
        on=dict(Counter(pod.spec.node_name for pod in standing)),
        autoscaler=None if autoscaler is None else autoscaler.name,
        bounds=None if autoscaler is None else autoscaler.bounds,
        lowest_least=0 if autoscaler is None else autoscaler.lowest_least,
        lowered_cost=_lowered(standing),
        disruptions_allowed=_allowed(budgets, living),
        unschedulable=sum(_is_unschedulable(pod) for pod in living),
        rolling=scaled.rolling,
        paused=scaled.object.spec.paused,
        ordered=scaled.ordered,
        managed=marks.is_managed(meta.labels, meta.annotations),
        set_by=autoscaler.set_by if autoscaler is not None else _scaled_by(scaled),
    )


def _lowered(standing: list[Pod]) -> frozenset[str]:
    """Nodes on which every pod of it is to go first; one that lacks the cost is asked for again."""
    lowered = {pod.spec.node_name for pod in standing if is_lowered(pod)}
    return frozenset(lowered - {pod.spec.node_name for pod in standing if not is_lowered(pod)})


def is_lowered(pod: Pod) -> bool:
    """Whether a pod carries our deletion cost."""
    return pod.metadata.annotations.get(marks.DELETION_COST) == marks.LOWERED


def _allowed(budgets: Iterable[Budget], pods: list[Pod]) -> int | None:
    """What the strictest of its budgets lets go; None: no budget holds its pods."""
    if not pods:
        return None
    labels = pods[0].metadata.labels
    holding = [one for one in budgets if matches(one.spec.selector, labels)]
    return min((one.status.disruptions_allowed if one.status else 0 for one in holding), default=None)


def _is_unschedulable(pod: Pod) -> bool:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"


def _scaled_by(scaled: Scaled) -> str:
    return last_writer(scaled.object.metadata.managed_fields, "spec", "replicas")
