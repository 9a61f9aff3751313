"""Fleet and Schedule as resources on a real API server: what kubectl shows, what is refused, what people ask for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.adapters.kubernetes.running import look_at
from ebbtide.control.state import Side
from kubelab.api import ApiError
from kubelab.cluster import delete_quietly
from kubelab.objects import QUEUES, autoscaler
from kubelab.waiting import until
from worlds.on_kubernetes import small_fleet
from worlds.run_process import Papers, running

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture
def papers(production, research, new_namespace, tmp_path):
    """A fleet whose documents are resources in the production cluster."""
    for plural in ("fleets", "schedules"):
        production.install(CRDS / f"{plural}.yaml", f"{plural}.ebbtide.dev")
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(2, 1)
        fleet.stand_chat(4)
        fleet.stand_queue(8)
        made = Papers(folder=tmp_path, fleet=fleet, nodes=3)
        made.write_fleet("Active")
        made.write_schedule(replicas=3, production=2)
        apply(made, "fleets", made.fleet_object())
        apply(made, "schedules", made.schedule_object(replicas=3, production=2))
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


def root(papers):
    return f"/apis/ebbtide.dev/v1alpha1/namespaces/{papers.fleet.space}"


def apply(papers, plural, body, **more):
    path = f"{root(papers)}/{plural}/{body['metadata']['name']}"
    return papers.fleet.api(Side.PRODUCTION).apply(path, body, manager="kubectl", **more)


def schedule(papers, name=""):
    return papers.fleet.api(Side.PRODUCTION).get(f"{root(papers)}/schedules/{name or papers.fleet.space}")


def replicas(papers):
    space = papers.fleet.space
    return papers.fleet.api(Side.PRODUCTION).get(f"/apis/apps/v1/namespaces/{space}/deployments/chat")["spec"][
        "replicas"
    ]


def ebbtide(papers, *arguments):
    """A command as people run it, with their own rights."""
    command = [sys.executable, "-m", "ebbtide.cli.main", *arguments, "-n", papers.fleet.space]
    kubeconfig = papers.folder / "people"
    if not kubeconfig.exists():
        merged = json.loads((papers.fleet.lab[Side.PRODUCTION].kubeconfig).read_text())
        other = json.loads((papers.fleet.lab[Side.RESEARCH].kubeconfig).read_text())
        for kind in ("clusters", "contexts", "users"):
            merged[kind] += other[kind]
        kubeconfig.write_text(json.dumps(merged))
    done = subprocess.run(
        [*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in (0, 1, 2, 4), done.stderr
    return done


def run(papers):
    return running(papers, "one", "--fleet-name", papers.fleet.space)


def table(papers, plural):
    """As `kubectl get` asks for it: the columns by name."""
    answer = papers.fleet.api(Side.PRODUCTION).request(
        "GET", f"{root(papers)}/{plural}", accept="application/json;as=Table;v=v1;g=meta.k8s.io"
    )
    names = [column["name"] for column in answer["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in answer["rows"]]


def test_kubectl_shows_window_next_change_phase_and_shortage(papers):
    with run(papers):
        until(lambda: replicas(papers) == 3, "the plan's replicas")
        until(lambda: schedule(papers)["status"].get("phase") == "Holding", "told")
        (row,) = table(papers, "schedules")
        assert (row["Window"], row["Phase"], row["Shortage"]) == ("all-0000", "Holding", "none")
        assert row["Next change"]
        (fleet,) = table(papers, "fleets")
        assert (fleet["Pools"], fleet["Mode"]) == ("h100", "Active")
        conditions = {one["type"]: one for one in schedule(papers)["status"]["conditions"]}
        assert conditions["ProductionSeen"]["status"] == conditions["ResearchSeen"]["status"] == "True"
        assert conditions["LiveDemandObserved"]["status"] == "Unknown"
        assert {one["observedGeneration"] for one in conditions.values()} == {1}
        events = papers.fleet.api(Side.PRODUCTION).items(
            f"/apis/events.k8s.io/v1/namespaces/{papers.fleet.space}/events"
        )
        scaled = [one for one in events if one["reason"] == "SetReplicas"]
        assert [one["regarding"]["name"] for one in scaled] == ["chat"]
        assert scaled[0]["regarding"]["uid"]
        asked = ebbtide(papers, "status")
        assert asked.returncode == 0
        assert asked.stdout.startswith(f"{papers.fleet.space}  Holding; 00:00 begins in ")
        assert list(json.loads(ebbtide(papers, "status", "--json").stdout)) == [
            "phase",
            "window",
            "next_change",
            "motion",
            "shortages",
            "conditions",
        ]
        assert "SetReplicas" in ebbtide(papers, "history").stdout


def test_a_second_schedule_blocks_both_until_it_is_gone(papers):
    second = papers.schedule_object(replicas=1, production=2)
    second["metadata"]["name"] = "second"
    apply(papers, "schedules", second)
    with run(papers):
        for name in (papers.fleet.space, "second"):
            until(
                lambda name=name: schedule(papers, name).get("status", {}).get("phase") == "Blocked", f"{name} blocked"
            )
        (told,) = schedule(papers, "second")["status"]["conditions"]
        assert "2 Schedules" in told["message"]
        assert replicas(papers) == 4
        papers.fleet.api(Side.PRODUCTION).delete(f"{root(papers)}/schedules/second")
        until(lambda: replicas(papers) == 3, "the plan's replicas")


def test_a_pause_and_an_override_survive_a_new_schedule(papers):
    assert ebbtide(papers, "pause", "--reason", "launch").returncode == 0
    asked = ["override", "quiet", "--hold", "--until", "2098-01-01T00:00", "--reason", "launch"]
    assert ebbtide(papers, *asked).returncode == 0
    apply(papers, "schedules", papers.schedule_object(replicas=2, production=2))
    with run(papers) as one:
        until(lambda: schedule(papers).get("status", {}).get("phase") == "Paused", "paused")
        assert replicas(papers) == 4
        assert "paused: launch" in ebbtide(papers, "status").stdout
        assert ebbtide(papers, "resume").returncode == 0
        until(lambda: any("held by" in line.get("now", "") for line in one.lines()), "still held by the override")
        assert replicas(papers) == 4
        assert ebbtide(papers, "override", "quiet", "--lift").returncode == 0
        until(lambda: replicas(papers) == 2, "the new plan's replicas")
    spec = schedule(papers)["spec"]
    assert not spec.get("overrides")
    assert "pause" not in spec


def test_wishes_that_mean_nothing_are_refused(papers):
    for wish, said in (
        (["--window", "tea"], "no window is named tea"),
        (["--release", "tea"], "no workload is named tea"),
        ([], "one of --hold, --window and --release"),
        (["--hold", "--window", "all-0000"], "one of --hold"),
    ):
        done = ebbtide(papers, "override", "x", *wish, "--until", "2098-01-01T00:00", "--reason", "r")
        assert done.returncode == 2
        assert said in done.stderr
    for end in ("2001-01-01T00:00", "tea"):
        done = ebbtide(papers, "override", "x", "--hold", "--until", end, "--reason", "r")
        assert done.returncode == 2


def test_the_server_refuses_what_no_fleet_may_say(papers):
    wrong = papers.fleet_object()
    wrong["spec"]["pools"][0]["reservedNodes"] = 9
    with pytest.raises(ApiError) as refused:
        apply(papers, "fleets", wrong)
    assert refused.value.code == 422
    wrong = papers.fleet_object()
    wrong["spec"]["pools"][0]["reservedNode"] = 1
    with pytest.raises(ApiError) as refused:
        apply(papers, "fleets", wrong)
    assert "reservedNode" in str(refused.value)
    for service, more, said in (
        ({"claim": "chat"}, {"expects": {"gpuModel": "H100"}, "targets": [{"firstToken": "1s"}]}, ""),
        ({"time": "1s"}, {"targets": [{"firstToken": "1s"}]}, "only a claim says when the first token comes"),
        ({"claim": "chat", "time": "1s"}, {}, "give exactly one of time, observed, claim"),
        ({"claim": "chat", "concurrency": 4}, {}, "has both claim and concurrency"),
        ({"claim": "chat"}, {"waitingCostUsdPerRequestHour": 1}, "so waiting has no cost"),
        ({"time": "1s"}, {"expects": {"gpuModel": "H100"}}, "expects is what a claim must match"),
    ):
        given = papers.fleet_object()
        given["spec"]["workloads"][0] |= {"service": service} | more
        if said:
            with pytest.raises(ApiError) as refused:
                apply(papers, "fleets", given)
            assert said in str(refused.value)
        else:
            apply(papers, "fleets", given)


def test_what_runs_is_read_off_its_pods_for_a_claim(papers):
    bindings = papers.fleet.bindings
    cluster = papers.fleet.connect(Side.PRODUCTION)
    try:
        until(
            lambda: look_at(cluster, bindings.workload("chat"), bindings.pools[0]).pods == 4,
            "the Deployment's four pods",
        )
        running = look_at(cluster, bindings.workload("chat"), bindings.pools[0])
        assert running.gpus == (2,)
        assert running.gpu_models == ()  # nothing has labelled these nodes: not observed, and not guessed
    finally:
        cluster.close()


def test_release_gives_back_what_was_there_before_us(papers):
    space, production, research = papers.fleet.space, *(papers.fleet.api(side) for side in Side)
    hpas = f"/apis/autoscaling/v2/namespaces/{space}/horizontalpodautoscalers"
    production.create(hpas, autoscaler("chat", least=1, most=6))
    queue = f"{QUEUES}/clusterqueues/{space}"
    pointer = "/spec/resourceGroups/0/flavors/0/resources/0"
    cohort = [
        {"op": "add", "path": "/spec/cohortName", "value": space},
        {"op": "add", "path": f"{pointer}/borrowingLimit", "value": "5"},
        {"op": "replace", "path": f"{pointer}/nominalQuota", "value": "16"},
    ]
    research.edit(queue, cohort)

    def quota():
        resource = research.get(queue)["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
        return resource["nominalQuota"], resource.get("borrowingLimit"), resource.get("lendingLimit")

    def bounds():
        spec = production.get(f"{hpas}/chat")["spec"]
        return spec["minReplicas"], spec["maxReplicas"]

    before = bounds(), quota()
    with run(papers):
        until(lambda: bounds() != before[0] and quota() != before[1], "taken")
        done = ebbtide(papers, "release")
        assert done.returncode == 4
        assert "holds the Lease and acts" in done.stderr
    assert quota()[1] == "0"
    assert ebbtide(papers, "pause").returncode == 0
    assert ebbtide(papers, "release").returncode == 0
    assert (bounds(), quota()) == before
    assert ebbtide(papers, "release").stdout == "nothing was ours\n"
