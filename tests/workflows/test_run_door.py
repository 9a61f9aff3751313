"""The door's turns where there is nothing to do, and the thread that makes them; no cluster."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from whenever import OffsetDateTime, Time, hours

from ebbtide.adapters.kubernetes.kinds import KUEUE_VERSIONS
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, DayPattern, windows_of
from ebbtide.fleet.operations import QuotaFlavor, QuotaKind, QuotaRef
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.schedule import PoolColumn, Schedule
from ebbtide.workflows.run_beside import Beside
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_door import Door, DoorTurn

QUOTA = QuotaRef(
    kind=QuotaKind.CLUSTER_QUEUE, name="q", flavors=(QuotaFlavor(pool="p", ephemeral="tide", reserved="fixed"),)
)
FLEET = Fleet(
    name="f",
    digest="sha256:1",
    time_zone="UTC",
    confidence=0.95,
    patterns=(),
    pools=(Pool(name="p", gpus_per_node=8, nodes=2, reserved_nodes=1),),
    workloads=(),
    research=Research(quota=QUOTA),
)
COLUMN = PoolColumn(name="p", production_nodes=(0,), ephemeral_nodes=(1,), ephemeral_quota_gpus=(8,), lead_s=(0.0,))
SCHEDULE = Schedule(
    name="s",
    fleet_name="f",
    fleet_digest="sha256:1",
    time_zone="UTC",
    valid_until=OffsetDateTime(2099, 1, 1, offset=hours(0)),
    windows=windows_of(DayPattern(days=WEEK, starts=(Time(0),))),
    workloads=(),
    pools=(COLUMN,),
)
DOCUMENTS = Documents(fleet=FLEET, schedule=SCHEDULE)


class Said:
    """What the process would log."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def once(self, about: str, text: str, *, level: str = "warning") -> None:
        del level
        self.said[about] = text


class Server:
    """A cluster that serves these versions of Kueue and nothing in it."""

    name = "research"

    def __init__(self, *versions: str, problem: Kind | None = None) -> None:
        self.versions, self.problem, self.lists = versions, problem, 0

    def get(self, path, kind):
        assert path == "/apis"
        groups = [{"name": "kueue.x-k8s.io", "versions": [{"version": one} for one in self.versions]}]
        import msgspec

        return msgspec.convert({"groups": groups if self.versions else []}, kind)

    def list(self, path, kind, **_more):
        self.lists += 1
        if self.problem is not None:
            raise ApiError(self.problem, Asked(cluster="research", verb="list", resource="localqueues"), "no")
        return []


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (replace(DOCUMENTS, schedule=None, blocked="two Schedules"), "two Schedules"),
        (replace(DOCUMENTS, fleet=replace(FLEET, research=Research())), "spec.research.quota"),
        (replace(DOCUMENTS, fleet=replace(FLEET, digest="sha256:2")), "another Fleet"),
    ],
)
def test_nothing_is_asked_where_nothing_can_be_done(documents, words):
    said, server = Said(), Server("v1beta2")
    turn = Door(server, said, goes_on=lambda: True).turn(documents, 0.0)
    assert words in turn.idle
    assert words in said.said["jobs"]
    assert server.lists == 0


@pytest.mark.parametrize(("versions", "words"), [((), "no Kueue"), (("v1alpha1", "v1"), "v1alpha1, v1")])
def test_no_kueue_or_another_one_is_said_and_nothing_else_happens(versions, words):
    said = Said()
    turn = Door(Server(*versions), said, goes_on=lambda: True).turn(DOCUMENTS, 0.0)
    assert words in said.said["jobs"]
    assert not turn.failed


@pytest.mark.parametrize("version", KUEUE_VERSIONS)
def test_an_empty_cluster_is_no_trouble(version):
    said = Said()
    turn = Door(Server(version), said, goes_on=lambda: True).turn(DOCUMENTS, 0.0)
    assert turn == DoorTurn()
    assert said.said["jobs"] == ""


def test_what_is_forbidden_is_said_and_asked_again_after_a_minute():
    said, server = Said(), Server("v1beta2", problem=Kind.FORBIDDEN)
    door = Door(server, said, goes_on=lambda: True)
    assert door.turn(DOCUMENTS, 0.0).failed
    assert "list localqueues of research: forbidden" in said.said["jobs"]
    assert door.turn(DOCUMENTS, 30.0).failed
    assert server.lists == 1
    door.turn(DOCUMENTS, 61.0)
    assert server.lists == 2


class Turns:
    """A door that counts its turns, and ends in a bug if told so."""

    def __init__(self, bug: Exception | None = None) -> None:
        self.turned, self.bug = threading.Event(), bug
        self.heard = threading.Event()

    def turn(self, _documents, _at_s):
        self.turned.set()
        if self.bug is not None:
            raise self.bug
        return DoorTurn()

    def changes(self):
        self.heard.wait(10)
        yield None


def test_a_bug_in_the_thread_is_raised_where_the_controller_asks():
    door = Turns(ValueError("a bug"))
    beside = Beside(door, lambda: DOCUMENTS, lambda: True, every_s=60.0)
    beside.start()
    beside._threads[0].join(10)
    with pytest.raises(ValueError, match="a bug"):
        beside.check()
    beside.stop()


def test_without_the_lease_no_turn_is_made():
    door, asked = Turns(), threading.Event()
    beside = Beside(door, lambda: DOCUMENTS, lambda: bool(asked.set()), every_s=0.01)
    beside.start()
    assert asked.wait(10)
    beside.stop()
    assert not door.turned.is_set()
