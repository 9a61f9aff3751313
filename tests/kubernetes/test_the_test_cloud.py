"""The test cloud does what a real one does, and what goes wrong with one: the controller's tests stand on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kubelab.api import Api, Json
from kubelab.cloud import JOINING, Cloud, NodeTemplate, Outcome
from kubelab.cluster import Cluster, is_true
from kubelab.machines import DELETE_MACHINE, NO_STOCK, MachinePool, install_cluster_api
from kubelab.nodes import GPU, remove_node
from kubelab.objects import budget, deployment, running_pods
from kubelab.relabelled import SIDE, RelabelledMachines
from kubelab.waiting import steadily, until

TENURE = {"ebbtide.dev/pool": "h100", "ebbtide.dev/tenure": "ephemeral"}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """Eight machines."""
    with Cloud(stock=8) as running:
        yield running


@pytest.fixture
def pool(production: Cluster, new_namespace: Callable[[Cluster], str], cloud: Cloud) -> Iterator[MachinePool]:
    """A MachineDeployment in production; not made yet."""
    install_cluster_api(production)
    namespace = new_namespace(production)
    made = MachinePool(
        cloud=cloud, api=production.api, namespace=namespace, name=namespace, template=NodeTemplate(labels=TENURE)
    )
    yield made
    cloud.players.clear()
    for machine in made.machines:
        made.api.merge(
            f"{made.collection('machines')}/{machine['metadata']['name']}", {"metadata": {"finalizers": None}}
        )
        remove_node(made.api, machine["metadata"]["name"])


def _nodes(pool: MachinePool) -> list[Json]:
    return [node for node in pool.api.items("/api/v1/nodes") if node["metadata"]["name"].startswith(pool.name)]


def _ready(pool: MachinePool) -> list[str]:
    return sorted(node["metadata"]["name"] for node in _nodes(pool) if is_true(node, "Ready"))


def _gpus(node: Json) -> int:
    return int(node["status"]["allocatable"][GPU])


def _resize(pool: MachinePool, replicas: int) -> None:
    pool.api.merge(f"{pool.path}/scale", {"spec": {"replicas": replicas}})


def _name_for_removal(pool: MachinePool, machine: str) -> None:
    marked = {"metadata": {"annotations": {DELETE_MACHINE: "yes"}}}
    pool.api.merge(f"{pool.collection('machines')}/{machine}", marked)


def test_nodes_join_with_their_tenure_and_the_joining_taint_after_a_while(pool: MachinePool) -> None:
    pool.create(2)
    until(lambda: len(_ready(pool)) == 2, "two nodes Ready")
    for node in _nodes(pool):
        assert node["metadata"]["labels"]["ebbtide.dev/tenure"] == "ephemeral"
        assert {"key": JOINING, "effect": "NoSchedule"} in node["spec"]["taints"]
        assert _gpus(node) == 8
    until(lambda: pool.api.get(f"{pool.path}/scale")["status"].get("replicas") == 2, "/scale counts two")
    assert pool.cloud.stock == 6


def test_exactly_the_named_machine_leaves_and_only_once_the_size_is_lower(pool: MachinePool) -> None:
    pool.create(4)
    before = until(lambda: _ready(pool) if len(_ready(pool)) == 4 else [], "four nodes Ready")
    _name_for_removal(pool, before[2])
    steadily(lambda: len(_ready(pool)) == 4, "the annotation alone does nothing", for_s=1)
    _resize(pool, 3)
    until(lambda: len(_nodes(pool)) == 3, "one node is gone")
    assert _ready(pool) == [*before[:2], before[3]]
    until(lambda: pool.cloud.stock == 5, "its machine is in stock again")
    assert len(pool.machines) == 3


def test_a_machine_that_leaves_waits_for_its_pods_and_for_their_budget(pool: MachinePool, production: Cluster) -> None:
    """Cluster API drains a second time: what stands there still is evicted, as far as its budget allows."""
    pool.template = NodeTemplate(labels={**TENURE, "only": pool.name}, taints=())
    pool.create(1)
    (name,) = until(lambda: _ready(pool), "a node Ready")
    api, here = production.api, pool.namespace
    api.create(
        f"/apis/apps/v1/namespaces/{here}/deployments",
        deployment("chat", replicas=1, node_selector={"only": pool.name}),
    )
    budgets = f"/apis/policy/v1/namespaces/{here}/poddisruptionbudgets"
    api.create(budgets, budget("chat", min_available=1))
    until(lambda: running_pods(api, here), "a pod runs there")
    until(lambda: api.get(f"{budgets}/chat").get("status", {}).get("currentHealthy") == 1, "the budget counts")
    _name_for_removal(pool, name)
    _resize(pool, 0)
    until(lambda: api.get(f"/api/v1/nodes/{name}")["spec"].get("unschedulable"), "cordoned by Cluster API")
    steadily(lambda: len(_nodes(pool)) == 1 and "deletionTimestamp" in pool.machines[0]["metadata"], "kept", for_s=2)
    api.delete(f"{budgets}/chat")
    until(lambda: not _nodes(pool) and not pool.machines, "gone once its pod is")


def test_a_stockout_is_said_and_ends_when_stock_returns(pool: MachinePool) -> None:
    """Also a partial delivery: five of eight."""
    pool.cloud.stock = 5
    pool.create(8)
    until(lambda: len(_ready(pool)) == 5, "five come")
    until(lambda: [_reason(machine) for machine in pool.machines].count(NO_STOCK) == 3, "three say why not")
    steadily(lambda: len(_nodes(pool)) == 5, "no more come", for_s=1)
    pool.cloud.stock = 3
    until(lambda: len(_ready(pool)) == 8, "the rest come")


def _reason(machine: Json) -> str:
    conditions = machine.get("status", {}).get("conditions", [{}])
    return str(conditions[0].get("reason", ""))


def test_machines_come_broken_dead_or_not_at_all_on_command(pool: MachinePool) -> None:
    pool.cloud.next(Outcome.BROKEN, gpus=5)
    pool.cloud.next(Outcome.DEAD)
    pool.cloud.next(Outcome.FAILED)
    pool.create(4)
    until(lambda: len(_nodes(pool)) == 3 and len(_ready(pool)) == 2, "three nodes, two of them Ready")
    until(lambda: sorted(_gpus(node) for node in _nodes(pool) if is_true(node, "Ready")) == [5, 8], "one has 5 GPUs")
    until(lambda: _phases(pool) == ["Failed", "Running", "Running", "Running"], "one Machine failed, the dead one runs")


def _phases(pool: MachinePool) -> list[str]:
    return sorted(machine["status"]["phase"] for machine in pool.machines)


def test_a_stalled_cloud_delivers_nothing_and_takes_nothing(pool: MachinePool) -> None:
    pool.create(2)
    before = until(lambda: _ready(pool) if len(_ready(pool)) == 2 else [], "two nodes Ready")
    pool.cloud.stalled = True
    _name_for_removal(pool, before[0])
    _resize(pool, 1)
    until(lambda: any("deletionTimestamp" in it["metadata"] for it in pool.machines), "the Machine is being deleted")
    steadily(lambda: _ready(pool) == before, "both nodes stay", for_s=1)
    pool.cloud.stalled = False
    until(lambda: _ready(pool) == before[1:], "the named one goes")


def test_gpus_appear_only_when_the_device_plugin_is_up(pool: MachinePool) -> None:
    pool.cloud.plugin_s = 2.0
    pool.create(1)
    until(lambda: _ready(pool), "Ready")
    assert _gpus(_nodes(pool)[0]) == 0
    until(lambda: _gpus(_nodes(pool)[0]) == 8, "all GPUs")


@pytest.fixture(params=["one cluster", "two clusters"])
def metal(request: pytest.FixtureRequest, production: Cluster, research: Cluster) -> Iterator[RelabelledMachines]:
    """Machines that change sides by label, known to one cluster or to both."""
    other = production if request.param == "one cluster" else research
    with Cloud(stock=0) as cloud:
        made = RelabelledMachines(cloud=cloud, apis={"production": production.api, "research": other.api})
        yield made
        made.remove()


def _say_side(api: Api, name: str, side: str) -> None:
    api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {SIDE: side}}})


def test_a_relabelled_machine_is_away_and_then_stands_on_the_other_side(metal: RelabelledMachines) -> None:
    metal.create("metal-1", "production", TENURE)
    old, new = metal.apis["production"], metal.apis["research"]
    path = "/api/v1/nodes/metal-1"
    until(lambda: is_true(old.get(path), "Ready"), "it stands in production")
    metal.cloud.join_s = 3.0
    metal.cloud.next(Outcome.BROKEN, gpus=7)
    _say_side(old, "metal-1", "none")
    steadily(lambda: is_true(old.get(path), "Ready"), "on neither side it stays where it is", for_s=0.5)
    _say_side(new, "metal-1", "research")
    until(lambda: not is_true(old.get(path), "Ready"), "away")
    until(lambda: is_true(new.get(path), "Ready"), "it stands in research")
    assert _gpus(new.get(path)) == 7
    if old.url != new.url:
        assert not is_true(old.get(path), "Ready")


def test_a_machine_that_both_sides_claim_stays_where_it_is(metal: RelabelledMachines) -> None:
    metal.create("metal-2", "production", TENURE)
    old, new = metal.apis["production"], metal.apis["research"]
    if old.url == new.url:
        _say_side(new, "metal-2", "elsewhere")  # one label cannot say both: a side that is none
    else:
        _say_side(new, "metal-2", "research")
    until(lambda: is_true(old.get("/api/v1/nodes/metal-2"), "Ready"), "Ready")
    steadily(lambda: is_true(old.get("/api/v1/nodes/metal-2"), "Ready"), "it stays", for_s=1)
