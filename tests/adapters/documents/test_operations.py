"""The Fleet's fields that the controller reads: what they come to, what is refused, what the digest makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.adapters.documents.fleet import FleetDocument, fleet_of_object, read_fleet
from ebbtide.adapters.documents.yaml_text import parse
from ebbtide.errors import InputError
from ebbtide.fleet.operations import (
    ClusterApi,
    ClusterRef,
    Clusters,
    Drain,
    LiveDemand,
    MachineDeploymentRef,
    Mode,
    ProviderSide,
    QuotaFlavor,
    QuotaKind,
    QuotaRef,
    Relabel,
    ScaleTarget,
)

BASE = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  demand: [{name: log, file: requests.csv.gz}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 6}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 6s}, targets: [{wait: 2s}]}
  - {name: agents, gpusPerReplica: 2, service: {time: 8s}, targets: [{wait: 5s}]}
"""
LIVE = "{name: live, promql: 'sum by (service) (rate(requests_total[5m]))'}"


def document(folder: Path, text: str) -> FleetDocument:
    (folder / "fleet.yaml").write_text(text)
    return read_fleet(folder / "fleet.yaml")


def changed(old: str, new: str, text: str = BASE) -> str:
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def test_what_is_not_said_is_completed(tmp_path: Path) -> None:
    fleet = document(tmp_path, BASE).fleet
    assert (fleet.mode, fleet.clusters, fleet.live_demand) == (Mode.SHADOW, None, None)
    (pool,) = fleet.pools
    assert (pool.node_selector, pool.gpu_resource) == ((("ebbtide.dev/pool", "h100"),), "nvidia.com/gpu")
    assert pool.provider == Relabel()
    chat = fleet.workload("chat")
    assert chat.scales == ScaleTarget(api_version="apps/v1", kind="Deployment", namespace="default", name="chat")
    assert chat.drain == Drain(grace_s=None, path=None)
    assert (fleet.research.minimum_run_time_s, fleet.research.quota) == (0.0, None)


def test_every_field_is_carried_over(tmp_path: Path, full_fleet: str) -> None:
    read = document(tmp_path, full_fleet)
    fleet = read.fleet
    assert fleet.mode is Mode.ACTIVE
    assert fleet.clusters == Clusters(
        production=ClusterRef(context="arn:aws:eks:x:1:cluster/prod"), research=ClusterRef(in_cluster=True)
    )
    assert fleet.live_demand == LiveDemand(source="live", promql="sum by (service) (rate(requests_total[5m]))")
    (pool,) = fleet.pools
    assert pool.node_selector == (("ebbtide.dev/pool", "h"), ("gpu", "h100"))
    assert pool.gpu_resource == "amd.com/gpu"
    research = ProviderSide.RESEARCH
    assert pool.provider == ClusterApi(
        production=MachineDeploymentRef(namespace="capi", name="prod-h100", cluster=research),
        research=MachineDeploymentRef(namespace="capi", name="lab-h100", cluster=research),
    )
    chat = fleet.workload("chat")
    assert chat.scales == ScaleTarget(
        api_version="leaderworkerset.x-k8s.io/v1", kind="LeaderWorkerSet", namespace="serving", name="c"
    )
    assert chat.drain == Drain(grace_s=120.0, path="/drain")
    assert fleet.research.minimum_run_time_s == 900.0
    flavors = (QuotaFlavor(pool="h100", reserved="fixed", ephemeral="tide"),)
    assert fleet.research.quota == QuotaRef(kind=QuotaKind.CLUSTER_QUEUE, name="research", flavors=flavors)
    assert fleet.research.quota.ephemeral_flavor("l4") is None
    # What is read live is no source of a plan, not even of the workloads that name none.
    assert [source.name for source in read.sources] == ["log"]
    assert chat.demand.source == "log"


