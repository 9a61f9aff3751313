"""Parts of the controller's process in virtual time: live demand, the Lease's keeper, what is said, and rests."""

from __future__ import annotations

import threading
from dataclasses import replace

import httpx2
import pytest

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.actions import Decision, SetReplicas, Why, Withheld
from ebbtide.control.loop import Tick
from ebbtide.control.memory import Memory
from ebbtide.control.state import Replicas, Sight, State
from ebbtide.control.world import Result
from ebbtide.errors import TemporaryError
from ebbtide.fleet.operations import LiveDemand
from ebbtide.settings import Settings
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_lease import LeaseKeeper
from ebbtide.workflows.run_live import ASK_EVERY_S, LiveReader
from ebbtide.workflows.run_told import Teller

NOW_S = 1_789_000_000.0
FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: day-and-night}
spec:
  timeZone: Asia/Shanghai
  demand: [{name: small, file: rates.csv}, {name: live, promql: "sum by (service) (rate(requests_total[5m]))"}]
  liveDemand: live
  pools: [{name: h100, gpusPerNode: 8, nodes: 40}]
  workloads:
  - name: chat
    demand: {source: small, key: m-small/c5}
    gpusPerReplica: 1
    service: {time: 6s}
    targets: [{wait: 2s}]
  - name: agents
    demand: {source: small}
    gpusPerReplica: 2
    service: {time: 8s}
    targets: [{wait: 5s}]
