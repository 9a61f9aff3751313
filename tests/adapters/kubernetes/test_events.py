"""Events: told once, counted seldom, told anew when the server forgot them, and never more than a tick may spend."""

from __future__ import annotations

import pytest

from ebbtide.adapters.kubernetes.events import AT_ONCE, EVERY_S, KEPT_S, Events, Reference, Told
from ebbtide.adapters.kubernetes.problems import ApiError

ROOT = "/apis/events.k8s.io/v1/namespaces"
NODE = Reference(api_version="v1", kind="Node", name="node-1", uid="node-1")
CHAT = Reference(api_version="apps/v1", kind="Deployment", name="chat", namespace="serving", uid="u")


def told(note="cordoned", about=NODE, **more):
    return Told(about=about, reason="Cordon", action="Cordon", note=note, **more)


@pytest.fixture
def events(script, cluster):
    for space in ("default", "serving"):
        script.say("POST", f"{ROOT}/{space}/events", {})
    return Events(cluster=cluster, instance="one")


def asked(script):
    return [one.method for one in script.asked]


def patched(script, status=200):
    """The server knows the Event that was made first, or has forgotten it."""
    name = script.bodies[0]["metadata"]["name"]
    script.say("PATCH", f"{ROOT}/default/events/{name}", {}, status=status)


def test_an_event_is_about_its_object_and_stands_in_its_namespace(script, events):
    events.tell((told(), told("scaled", CHAT, warning=True)), 100.0)
    node, chat = script.bodies
    assert [one.url.path for one in script.asked] == [f"{ROOT}/default/events", f"{ROOT}/serving/events"]
    assert node["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-1"}
    assert (node["type"], chat["type"], chat["note"]) == ("Normal", "Warning", "scaled")
    assert node["eventTime"] == "1970-01-01T00:01:40.000000Z"
    assert node["metadata"]["name"] != chat["metadata"]["name"]


def test_what_stays_is_told_once_and_counted_every_five_minutes(script, events):
    events.tell((told(),), 0.0)
    patched(script)
    for k in range(1, 5):
        events.tell((told(),), k * EVERY_S / 4)
    assert asked(script) == ["POST", "PATCH"]
    assert script.bodies[1]["series"]["count"] == 5


def test_one_that_the_server_forgot_is_told_anew(script, events):
    events.tell((told(),), 0.0)
    patched(script, status=404)
    events.tell((told(),), EVERY_S)
    events.tell((told(),), EVERY_S + 1.0)
    assert asked(script) == ["POST", "PATCH", "POST"]


def test_after_an_hour_of_silence_it_is_a_new_one(script, events):
    events.tell((told(),), 0.0)
    events.tell((told(),), KEPT_S + 1.0)
    assert asked(script) == ["POST", "POST"]


def test_a_tick_with_much_to_tell_keeps_its_budget(script, events):
    events.tell(tuple(told(f"node {k}") for k in range(2 * AT_ONCE)), 0.0)
    assert len(script.asked) == AT_ONCE


def test_events_that_may_not_be_written_are_a_problem_and_not_known(script, cluster):
    script.say("POST", f"{ROOT}/default/events", {"message": "events is forbidden"}, status=403)
    script.say("POST", f"{ROOT}/default/events", {})
    events = Events(cluster=cluster, instance="one")
    with pytest.raises(ApiError, match=r"create events\.events\.k8s\.io in namespace default of prod: forbidden"):
        events.tell((told(),), 0.0)
    events.tell((told(),), 1.0)
    assert asked(script) == ["POST", "POST"]