WITH_LIVE = ("demand: [", f"liveDemand: live\n  demand: [{LIVE}, ")
SAME = [
    ("spec:", "spec:\n  mode: Active"),
    ("spec:", "spec:\n  clusters: {production: {context: a}, research: {context: b}}"),
    WITH_LIVE,
    ("nodes: 6", "nodes: 6, provider: {relabel: {}}"),
    (
        "nodes: 6",
        "nodes: 6, provider: {clusterapi: {production: {namespace: a, name: b}, research: {namespace: a, name: c}}}",
    ),
    ("nodes: 6", "nodes: 6, nodeSelector: {ebbtide.dev/pool: h100}, gpuResource: nvidia.com/gpu"),
    ("name: chat,", "name: chat, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}, drain: {},"),
    ("name: chat,", "name: chat, scaleTargetRef: {},"),
    ("spec:", "spec:\n  research: {minimumRunTime: 0s, quota: null}"),
    ("spec:", "status: {mode: Shadow}\nspec:"),
]
OTHER = [
    ("nodes: 6", "nodes: 6, nodeSelector: {ebbtide.dev/pool: other}"),
    ("nodes: 6", "nodes: 6, gpuResource: amd.com/gpu"),
    ("name: chat,", "name: chat, scaleTargetRef: {name: other},"),
    ("name: chat,", "name: chat, scaleTargetRef: {namespace: chat},"),
    ("name: chat,", "name: chat, drain: {grace: 2m},"),
    ("spec:", "spec:\n  research: {minimumRunTime: 1m}"),
    ("spec:", "spec:\n  research: {quota: {of: {kind: Cohort, name: r}, flavors: [{pool: h100, ephemeral: tide}]}}"),
]


@pytest.mark.parametrize(("old", "new"), SAME, ids=[new[:60] for _, new in SAME])
def test_how_the_controller_acts_does_not_change_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert document(tmp_path, changed(old, new)).fleet.digest == document(tmp_path, BASE).fleet.digest


@pytest.mark.parametrize(("old", "new"), OTHER, ids=[new[:60] for _, new in OTHER])
def test_what_it_acts_on_does(tmp_path: Path, old: str, new: str) -> None:
    assert document(tmp_path, changed(old, new)).fleet.digest != document(tmp_path, BASE).fleet.digest


