"""Kueue's door, for real: jobs wait without quota until their time, nothing is started to be stopped (§7.4)."""

from __future__ import annotations

import time

import pytest

from kubelab.recorder import Recorder
from kubelab.waiting import steadily, until
from worlds.door_fleet import Window, clock, door, door_fleet
from worlds.door_record import most_at_once, story
from worlds.run_process import running


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


def test_four_jobs_of_two_gpus_on_four_are_two_and_two(here, record):
    here.write()
    begun_s = time.time()
    with running(here, "one"):
        for name in "abcd":
            here.submit(name, runs_s=6, duration="6s", duration_p90="8s", deadline="60s")
        until(lambda: sum(queue_of(here, name) == "live" for name in "abcd") == 2, "two are let in")
        waiting = [name for name in "abcd" if queue_of(here, name) == "held"]
        until(lambda: all(annotation(here, name, "planned-start") for name in waiting), "two are told their start")
        said = here.condition(waiting[0])
        assert (said["status"], said["reason"]) == ("True", "Planned")
        assert "waits for the GPUs of" in said["message"]
        until(lambda: here.done() == set("abcd"), "all four are done")
        until(lambda: all(story(record, name).quota[-1:] == ["gave"] for name in "abcd"), "recorded to their ends")
    assert time.time() - begun_s < 60
    stories = {name: story(record, name) for name in "abcd"}
    assert most_at_once(record) == 2
    assert {tuple(one.quota) for one in stories.values()} == {("ran", "gave")}  # no quota without running
    assert {tuple(one.queues) for one in stories.values()} == {("held", "live")}
    assert not any(one.evicted or one.stopped_pods for one in stories.values())
    assert {len(one.started_pods) for one in stories.values()} == {1}
    first, last = [n for n in "abcd" if n not in waiting], waiting
    assert max(stories[n].first("Admitted") for n in first) < min(stories[n].first("Admitted") for n in last)


def test_before_the_morning_what_may_be_interrupted_runs_and_what_may_not_waits_for_its_slot(here, record):
    """The tide's node leaves in 25 s; a reserved node is free in 10. Both jobs would run for a minute."""
    now_s = time.time()
    morning_s = (now_s // 60 + 2) * 60
    lead_s = morning_s - now_s - 25
    here.write(Window(start=clock(morning_s), nodes=0, lead_s=lead_s), Window(start=clock(morning_s + 3600), nodes=1))
    with door(here):
        here.submit("night", gpus=4, queue="live", runs_s=10)
        until(lambda: story(record, "night").quota == ["ran"], "the reserved node is taken")
        here.submit("train", gpus=4, opted_in=True, runs_s=60, duration="60s", checkpoint_interval="5s")
        until(lambda: story(record, "train").quota[-1:] == ["ran"], "what may be interrupted runs")
        here.submit("solid", gpus=4, opted_in=True, runs_s=8, duration="60s", deadline="10m")
        until(lambda: annotation(here, "solid", "promise"), "a start is promised")
        steadily(lambda: queue_of(here, "solid") == "held", "it waits", for_s=2)
        until(lambda: "solid" in here.done(), "done in its slot")
    until(lambda: story(record, "solid").quota == ["ran", "gave"], "recorded to its end")
    solid = story(record, "solid")
    assert solid.first("Admitted") > story(record, "night").first("Finished")
    assert not solid.stopped_pods
    admitted = next(seen.thing for seen in solid.workload if "admission" in seen.thing.get("status", {}))
    flavors = admitted["status"]["admission"]["podSetAssignments"][0]["flavors"]
    assert list(flavors.values()) == [f"{here.space}-fixed"]


def test_a_job_without_a_plan_is_asked_at_the_check_and_goes_to_the_held_queue(here, record):
    """Straight into the live queue: what the tide would interrupt is refused once, and waits."""
    now_s = time.time()
    morning_s = (now_s // 60 + 2) * 60
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
    with running(here, "one"):
        here.submit("typo", runs_s=2, duration="5 hours")
        until(lambda: here.condition("typo").get("reason") == "BadAnnotation", "a condition says why")
        assert "ebbtide.dev/duration" in here.condition("typo")["message"]
        here.submit("good", runs_s=2, duration="5s")
        until(lambda: "good" in here.done(), "others go on")
    assert story(record, "typo").quota == []
    assert queue_of(here, "typo") == "held"


def test_in_shadow_nothing_is_written(here, record):
    here.mode = "Shadow"
    here.write()
    with running(here, "one") as one:
        here.submit("a", runs_s=2, duration="5s")
        until(lambda: any("/job-a-" in said["now"] for said in one.events("would release")), "says what it would do")
        assert any("in Shadow nobody answers" in said["now"] for said in one.events("checks"))
    assert queue_of(here, "a") == "held"
    assert not annotation(here, "a", "promise")
    assert here.condition("a") == {}
