"""`ebbtide run` as its users start it: in Shadow it writes nothing; in Active it acts; one of two acts, ever."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from ebbtide.control.state import Side
from kubelab.cluster import delete_quietly
from kubelab.waiting import steadily, until
from worlds.on_kubernetes import small_fleet
from worlds.run_process import Papers, running


@pytest.fixture
def papers(production, research, new_namespace, tmp_path):
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(2, 1)
        fleet.stand_chat(4)  # growth would wait for nodes that are stable for half a minute: plans here only shrink it
        fleet.stand_queue(8)
        made = Papers(folder=tmp_path, fleet=fleet, nodes=3)
        made.write_fleet("Shadow")
        made.write_schedule(replicas=3, production=2)
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


def chat(papers):
    space = papers.fleet.space
    return papers.fleet.api(Side.PRODUCTION).get(f"/apis/apps/v1/namespaces/{space}/deployments/chat")


def lease(papers):
    space = papers.fleet.space
    root = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    found = papers.fleet.api(Side.PRODUCTION).items(root)
    return found[0]["spec"] if found else {"holderIdentity": ""}


def writes(papers):
    """Every write of ours in this fleet's namespaces and nodes, out of both servers' audit logs."""
    space, found = papers.fleet.space, []
    for side in Side:
        for line in papers.fleet.lab[side].audit_log.read_text().splitlines():
            entry = json.loads(line)
            ref = entry.get("objectRef", {})
            ours = entry["userAgent"] == "ebbtide" and entry["verb"] not in ("get", "list", "watch")
            if ours and (ref.get("namespace") == space or ref.get("name", "").startswith(space)):
                found.append((entry["verb"], ref["resource"], "dryRun=All" in entry["requestURI"]))
    return found


def ask(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except (urllib.error.HTTPError, OSError) as problem:
        return getattr(problem, "code", 0), str(problem)


def test_in_shadow_it_decides_shows_and_records_and_writes_nothing_outside_its_home(papers, free_port):
    record = papers.folder / "record.jsonl"
    with running(papers, "one", "--listen", f"127.0.0.1:{free_port}", "--record", str(record)) as one:
        until(lambda: ask(free_port, "/readyz")[0] == 200, "ready")
        until(lambda: "ebbtide_ticks_total 3" in ask(free_port, "/metrics")[1], "three ticks")
        shown = ask(free_port, "/metrics")[1]
        assert "ebbtide_leader 1.0" in shown
        assert "ebbtide_active 0.0" in shown
        assert 'ebbtide_replicas{are="wanted",workload="chat"} 4.0' in shown
        assert ask(free_port, "/healthz")[0] == 200
        assert lease(papers)["holderIdentity"]
        one.signal(signal.SIGTERM)
        assert one.ended() == 0
    assert lease(papers)["holderIdentity"] == ""  # given back: the other one need not wait
    assert {(resource, dry) for _, resource, dry in writes(papers)} == {
        ("leases", False),
        ("configmaps", False),  # what people read of it, at home
    }
    assert chat(papers)["spec"]["replicas"] == 4
    ticks = [json.loads(line) for line in record.read_text().splitlines()]
    assert {
        key: value
        for action in ticks[-1]["actions"]
        if action["kind"] == "SetReplicas"
        for key, value in action.items()
        if key in ("kind", "workload", "replicas")
    } == {"kind": "SetReplicas", "workload": "chat", "replicas": 3}
    assert {action["result"] for tick in ticks for action in tick["actions"]} == {"not tried"}


def test_active_it_scales_and_takes_an_edited_schedule_but_not_a_broken_one(papers):
    papers.write_fleet("Active")
    with running(papers, "one") as one:
        until(lambda: chat(papers)["spec"]["replicas"] == 3, "the plan's replicas")
        papers.schedule_file.write_text("kind: Schedule\nspec: {")
        until(lambda: one.events("documents"), "said that it cannot be read")
        assert one.process.poll() is None
        papers.write_schedule(replicas=2, production=2)
        until(lambda: chat(papers)["spec"]["replicas"] == 2, "the new plan's replicas")
        papers.schedule_file.unlink()
        until(lambda: "is gone" in one.events("documents")[-1]["now"], "said that it is gone")


def test_when_the_leader_is_killed_the_second_takes_over(papers):
    papers.write_fleet("Active")
    with running(papers, "one") as one, running(papers, "two") as two:
        until(lambda: chat(papers)["spec"]["replicas"] == 3, "the plan's replicas")
        first = lease(papers)["holderIdentity"]
        leader, other = (one, two) if one.acted() else (two, one)
        until(lambda: other.events("standby"), "the other one stands by")
        leader.signal(signal.SIGKILL)
        leader.ended()
        papers.write_schedule(replicas=2, production=2)
        until(lambda: chat(papers)["spec"]["replicas"] == 2, "the second acts")
        assert lease(papers)["holderIdentity"] != first
        assert other.acted()


def test_a_leader_that_slept_past_its_lease_writes_nothing_when_it_wakes(papers):
    papers.write_fleet("Active")
    with running(papers, "one") as one:
        until(lambda: chat(papers)["spec"]["replicas"] == 3, "the plan's replicas")
        first = lease(papers)["holderIdentity"]
        with running(papers, "two") as two:
            one.signal(signal.SIGSTOP)
            acted = one.acted()
            until(lambda: lease(papers)["holderIdentity"] not in (first, ""), "the second took over")
            second = lease(papers)["holderIdentity"]
            papers.write_schedule(replicas=2, production=2)
            until(lambda: chat(papers)["spec"]["replicas"] == 2, "the second acts")
            one.signal(signal.SIGCONT)
            until(lambda: one.events("standby"), "the first knows")
            papers.write_schedule(replicas=1, production=2)
            until(lambda: chat(papers)["spec"]["replicas"] == 1, "the second acts on")
            steadily(lambda: lease(papers)["holderIdentity"] == second, "the second holds it", for_s=2.0)
            assert one.acted() == acted
            assert two.process.poll() is None


def test_a_dry_run_shows_what_the_servers_would_say_and_changes_nothing(papers):
    until(lambda: chat(papers)["status"].get("readyReplicas") == 4, "chat")
    papers.write_schedule(replicas=2, production=1)
    command = [sys.executable, "-m", "ebbtide.cli.main", "run", "--dry-run", "--json"]
    command += ["--kubeconfig", str(papers.kubeconfig), "--namespace", papers.fleet.space]
    command += ["--fleet", str(papers.fleet_file), "--schedule", str(papers.schedule_file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert [one["kind"] for one in plan["actions"]].count("SetReplicas") == 1
    assert {one["result"] for one in plan["actions"]} == {"done"}, plan
    assert {dry for _, _, dry in writes(papers)} == {True}
    assert chat(papers)["spec"]["replicas"] == 4
    nodes = papers.fleet.nodes(Side.PRODUCTION)
    assert not any("ebbtide.dev/cordoned-by" in node["metadata"].get("annotations", {}) for node in nodes)
    assert lease(papers)["holderIdentity"] == ""
