"""The Lease in virtual time: one of two controllers acts, whatever their clocks say and however long one sleeps."""

from __future__ import annotations

import contextlib
import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.config.kubeconfig import SingleConfig
from lightkube.config.models import Cluster as Server
from lightkube.config.models import Context, User

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.lease import OURS, Lease
from ebbtide.adapters.kubernetes.pacing import Pace
from ebbtide.adapters.kubernetes.problems import ApiError, Kind

DURATION_S = 30.0
PATH = "/apis/coordination.k8s.io/v1/namespaces/home/leases"


class Shelf:
    """A server with one Lease and its versions; ``down``: it does not answer."""

    def __init__(self) -> None:
        self.held: dict | None = None
        self.version = 0
        self.down = False
        self.writes = 0
        self.before = lambda: None

    @property
    def holder(self) -> str:
        return "" if self.held is None else self.held["spec"]["holderIdentity"]

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.before()
        if self.down:
            raise httpx2.ConnectError("connection refused")
        if request.method == "GET":
            return (
                httpx2.Response(404, json={"code": 404}) if self.held is None else httpx2.Response(200, json=self.held)
            )
        body = json.loads(request.content)
        stale = body["metadata"].get("resourceVersion", "") != ("" if self.held is None else str(self.version))
        if stale:
            return httpx2.Response(409, json={"code": 409, "message": "changed"})
        self.version, self.writes = self.version + 1, self.writes + 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.held = body
        return httpx2.Response(200, json=body)


class Clock:
    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def lease(shelf, connected):
    """Makes a controller's lease; its clock may show any time."""

    def make(identity: str, clock: Clock) -> Lease:
        return Lease(connected(shelf.answer), "home", "ebbtide-x", identity, duration_s=DURATION_S, clock=clock)

    return make


def test_the_first_takes_it_the_second_waits_until_it_stood_unchanged_for_its_duration(shelf, lease):
    here, there = Clock(), Clock(5000.0)
    one, two = lease("one", here), lease("two", there)
    assert one.hold()
    assert not two.hold()
    assert (two.holder, shelf.holder) == ("one", "one")
    there.now_s += DURATION_S
    assert not two.hold()
    there.now_s += 0.1
    assert two.hold()
    assert (shelf.holder, shelf.held["spec"]["leaseTransitions"]) == ("two", 1)


def test_ours_ends_before_anybody_may_take_it(shelf, lease):
    clock = Clock()
    one = lease("one", clock)
    one.hold()
    clock.now_s = OURS * DURATION_S - 0.1
    assert one.still_ours()
    clock.now_s = OURS * DURATION_S
    assert not one.still_ours()
    assert OURS < 1.0


def test_it_is_renewed_by_thirds_and_a_rival_counts_from_the_last_renewal(shelf, lease):
    here, there = Clock(), Clock()
    one, two = lease("one", here), lease("two", there)
    for now_s in range(0, 100, 2):
        here.now_s = there.now_s = float(now_s)
        assert one.hold()
        assert not two.hold()
    assert shelf.writes == 10  # at 0, 10, 20, …


def test_one_that_slept_does_not_think_it_holds_it_and_does_not_take_it_back(shelf, lease):
    here, there = Clock(), Clock()
    one, two = lease("one", here), lease("two", there)
    one.hold()
    two.hold()
    here.now_s = there.now_s = DURATION_S + 1.0
    assert two.hold()
    writes = shelf.writes
    assert not one.still_ours()
    assert not one.hold()
    assert (shelf.writes, one.holder) == (writes, "two")


def test_one_that_slept_while_nobody_was_there_takes_it_again(shelf, lease):
    clock = Clock()
    one = lease("one", clock)
    one.hold()
    clock.now_s = 1000.0
    assert not one.still_ours()
    assert one.hold()
    assert shelf.held["spec"]["leaseTransitions"] == 0