QUOTA = "research: {quota: {of: {kind: ClusterQueue, name: r}, flavors: [%s]}}"
CAPI = "nodes: 6, provider: {clusterapi: {production: %s, research: %s}}"
REFUSED = [
    (("spec:", "spec:\n  mode: active"), "unknown_value", "mode", "Active"),
    (("spec:", "spec:\n  clusters: {production: {}, research: {context: a}}"), "missing_field", None, "context"),
    (
        ("spec:", "spec:\n  clusters: {production: {context: a, inCluster: true}, research: {context: a}}"),
        "conflicting_fields",
        "clusters.production",
        "inCluster",
    ),
    (
        ("spec:", "spec:\n  clusters: {production: {context: 'https://x'}, research: {context: a}}"),
        "address_in_document",
        "clusters.production.context",
        "no address",
    ),
    (
        ("spec:", "spec:\n  clusters: {production: {context: a, token: b}, research: {context: a}}"),
        "unknown_field",
        "clusters.production.token",
        "context",
    ),
    ((WITH_LIVE[0], WITH_LIVE[1].replace("liveDemand: live", "liveDemand: livee")), "unknown_source", None, "live"),
    (("spec:", "spec:\n  liveDemand: log"), "unknown_source", "liveDemand", "there is none"),
    (("demand: [", f"demand: [{LIVE}, "), "unused_source", "demand[live]", "liveDemand"),
    (
        (WITH_LIVE[0], WITH_LIVE[1].replace("'}", "', origin: 2026-09-01T00:00}")),
        "conflicting_fields",
        "demand[live]",
        "origin",
    ),
    (("file: requests.csv.gz", "promql: up"), "missing_field", "demand", "live demand alone"),
    (("file: requests.csv.gz", "file: requests.csv.gz, promql: up"), "conflicting_fields", "demand[log]", "promql"),
    (("nodes: 6", "nodes: 6, provider: {relable: {}}"), "unknown_field", "pools[h100].provider.relable", "relabel"),
    (("nodes: 6", "nodes: 6, provider: {eks: {}}"), "not_yet", "pools[h100].provider.eks", "remove it"),
    (("nodes: 6", "nodes: 6, provider: {}"), "missing_field", "pools[h100].provider", "relabel"),
    (
        ("nodes: 6", CAPI % ("{namespace: a, name: b}", "{namespace: a, name: b, cluster: production}")),
        "conflicting_fields",
        "pools[h100].provider.clusterapi",
        "a/b",
    ),
    (("nodes: 6", "nodes: 6, nodeSelector: {'a b': c}"), "bad_name", None, "label"),
    (("nodes: 6", "nodes: 6, nodeSelector: {a: 'b c'}"), "bad_form", "pools[h100].nodeSelector.a", "b c"),
    (("nodes: 6", "nodes: 6, gpuResource: 'nvidia gpu'"), "bad_form", "pools[h100].gpuResource", "nvidia gpu"),
    (
        ("name: agents,", "name: agents, scaleTargetRef: {name: chat},"),
        "scaled_twice",
        "workloads[agents].scaleTargetRef",
        "chat scales",
    ),
    (("name: chat,", "name: chat, scaleTargetRef: {kind: deployment},"), "bad_form", None, "deployment"),
    (("name: chat,", "name: chat, drain: {path: 'http://x/'},"), "bad_form", "workloads[chat].drain.path", "http"),
    (("spec:", "spec:\n  " + QUOTA % "{pool: h10, ephemeral: t}"), "unknown_pool", None, "h100"),
    (
        ("spec:", "spec:\n  " + QUOTA % "{pool: h100, ephemeral: t}, {pool: h100, ephemeral: u}"),
        "duplicate_name",
        None,
        "h100",
    ),
    (
        ("spec:", "spec:\n  " + QUOTA % "{pool: h100, ephemeral: t, reserved: t}"),
        "conflicting_fields",
        None,
        "h100's ephemeral",
    ),
    (("spec:", "spec:\n  " + QUOTA % ""), "out_of_range", "research.quota.flavors", "at least 1"),
]


@pytest.mark.parametrize(("change", "kind", "field", "word"), REFUSED, ids=[row[0][1][:70] for row in REFUSED])
def test_refused(tmp_path: Path, change: tuple[str, str], kind: str, field: str | None, word: str) -> None:
    with pytest.raises(InputError) as caught:
        document(tmp_path, changed(*change))
    assert caught.value.kind == kind
    assert word in str(caught.value)
    assert field in (None, caught.value.place.field)
    assert caught.value.place.line is not None


SERVED = {"uid": "7c", "resourceVersion": "12", "generation": 3, "managedFields": [{"manager": "kubectl"}]}


def test_an_object_is_read_as_the_file_is(tmp_path: Path, full_fleet: str) -> None:
    data = parse(full_fleet).data
    data["metadata"] |= SERVED | {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 200_000}}
    data["status"] = {"mode": "Active", "nodes": "6", "pools": [{"name": "h100", "productionNodes": 6}]}
    assert fleet_of_object(data) == document(tmp_path, full_fleet).fleet


def test_an_object_is_refused_by_its_name() -> None:
    data = parse(BASE).data
    data["metadata"] |= {"namespace": "ebbtide", "uid": "7c"}
    data["spec"]["pools"][0]["node"] = 3
    with pytest.raises(InputError) as caught:
        fleet_of_object(data)
    assert str(caught.value) == "Fleet ebbtide/two-models: pools[h100].node: unknown field; nearest: nodes"
