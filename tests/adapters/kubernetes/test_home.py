"""The memory at home: read with its version, written once, refused where somebody wrote since."""

from __future__ import annotations

import json

import pytest

from ebbtide.adapters.documents.memory_document import memory_plain
from ebbtide.adapters.kubernetes.home import ConfigMapHome, ScheduleHome
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.control.memory import Memory
from ebbtide.errors import DocumentError

MAP = "/api/v1/namespaces/home/configmaps/memory"
SCHEDULE = "/apis/ebbtide.dev/v1alpha1/namespaces/home/schedules/day"
MEMORY = Memory(version=41, next_move=7, sizes={"research/h100": 3})


def config_map(memory):
    text = json.dumps(memory_plain(memory))
    return {"metadata": {"name": "memory", "resourceVersion": "41"}, "data": {"memory.json": text}}


def test_a_memory_that_was_never_written_is_empty_and_its_first_write_makes_the_object(script, cluster):
    home = ConfigMapHome(cluster, "home", "memory")
    assert home.read() == Memory()
    script.say("POST", "/api/v1/namespaces/home/configmaps", {"metadata": {}})
    home.write(Memory(next_move=2))
    assert script.bodies[-1]["data"] == {
        "memory.json": json.dumps(memory_plain(Memory(next_move=2)), separators=(",", ":"))
    }


def test_a_memory_comes_back_as_it_was_with_the_objects_version(script, cluster):
    script.say("GET", MAP, config_map(MEMORY))
    script.say("PUT", MAP, {"metadata": {}})
    home = ConfigMapHome(cluster, "home", "memory")
    assert home.read() == MEMORY
    home.write(MEMORY)
    assert script.bodies[-1]["metadata"]["resourceVersion"] == "41"


def test_a_memory_that_cannot_be_read_is_not_taken_for_an_empty_one(script, cluster):
    body = config_map(MEMORY) | {"data": {"memory.json": '{"nextMove": "many"}'}}
    script.say("GET", MAP, body)
    with pytest.raises(DocumentError):
        ConfigMapHome(cluster, "home", "memory").read()


def test_in_a_schedule_the_status_alone_is_written_and_what_goes_is_taken_away(script, cluster):
    plain = memory_plain(MEMORY)
    script.say(
        "GET", SCHEDULE, {"metadata": {"resourceVersion": "41"}, "status": {"phase": "Holding", "memory": plain}}
    )
    script.say("PATCH", f"{SCHEDULE}/status", {"metadata": {}})
    home = ScheduleHome(cluster, "home", "day")
    assert home.read() == MEMORY
    home.write(Memory(version=41, next_move=8))
    (body,) = script.bodies
    assert body == {
        "metadata": {"resourceVersion": "41"},
        "status": {"memory": {"nextMove": 8, "sizes": None}},
    }


def test_a_schedule_that_changed_since_refuses_the_memory(script, cluster):
    script.say("GET", SCHEDULE, {"metadata": {"resourceVersion": "42"}})
    with pytest.raises(ApiError) as caught:
        ScheduleHome(cluster, "home", "day").write(MEMORY)
    assert caught.value.why is Kind.CONFLICT


def test_a_memory_that_a_person_damaged_is_named(script, cluster):
    script.say("GET", MAP, {"metadata": {"name": "memory", "resourceVersion": "41"}, "data": {"memory.json": "{"}})
    with pytest.raises(DocumentError, match=r"ConfigMap home/memory: memory\.json: is damaged"):
        ConfigMapHome(cluster, "home", "memory").read()
