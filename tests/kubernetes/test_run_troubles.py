"""`ebbtide run` in trouble: rights that are missing, a cluster that is silent, documents that come late."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.drain import delete_pods, drain
from ebbtide.control.state import Side
from kubelab.cluster import delete_quietly
from kubelab.objects import standing_pods
from kubelab.rights import bind, role
from kubelab.waiting import until
from worlds.on_kubernetes import QUICK, small_fleet
from worlds.run_process import Papers, running

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


@pytest.fixture
def papers(production, research, new_namespace, tmp_path):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(2, 1)
        fleet.stand_chat(4)
        fleet.stand_queue(8)
        made = Papers(folder=tmp_path, fleet=fleet, nodes=3)
        made.write_fleet("Active")
        made.write_schedule(replicas=3, production=2)
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


def chat(papers):
    space = papers.fleet.space
    return papers.fleet.api(Side.PRODUCTION).get(f"/apis/apps/v1/namespaces/{space}/deployments/chat")


def edit_kubeconfig(papers, edit):
    yaml = YAML(typ="safe")
    config = yaml.load(papers.kubeconfig.read_text())
    edit(config)
    with papers.kubeconfig.open("w") as file:
        yaml.dump(config, file)
    return config


def tokens(papers):
    config = YAML(typ="safe").load(papers.kubeconfig.read_text())
    return [user["user"]["token"] for user in config["users"]]


def problems(run):
    return [one["problem"] for one in run.events("call failed")]


def scalings(run):
    return [one["result"] for one in run.events("action") if one["kind"] == "SetReplicas"]


def ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()
    except OSError as problem:
        return 0, str(problem)


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name} ")), 0.0)


def without(rules, resource):
    return [rule for rule in rules if resource not in rule["resources"]]


def test_a_right_that_is_missing_is_named_and_that_cluster_is_left_alone(papers, production, free_port):
    space = papers.fleet.space
    production.api.create(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "weak"}})
    weak = role("production")
    weak["metadata"]["name"] = f"{space}-weak"
    weak["rules"] = without(weak["rules"], "deployments/scale")
    bind(production, "cluster", weak, space, account="weak")
    bind(production, "", role("home"), space, account="weak")
    token = production.account(space, "weak").token

    def with_it(config):
        next(one for one in config["users"] if one["name"] == "production")["user"] = {"token": token}

    edit_kubeconfig(papers, with_it)
    with running(papers, "one", "--listen", f"127.0.0.1:{free_port}") as one:
        missing = f"patch deployments/scale.apps in namespace {space} of production: forbidden"
        until(lambda: any(missing in text for text in problems(one)), "said what is missing")
        refused = 'ebbtide_actions_total{kind="SetReplicas",result="refused"}'
        until(lambda: metric(free_port, refused) > 2, "later ticks")
        assert scalings(one) == ["refused"]  # said once
        # Asked once a minute, not at every tick.
        assert metric(free_port, 'ebbtide_problems_total{kind="api_forbidden"}') < metric(free_port, refused)
        assert one.process.poll() is None
        log = one.log.read_text()
    assert chat(papers)["spec"]["replicas"] == 4
    assert not any(secret in log for secret in tokens(papers))
    production.api.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{space}-weak")


def test_a_research_cluster_that_is_silent_does_not_stop_production(papers, free_port):
    """Nobody listens there; growth is what must go on, and nodes count once they were stable for half a minute."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))

        def away(config):
            server = f"https://127.0.0.1:{closed.getsockname()[1]}"
            next(one for one in config["clusters"] if one["name"] == "research")["cluster"]["server"] = server

        edit_kubeconfig(papers, away)
        papers.write_schedule(replicas=6, production=2)
        with running(papers, "one", "--listen", f"127.0.0.1:{free_port}") as one:
            until(lambda: chat(papers)["spec"]["replicas"] == 6, "production grows", within_s=180.0)
            assert any("list nodes of research: unreachable" in text for text in problems(one))
            assert ready(free_port)[0] == 200
            assert not any(secret in one.log.read_text() for secret in tokens(papers))


def test_started_before_its_documents_it_waits_for_them(papers, production, free_port):
    for plural in ("fleets", "schedules"):
        production.install(CRDS / f"{plural}.yaml", f"{plural}.ebbtide.dev")
    space = papers.fleet.space
    root = f"/apis/ebbtide.dev/v1alpha1/namespaces/{space}"
    more = ("--fleet-name", space, "--listen", f"127.0.0.1:{free_port}")
    with running(papers, "one", *more, started="home") as one:
        until(lambda: "there is no Fleet" in ready(free_port)[1], "says what it waits for")
        production.api.apply(f"{root}/fleets/{space}", papers.fleet_object())
        until(lambda: "no Schedule is made" in ready(free_port)[1], "waits for the Schedule", within_s=120.0)
        schedule = papers.schedule_object(replicas=3, production=2)
        production.api.apply(f"{root}/schedules/{space}", schedule)
        until(lambda: chat(papers)["spec"]["replicas"] == 3, "acts", within_s=120.0)
        until(lambda: ready(free_port) == (200, "ok\n"), "ready")
        assert one.events("started")


def test_a_dry_connection_evicts_and_deletes_nothing(papers):
    space = papers.fleet.space
    production = papers.fleet.api(Side.PRODUCTION)
    until(lambda: chat(papers)["status"].get("readyReplicas") == 4, "chat")
    before = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in standing_pods(production, space)}
    config = config_of(kubeconfig=str(papers.fleet.lab[Side.PRODUCTION].kubeconfig))
    dry = Cluster(config, pace=QUICK, dry_run=True)
    for node in set(before.values()):
        drain(dry, node)
        delete_pods(dry, node)
    assert (dry.calls["create", "pods/eviction"], dry.calls["delete", "pods"]) == (4, 4)
    dry.close()
    pods = production.items(f"/api/v1/namespaces/{space}/pods")
    assert {pod["metadata"]["uid"] for pod in pods} == set(before)
    assert not any("deletionTimestamp" in pod["metadata"] for pod in pods), json.dumps(pods)
