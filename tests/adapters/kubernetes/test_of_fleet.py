"""What a Fleet says of its objects, its clusters and its providers."""

from __future__ import annotations

import json

import pytest

from ebbtide.adapters.kubernetes.bindings import PoolBinding, QuotaBinding, WorkloadBinding, bindings_of
from ebbtide.adapters.kubernetes.connections import connect
from ebbtide.adapters.nodepools.clusterapi import ClusterApi
from ebbtide.adapters.nodepools.of_fleet import node_pools_of
from ebbtide.adapters.nodepools.relabel import Relabel
from ebbtide.control.state import Side
from ebbtide.errors import PermanentError
from ebbtide.fleet import operations as ops
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import DemandRef, Service, Target, TargetKind, Workload

AT = ops.MachineDeploymentRef(namespace="capi", name="a100", cluster=ops.ProviderSide.PRODUCTION)
FLEET = Fleet(
    name="f",
    digest="d",
    time_zone="UTC",
    confidence=0.9,
    patterns=(),
    pools=(
        Pool(name="h100", gpus_per_node=8, nodes=4),
        Pool(name="a100", gpus_per_node=4, nodes=4, provider=ops.ClusterApi(production=AT, research=AT)),
    ),
    workloads=(
        Workload(
            name="chat",
            demand=DemandRef(source="s", key="chat"),
            pool="h100",
            gpus_per_replica=2,
            service=Service(time_s=1.0),
            targets=(Target(kind=TargetKind.WAIT, bound_s=1.0),),
            scale_target=ops.ScaleTarget(kind="StatefulSet", namespace="serving", name="chat-v2"),
        ),
    ),
    research=Research(
        quota=ops.QuotaRef(
            kind=ops.QuotaKind.COHORT,
            name="research",
            flavors=(ops.QuotaFlavor(pool="h100", ephemeral="tide", reserved="fixed"),),
        )
    ),
)


def test_a_fleets_objects():
    bindings = bindings_of(FLEET)
    assert bindings.pool("h100") == PoolBinding(
        name="h100",
        gpus_per_node=8,
        node_selector={"ebbtide.dev/pool": "h100"},
        ephemeral="tide",
        reserved="fixed",
    )
    assert bindings.pool("a100").ephemeral == ""
    assert bindings.workload("chat") == WorkloadBinding(
        name="chat", pool="h100", kind="StatefulSet", namespace="serving", target="chat-v2"
    )
    assert bindings.quota == QuotaBinding(name="research", kind="Cohort")


def test_a_fleets_providers_speak_the_version_that_is_served(script, cluster):
    served = [{"name": "cluster.x-k8s.io", "versions": [{"version": "v1beta1"}]}]
    script.say("GET", "/apis", {"groups": served})
    script.say(
        "GET",
        "/apis/cluster.x-k8s.io/v1beta1/namespaces/capi/machinedeployments/a100",
        {"metadata": {"name": "a100"}, "spec": {"replicas": 3}},
    )
    script.say("GET", "/apis/cluster.x-k8s.io/v1beta1/namespaces/capi/machines", {"items": []})
    pools = node_pools_of(FLEET, bindings_of(FLEET), dict.fromkeys(Side, cluster))
    assert isinstance(pools["h100"], Relabel)
    assert isinstance(pools["a100"], ClusterApi)
    assert script.asked == []  # a cluster that does not answer keeps nobody from the others
    assert pools["a100"].look(Side.PRODUCTION, ()).size == 3


def write_kubeconfig(path, *contexts):
    body = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in contexts],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }
    path.write_text(json.dumps(body))
    return str(path)


def test_one_cluster_that_is_both_sides_is_connected_once_and_settings_override(tmp_path):
    path = write_kubeconfig(tmp_path / "config", "prod", "lab")
    one = ops.ClusterRef(context="prod")
    both = connect(ops.Clusters(production=one, research=one), kubeconfig=path)
    assert both[Side.PRODUCTION] is both[Side.RESEARCH]
    two = connect(ops.Clusters(production=one, research=one), kubeconfig=path, contexts={Side.RESEARCH: "lab"})
    assert [two[side].name for side in Side] == ["prod", "lab"]
    for cluster in (*both.values(), *two.values()):
        cluster.close()
    with pytest.raises(PermanentError, match="context nowhere"):
        connect(ops.Clusters(production=one, research=ops.ClusterRef(context="nowhere")), kubeconfig=path)
