"""Kueue's door, for real: jobs wait without quota until their time, nothing is started to be stopped (§7.4)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from kubelab.objects import QUEUE_NAME, QUEUES, pod_spec
from kubelab.recorder import Recorder
from kubelab.waiting import until
from worlds.door_fleet import Window, clock, door, door_fleet
from worlds.door_record import most_at_once, story
from worlds.run_process import running

EXAMPLE = Path(__file__).parents[2] / "deploy" / "queues" / "queues.yaml"


@pytest.fixture
def here(production, research, new_namespace, tmp_path):
    with door_fleet(production, research, new_namespace(production), tmp_path, ephemeral=1) as made:
        yield made


@pytest.fixture
def record(here):
    with Recorder({"research": here.api}, [here.workloads, f"/api/v1/namespaces/{here.space}/pods"]) as made:
        yield made
    assert made.holes == []


def queue_of(here, name):
    return here.workload(name).get("spec", {}).get("queueName", "")


def annotation(here, name, key):
    return here.workload(name).get("metadata", {}).get("annotations", {}).get(f"ebbtide.dev/{key}", "")


def now(lines, event):
    return [one["now"] for one in lines if one["event"] == event]


def events_of(here, name):
    uid = here.workload(name)["metadata"]["uid"]
    found = here.api.items(f"/apis/events.k8s.io/v1/namespaces/{here.space}/events")
    return {one["reason"] for one in found if one["regarding"].get("uid") == uid}


def test_four_jobs_of_two_gpus_on_four_are_two_and_two(here, record):
    """Two controllers: one of them holds the Lease."""
    here.write()
    # Both compile the planner while they start, on a machine that they share: the Lease is to outlast that.
    with running(here, "one", lease_s=20.0) as one, running(here, "two", lease_s=20.0) as two:
        for name in "abcd":
            here.submit(name, runs_s=6, duration="6s", duration_p90="8s", deadline="10m")
        until(lambda: sum(queue_of(here, name) == "live" for name in "abcd") == 2, "two are let in", within_s=150)
        waiting = [name for name in "abcd" if queue_of(here, name) == "held"]
        until(lambda: all(annotation(here, name, "planned-start") for name in waiting), "two are told their start")
        said = until(lambda: here.condition(waiting[0]), "and why they wait")
        assert (said["status"], said["reason"]) == ("True", "Planned")
        assert "waits for the GPUs of" in said["message"]
        until(lambda: here.done() == set("abcd"), "all four are done", within_s=150)
        until(lambda: all(story(record, name).quota[-1:] == ["gave"] for name in "abcd"), "recorded to their ends")
        released = [len(each.events("released")) for each in (one, two)]
    assert sorted(released) == [0, 4]
    assert {"Planned", "Released"} <= events_of(here, waiting[0])
    stories = {name: story(record, name) for name in "abcd"}
    assert most_at_once(record) == 2
    assert {tuple(one.quota) for one in stories.values()} == {("ran", "gave")}  # no quota without running
    assert {tuple(one.queues) for one in stories.values()} == {("held", "live")}
    assert not any(one.evicted or one.stopped_pods for one in stories.values())
    assert {len(one.started_pods) for one in stories.values()} == {1}
    first, last = [n for n in "abcd" if n not in waiting], waiting
    assert max(stories[n].first("Admitted") for n in first) < min(stories[n].first("Admitted") for n in last)


def test_before_the_morning_what_may_be_interrupted_runs_and_what_may_not_waits_for_its_slot(here, record):
    """The tide's node leaves in a minute or two; a reserved node is free in seconds. Both jobs would run for longer."""
    morning_s = (time.time() // 60 + 2) * 60
    here.write(Window(start=clock(morning_s), nodes=0), Window(start=clock(morning_s + 3600), nodes=1))
    with door(here):
        here.submit("night", gpus=4, queue="live", runs_s=10)
        until(lambda: story(record, "night").quota == ["ran"], "the reserved node is taken")
        here.submit("train", gpus=4, opted_in=True, runs_s=600, duration="10m", checkpoint_interval="5s")
        until(lambda: story(record, "train").quota[-1:] == ["ran"], "what may be interrupted runs")
        here.submit("solid", gpus=4, opted_in=True, runs_s=4, duration="10m", deadline="2h")
        until(lambda: annotation(here, "solid", "promise"), "a start is promised")
        until(lambda: "solid" in here.done(), "done in its slot", within_s=150)
    until(lambda: story(record, "solid").quota == ["ran", "gave"], "recorded to its end")
    solid = story(record, "solid")
    assert solid.first("Admitted") > story(record, "night").first("Finished")
    assert not solid.stopped_pods
    admitted = next(seen.thing for seen in solid.workload if "admission" in seen.thing.get("status", {}))
    flavors = admitted["status"]["admission"]["podSetAssignments"][0]["flavors"]
    assert list(flavors.values()) == [f"{here.space}-fixed"]


def test_a_job_without_a_plan_is_asked_at_the_check_and_goes_to_the_held_queue(here, record):
    """Straight into the live queue: what the tide would interrupt is refused once, and waits."""
    morning_s = (time.time() // 60 + 2) * 60
    here.write(Window(start=clock(morning_s), nodes=0), Window(start=clock(morning_s + 3600), nodes=1))
    with door(here):
        here.submit("fixed", gpus=4, queue="live", runs_s=300)
        until(lambda: story(record, "fixed").quota == ["ran"], "reserved is full")
        here.submit("long", gpus=4, queue="live", opted_in=True, runs_s=300, duration="5h")
        until(lambda: queue_of(here, "long") == "held", "sent back")
        until(lambda: here.condition("long"), "told what is planned")
        here.submit("short", gpus=4, queue="live", opted_in=True, runs_s=2, duration="5s")
        until(lambda: "short" in here.done(), "what ends in time runs")
        assert queue_of(here, "long") == "held"
    assert story(record, "long").started_pods == set()
    assert story(record, "long").quota in (["took", "gave"], ["took", "gave"] * 2)  # Kueue may be quick once
    until(lambda: story(record, "short").quota[-2:] == ["ran", "gave"], "recorded to its end")


def test_an_annotation_that_does_not_parse_loses_nothing(here, record):
    here.write()
    with door(here):
        here.submit("typo", runs_s=2, duration="5 hours")
        until(lambda: here.condition("typo").get("reason") == "BadAnnotation", "a condition says why")
        assert "ebbtide.dev/duration" in here.condition("typo")["message"]
        here.submit("good", runs_s=2, duration="5s")
        until(lambda: "good" in here.done(), "others go on")
    assert story(record, "typo").quota == []
    assert queue_of(here, "typo") == "held"


def test_a_plain_pod_waits_and_is_let_in_too(here, record):
    """Its label is that of the pod itself, which Kueue holds back by a scheduling gate."""
    here.write()
    with door(here):
        meta = {
            "name": "lone",
            "labels": {QUEUE_NAME: "held"},
            "annotations": {"ebbtide.dev/duration": "5s", "lab/complete-after": "2s"},
        }
        spec = pod_spec(gpus=2, grace_s=1, node_selector=None, restart="Never")
        pods = f"/api/v1/namespaces/{here.space}/pods"
        here.api.create(pods, {"metadata": meta, "spec": spec})
        until(lambda: here.api.get(f"{pods}/lone")["status"].get("phase") == "Succeeded", "it ran")
    until(lambda: story(record, "lone").quota == ["ran", "gave"], "no quota while it waited")
    assert story(record, "lone").queues == ["held", "live"]


def test_the_example_of_queues_is_one_that_kueue_takes(here):
    plurals = {
        "ResourceFlavor": "resourceflavors",
        "AdmissionCheck": "admissionchecks",
        "ClusterQueue": "clusterqueues",
        "LocalQueue": f"namespaces/{here.space}/localqueues",
    }
    for body in YAML(typ="safe").load_all(EXAMPLE.read_text()):
        meta = body["metadata"]
        if "namespace" in meta:
            meta["namespace"] = here.space
        path = f"{QUEUES}/{plurals[body['kind']]}/{meta['name']}"
        query = "fieldManager=test&dryRun=All&fieldValidation=Strict"
        taken = here.api.request("PATCH", f"{path}?{query}", body, content="application/apply-patch+yaml")
        assert taken["metadata"]["name"] == meta["name"]


def test_in_shadow_nothing_is_written(here, record):
    here.mode = "Shadow"
    here.write()
    with door(here) as lines:
        here.submit("a", runs_s=2, duration="5s")
        until(lambda: any("/job-a-" in said for said in now(lines, "would release")), "says what it would do")
        assert any("in Shadow nobody answers" in said for said in now(lines, "checks"))
    assert queue_of(here, "a") == "held"
    assert not annotation(here, "a", "promise")
    assert here.condition("a") == {}