"""


@pytest.fixture
def fleet(tmp_path):
    (tmp_path / "fleet.yaml").write_text(FLEET)
    return read_fleet(tmp_path / "fleet.yaml").fleet


class Server:
    def __init__(self):
        self.series, self.down, self.asked = {"m-small/c5": "12.5"}, False, 0

    def __call__(self, request):
        self.asked += 1
        if self.down:
            raise httpx2.ConnectError("connection refused")
        result = [{"metric": {"service": key}, "value": [NOW_S, value]} for key, value in self.series.items()]
        return httpx2.Response(200, json={"status": "success", "data": {"resultType": "vector", "result": result}})


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def live():
    server, clock = Server(), Clock()
    settings = Settings(sql_url=None, prometheus_url="http://prometheus.example")
    reader = LiveReader(settings, running_s=clock, transport=httpx2.MockTransport(server))
    return server, clock, reader


def test_live_demand_is_by_workload_and_what_is_missing_is_not_observed(live, fleet):
    _, _, reader = live
    found = reader.read(fleet, NOW_S + 1.0)
    assert (dict(found.rps), found.at_s, found.problem) == ({"chat": 12.5}, NOW_S, None)


def test_it_is_asked_every_quarter_of_a_minute_and_more_seldom_while_it_fails(live, fleet):
    server, clock, reader = live
    for second in range(30):
        clock.now_s = float(second)
        reader.read(fleet, NOW_S + second)
    assert server.asked == 2
    server.down = True
    clock.now_s = 30.0
    failed = reader.read(fleet, NOW_S + 30.0)
    assert (dict(failed.rps), isinstance(failed.problem, TemporaryError)) == ({}, True)
    for second in range(30, 331):
        clock.now_s = float(second)
        reader.read(fleet, NOW_S + second)
    assert server.asked == 2 + 6  # at 30, 60, then every minute
    server.down = False
    clock.now_s += 60.0
    assert reader.read(fleet, NOW_S + 100.0).problem is None
    clock.now_s += ASK_EVERY_S
    asked = server.asked
    reader.read(fleet, NOW_S + 100.0)
    assert server.asked == asked + 1


def test_another_query_is_asked_at_once_and_none_is_no_problem(live, fleet):
    server, _, reader = live
    reader.read(fleet, NOW_S)
    reader.read(replace(fleet, live_demand=LiveDemand(source="live", promql="up")), NOW_S)
    assert server.asked == 2
    assert reader.read(replace(fleet, live_demand=None), NOW_S).rps == {}


def test_a_fleet_that_names_live_demand_where_no_server_is_set_is_told(fleet):
    found = LiveReader(Settings(sql_url=None)).read(fleet, NOW_S)
    assert "EBBTIDE_PROMETHEUS_URL" in str(found.problem)


class FakeLease:
    def __init__(self):
        self.held, self.problem, self.ours = threading.Semaphore(0), None, False

    def hold(self):
        self.held.release()
        if self.problem is not None:
            raise self.problem
        self.ours = True
        return True

    def still_ours(self):
        return self.ours


@pytest.fixture
def keeping():
    made = []

    def keep(lease, **more):
        keeper = LeaseKeeper(lease, duration_s=0.015, **more)
        made.append(keeper)
        keeper.start()
        return keeper

    yield keep
    for one in made:
        one.stop()


def test_the_keeper_has_tried_when_it_has_started_and_goes_on_by_itself(keeping):
    lease = FakeLease()
    keeper = keeping(lease)
    assert keeper.ours()
    for _ in range(5):
        assert lease.held.acquire(timeout=60)
    keeper.stop()
    while lease.held.acquire(blocking=False):
        pass
    assert not lease.held.acquire(timeout=0.05)


def test_a_loop_that_hangs_does_not_keep_its_lease(keeping):
    lease, asked = FakeLease(), threading.Semaphore(0)

    def alive():
        asked.release()
        return False

    keeping(lease, alive=alive)
    assert lease.held.acquire(timeout=60)  # the try of the start
    for _ in range(3):
        assert asked.acquire(timeout=60)
    assert not lease.held.acquire(blocking=False)


def test_a_home_that_does_not_answer_is_told_and_a_bug_does_not_end_in_silence(keeping):
    lease = FakeLease()
    lease.problem = TemporaryError("no answer", kind="api_unreachable")
    keeper = keeping(lease)
    assert str(keeper.problem) == "no answer"
    lease.problem = ZeroDivisionError("a bug")
    while lease.held.acquire(blocking=False):
        pass
    for _ in range(2):  # when the second try begins, the first has ended
        assert lease.held.acquire(timeout=60)
    with pytest.raises(ZeroDivisionError):
        keeper.ours()


class Log:
    def __init__(self):
        self.lines = []

    def __getattr__(self, level):
        return lambda event, **fields: self.lines.append((level, event, fields))


def test_a_call_that_fails_again_and_again_is_said_once_and_when_it_is_over():
    log, metrics = Log(), Metrics()
    teller = Teller(log, metrics, None)
    asked = Asked(cluster="lab", verb="list", resource="nodes")
    for text in ("connection refused", "not asked: it failed just now", "not asked: it failed just now"):
        teller.failed([ApiError(Kind.UNREACHABLE, asked, text)])
    teller.failed([])
    assert [(level, event) for level, event, _ in log.lines] == [
        ("warning", "call failed"),
        ("info", "call no longer fails"),
    ]
    assert log.lines[0][2]["problem"] == "list nodes of lab: unreachable: connection refused"
    assert metrics.registry.get_sample_value("ebbtide_problems_total", {"kind": "api_unreachable"}) == 3.0


def test_an_action_that_is_refused_again_and_again_is_said_once_and_one_that_is_done_always(fleet, schedule):
    log = Log()
    teller = Teller(log, Metrics(), None)
    documents, (quiet, state, _) = Documents(fleet=fleet, schedule=schedule), _tick(schedule)
    for k, result in enumerate((Result.REFUSED, Result.REFUSED, Result.FAILED, Result.DONE, Result.DONE)):
        why = Why(rule="§6.3", text="the plan", numbers={"seen": k})
        acted = replace(quiet, results=((SetReplicas(why=why, workload="chat", replicas=3), result),))
        teller.tick(documents, acted, state, NOW_S, 0.1)
    said = [fields["result"] for _, event, fields in log.lines if event == "action"]
    assert said == ["refused", "failed", "done", "done"]


def test_a_full_disk_stops_no_tick(fleet, schedule):
    class Full:
        def write(self, *_):
            raise OSError(28, "No space left on device")

    log = Log()
    teller = Teller(log, Metrics(), Full())
    for _ in range(2):
        teller.tick(Documents(fleet=fleet, schedule=schedule), *_tick(schedule), 0.1)
    said = [fields["now"] for _, event, fields in log.lines if event == "record"]
    assert said == ["cannot be written: No space left on device"]


def test_metrics_show_what_stands_what_is_withheld_and_the_share_of_live_demand(fleet, schedule):
    metrics = Metrics()
    teller = Teller(Log(), metrics, None)
    teller.tick(Documents(fleet=fleet, schedule=schedule), *_tick(schedule, live_rps={"chat": 74.0}), 0.1)
    value = metrics.registry.get_sample_value
    assert value("ebbtide_live_demand_share", {"workload": "chat"}) == pytest.approx(0.2)  # 37 replicas hold 370
    assert value("ebbtide_replicas", {"workload": "chat", "are": "ready"}) == 36.0
    assert value("ebbtide_withheld", {"rule": "§6.7"}) == 1.0
    assert value("ebbtide_active") == 0.0
    assert value("ebbtide_sight_age_seconds", {"side": "production"}) == 4.0
    teller.tick(Documents(fleet=fleet, schedule=schedule), *_tick(schedule), 0.1)
    assert value("ebbtide_live_demand_share", {"workload": "chat"}) is None  # gone, not frozen


def _tick(schedule, **more):
    withheld = Withheld(what="live guard", why=Why(rule="§6.7", text="not observed"))
    decision = Decision(
        actions=(), withheld=(withheld,), next_look_s=NOW_S, window=schedule.windows[0].name, phase="Holding"
    )
    chat = Replicas(workload="chat", wanted=37, ready=36)
    sight = Sight(seen_at_s=NOW_S - 4.0, replicas={"chat": chat})
    return Tick(decision=decision, results=()), State(production=sight, research=sight, memory=Memory(), **more), NOW_S
