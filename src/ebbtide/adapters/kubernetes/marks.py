"""Our names on other people's objects: labels, taints and annotations, and the marks that other controllers heed."""

from __future__ import annotations

from collections.abc import Mapping

TENURE = "ebbtide.dev/tenure"  # label; on research's ephemeral nodes a taint too: that flavor is opt-in (§7.2)
SIDE = "ebbtide.dev/side"  # label; which side a node stands on, where its cluster does not say it
JOINING = "ebbtide.dev/joining"  # taint
LEAVING = "ebbtide.dev/leaving"  # annotation of a MachineDeployment: names on their way out
CORDONED = "ebbtide.dev/cordoned-by"  # annotation: our own name, where the cordon is ours
QUARANTINED = "ebbtide.dev/quarantined"  # label, for people and alerts
MANAGED = "ebbtide.dev/managed"  # "false" on anything: not to be touched
PARKED = "ebbtide.dev/parked"  # annotation of a Kueue Workload that we set inactive (§7.5)

BEFORE = "ebbtide.dev/quota-before"  # annotation of the quota's object: what the flavors had before us, as JSON

US = "ebbtide"
NO_SCHEDULE = "NoSchedule"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
LOWERED = "-1000"  # a pod's own cost is 0; people use tens and hundreds, the range is that of 32 bits

# Cluster autoscaler and Karpenter leave a node alone that carries these (§6.8).
LEAVE_ALONE: Mapping[str, str] = {
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
    "karpenter.sh/do-not-disrupt": "true",
}


def is_managed(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Whether an object's owners let us touch it.

    >>> is_managed({}, {"ebbtide.dev/managed": "false"})
    False
    """
    return "false" not in (labels.get(MANAGED), annotations.get(MANAGED))