def test_a_renewal_counts_from_before_it_was_sent(shelf, lease):
    clock = Clock()
    one = lease("one", clock)
    shelf.before = lambda: setattr(clock, "now_s", clock.now_s + 5.0)
    assert one.hold()
    clock.now_s = OURS * DURATION_S
    assert not one.still_ours()


def test_while_home_is_silent_it_is_ours_for_its_time_and_then_that_is_said(shelf, lease):
    clock = Clock()
    one = lease("one", clock)
    one.hold()
    shelf.down = True
    clock.now_s = 15.0
    assert one.hold()
    clock.now_s = 21.0
    with pytest.raises(ApiError) as caught:
        one.hold()
    assert caught.value.why is Kind.UNREACHABLE
    assert not one.still_ours()


def test_given_back_the_other_need_not_wait_and_one_that_is_not_ours_is_left(shelf, lease):
    clock = Clock()
    one, two = lease("one", clock), lease("two", clock)
    one.hold()
    two.release()
    assert shelf.holder == "one"
    one.release()
    assert (shelf.holder, one.still_ours()) == ("", False)
    assert two.hold()
    one.release()
    assert shelf.holder == "two"


def test_a_write_is_not_sent_once_the_lease_is_not_ours(shelf, lease, connected):
    clock, sent = Clock(), []
    one = lease("one", clock)
    one.hold()

    def server(request):
        sent.append(request.method)
        return httpx2.Response(200, json={})

    cluster: Cluster = connected(server, may_write=one.still_ours)
    cluster.patch("/api/v1/nodes/a", {}, "application/merge-patch+json")
    clock.now_s = DURATION_S
    for write in (
        lambda: cluster.patch("/api/v1/nodes/a", {}, "application/merge-patch+json"),
        lambda: cluster.create("/api/v1/namespaces/x/pods/p/eviction", {}),
        lambda: cluster.replace("/api/v1/namespaces/x/configmaps/c", {}),
        lambda: cluster.delete("/api/v1/namespaces/x/pods/p"),
        lambda: cluster.apply("/api/v1/namespaces/x/configmaps/c", {}, manager="m"),
    ):
        with pytest.raises(ApiError, match="no longer ours") as caught:
            write()
        assert caught.value.why is Kind.DEPOSED
    cluster.get("/api/v1/nodes/a", dict)
    assert sent == ["PATCH", "GET"]


STEPS = st.lists(
    st.tuples(st.sampled_from(("one", "two", "three")), st.floats(0.0, 40.0), st.booleans()), min_size=1, max_size=60
)


@pytest.fixture(scope="module")
def rivals():
    """Three connections to the shelf that stands now: connections are dear, and hundreds of runs are tried."""
    shelves = [Shelf()]
    user, server = User(token="secret"), Server(server="https://api.example")
    config = SingleConfig(context_name="prod", context=Context(cluster="prod"), cluster=server, user=user)
    transport = httpx2.MockTransport(lambda request: shelves[0].answer(request))  # noqa: PLW0108 - it is another each run
    pace = Pace(per_s=1e6, silence_s=0.0)
    made = {name: Cluster(config, transport=transport, pace=pace) for name in ("one", "two", "three")}
    yield shelves, made
    for one in made.values():
        one.close()


@given(steps=STEPS)
def test_never_do_two_think_that_it_is_theirs(rivals, steps):
    """Controllers that sleep, wake, lose home and find it again, in any order; clocks that differ by years."""
    shelves, clusters = rivals
    shelf = shelves[0] = Shelf()
    offsets = {"one": 0.0, "two": 1e8, "three": -1e8}
    clocks = {name: Clock(offset) for name, offset in offsets.items()}
    leases = {
        name: Lease(clusters[name], "home", "x", name, duration_s=DURATION_S, clock=clocks[name]) for name in offsets
    }
    now_s = 0.0
    for name, wait_s, down in steps:
        now_s += wait_s
        for each, clock in clocks.items():
            clock.now_s = offsets[each] + now_s
        shelf.down = down
        with contextlib.suppress(ApiError):
            leases[name].hold()
        assert sum(one.still_ours() for one in leases.values()) <= 1
