"""Fleets as read: the short form completed, every field carried over, and each refusal by kind, line and field."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from whenever import Date, Time

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.problems import DocumentErrors
from ebbtide.errors import DocumentError, InputError
from ebbtide.fleet.horizon import WEEK, Choose, DatedException, DayPattern, Weekday
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Target, TargetKind, Workload

SHORT = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  demand: [{name: log, file: requests.csv.gz}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 6}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 6s, concurrency: 64}, targets: [{wait: 2s}]}
  - {name: agents, gpusPerReplica: 2, service: {time: 8s, concurrency: 16}, targets: [{wait: 5s}]}
"""
FULL = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: day-and-night, namespace: ebbtide, labels: {team: ml}}
spec:
  timeZone: Asia/Shanghai
  confidence: 0.9
  windows:
  - days: [Mon, Tue, Wed, Thu, Fri]
    starts: ["00:00", 07:30, "19:00"]
  - days: [Sun, Sat]
    choose: {atMost: 4, shortest: 3h}
  demand:
  - name: small
    file: small_*.csv.gz
    columns: {time: t_s, workload: service, rate: rate_rps, serviceTime: dur}
    origin: "2026-09-01T00:00"
    timeZone: Europe/Berlin
    interval: 10m
  - {name: large, table: prod.requests}
  pools:
  - {name: h100, gpusPerNode: 8, nodes: 40, reservedNodes: 8, minProductionNodes: 8, yieldTime: 20m, reclaimTime: 45m,
     movesAtOnce: 8}
  - {name: l4, gpusPerNode: 4, nodes: 10}
  workloads:
  - name: chat
    demand: {source: small, key: m-small/c5}
    pool: h100
    gpusPerReplica: 1
    service: {time: 6s, scv: 0.5, concurrency: 64}
    balancing: pooled
    patience: 30s
    targets: [{wait: 2s, percentile: 0.99}, {latency: 9s}]
    weight: 2.5
    waitingCostUsdPerRequestHour: 0.01
    minReplicas: 2
    maxReplicas: 100
    startupTime: 1m30s
  - name: agents
    demand: {source: large}
    pool: l4
    gpusPerReplica: 2
    service: {observed: {}, concurrency: 16}
    targets: [{latency: 1m}]
  research: {valueUsdPerGpuHour: 2, checkpointInterval: 30m}
  exceptions:
  - {name: golden-week, from: 2026-10-01, until: "2026-10-08", like: Sun}
  - {name: launch, from: "2026-11-01", until: "2026-11-03", workloads: [chat], demandFactor: 1.8}
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "fleet.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(folder: Path, text: str | bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_fleet(written(folder, text))
    return caught.value


def test_the_short_form_is_completed(tmp_path: Path) -> None:
    document = read_fleet(written(tmp_path, SHORT))
    fleet = document.fleet
    assert (fleet.name, fleet.time_zone, fleet.confidence) == ("two-models", "America/New_York", 0.95)
    assert fleet.patterns == (DayPattern(days=WEEK, choose=Choose(at_most=6, shortest_s=7200.0)),)
    assert fleet.pools == (Pool(name="h100", gpus_per_node=8, nodes=6),)
    assert fleet.pools[0].yield_time_s == 1800.0
    assert fleet.workload("agents") == Workload(
        name="agents",
        demand=DemandRef(source="log", key="agents"),
        pool="h100",
        gpus_per_replica=2,
        service=Service(time_s=8.0, scv=None, concurrency=16),
        targets=(Target(kind=TargetKind.WAIT, bound_s=5.0, percentile=0.95),),
    )
    assert fleet.research == Research()
    (source,) = document.sources
    assert (source.name, source.file, source.table, source.interval_s) == ("log", "requests.csv.gz", None, None)
    assert (source.time_zone, source.folder, source.columns) == ("America/New_York", tmp_path, {})
    assert document.source("log") is source


def test_every_field_is_carried_over(tmp_path: Path) -> None:
    document = read_fleet(written(tmp_path, FULL))
    fleet = document.fleet
    assert fleet.confidence == 0.9
    assert fleet.patterns == (
        DayPattern(days=WEEK[:5], starts=(Time(0), Time(7, 30), Time(19))),
        DayPattern(days=WEEK[5:], choose=Choose(at_most=4, shortest_s=10800.0)),
    )
    assert fleet.pools[0] == Pool(
        name="h100",
        gpus_per_node=8,
        nodes=40,
        reserved_nodes=8,
        min_production_nodes=8,
        yield_time_s=1200.0,
        reclaim_time_s=2700.0,
        moves_at_once=8,
    )
    assert fleet.workloads[0] == Workload(
        name="chat",
        demand=DemandRef(source="small", key="m-small/c5"),
        pool="h100",
        gpus_per_replica=1,
        service=Service(time_s=6.0, scv=0.5, concurrency=64),
        targets=(
            Target(kind=TargetKind.WAIT, bound_s=2.0, percentile=0.99),
            Target(kind=TargetKind.LATENCY, bound_s=9.0, percentile=0.95),
        ),
        balancing=Balancing.POOLED,
        patience_s=30.0,
        weight=2.5,
        waiting_cost_usd_per_request_h=0.01,
        min_replicas=2,
        max_replicas=100,
        startup_time_s=90.0,
    )
    assert fleet.workloads[1].service == Service(time_s=None, scv=None, concurrency=16)
    assert math.isinf(fleet.workloads[1].patience_s)
    assert fleet.research == Research(value_usd_per_gpu_h=2.0, checkpoint_interval_s=1800.0, value_given=True)
    assert fleet.exceptions == (
        DatedException(name="golden-week", start=Date(2026, 10, 1), until=Date(2026, 10, 8), like=Weekday.SUN),
        DatedException(
            name="launch",
            start=Date(2026, 11, 1),
            until=Date(2026, 11, 3),
            workloads=("chat",),
            demand_factor=1.8,
        ),
    )
    small, large = document.sources
    assert small.columns == {"time": "t_s", "workload": "service", "rate": "rate_rps", "serviceTime": "dur"}
    assert (small.origin, small.time_zone, small.interval_s) == ("2026-09-01T00:00", "Europe/Berlin", 600)
    assert (large.table, large.file, large.time_zone) == ("prod.requests", None, "Asia/Shanghai")


def test_the_session_of_the_documentation(tmp_path: Path) -> None:
    error = refusal(tmp_path, SHORT.replace("nodes: 6", "nodes: 6, reservedNode: 1"))
    assert str(error) == f"{tmp_path}/fleet.yaml:7: pools[h100].reservedNode: unknown field; nearest: reservedNodes"
    assert (error.kind, error.hint) == ("unknown_field", "reservedNodes")
    assert (error.place.line, error.place.field) == (7, "pools[h100].reservedNode")


FIELDS = [
    # change: (old, new), kind, field, a word of the message or hint
    (("nodes: 6", "node: 6"), "unknown_field", "pools[h100].node", "nodes"),
    (("nodes: 6", "nodes: 6, gpuModel: H100"), "not_yet", "pools[h100].gpuModel", "remove it"),
    (("wait: 2s", "firstToken: 2s"), "conflicting_fields", "workloads[chat].targets[0].firstToken", "name a claim"),
    (("time: 6s,", "profile: p.csv,"), "not_yet", "workloads[chat].service.profile", "remove it"),
    (("nodes: 6", "nodes: '6'"), "wrong_type", "pools[h100].nodes", 'text "6"'),
    (("nodes: 6", "nodes: true"), "wrong_type", "pools[h100].nodes", "whole number"),
    (("nodes: 6", "nodes: 6.5"), "wrong_type", "pools[h100].nodes", "whole number"),
    (("nodes: 6", "nodes: ~"), "wrong_type", "pools[h100].nodes", "empty"),
    (("nodes: 6", "nodes: 0"), "out_of_range", "pools[h100].nodes", "at least 1"),
    (("nodes: 6", "nodes: -6"), "out_of_range", "pools[h100].nodes", "at least 1"),
    (("nodes: 6", "nodes: " + "9" * 5000), "not_finite", "pools[h100].nodes", "finite"),
    (("nodes: 6", "nodes: .nan"), "not_finite", "pools[h100].nodes", "finite"),
    (("gpusPerNode: 8", "gpusPerNode: 0"), "out_of_range", "pools[h100].gpusPerNode", "at least 1"),
    (("nodes: 6", "nodes: 6, reservedNodes: 7"), "out_of_range", "pools[h100].reservedNodes", "6 nodes"),
    (
        ("nodes: 6", "nodes: 6, reservedNodes: 2, minProductionNodes: 5"),
        "out_of_range",
        "pools[h100].minProductionNodes",
        "leave 4",
    ),
    (("nodes: 6", "nodes: 6, nodes: 7"), "duplicate_key", "pools[h100].nodes", "line 7"),
    (("nodes: 6", "nodes: 6, yieldTime: 10"), "bad_duration", "pools[h100].yieldTime", "unit"),
    (("nodes: 6", "nodes: 6, yieldTime: -10m"), "bad_duration", "pools[h100].yieldTime", "no duration"),
    (("nodes: 6", "nodes: 6, yieldTime: 9000d"), "out_of_range", "pools[h100].yieldTime", "366d"),
    (("nodes: 6", "nodes: 6, yieldTime: .inf"), "not_finite", "pools[h100].yieldTime", "finite"),
    (("gpusPerReplica: 1", "gpusPerReplica: 49"), "replica_wider_than_pool", "workloads[chat].gpusPerReplica", "48"),
    (("gpusPerReplica: 1,", "gpusPerReplica: 1, pool: h10,"), "unknown_pool", "workloads[chat].pool", "h100"),
    (
        ("gpusPerReplica: 1,", "gpusPerReplica: 1, demand: {source: lag},"),
        "unknown_source",
        "workloads[chat].demand.source",
        "log",
    ),
    (("targets: [{wait: 2s}]", "targets: []"), "out_of_range", "workloads[chat].targets", "at least 1"),
    (("wait: 2s", "wait: 2s, percentile: 1.0"), "out_of_range", "workloads[chat].targets[0].percentile", "below 1"),
    (("wait: 2s", "wait: 2s, percentile: 0"), "out_of_range", "workloads[chat].targets[0].percentile", "above 0"),
    (("wait: 2s", "wait: 2s, percentile: 95"), "out_of_range", "workloads[chat].targets[0].percentile", "0.95"),
    (("wait: 2s", "wait: 0s"), "out_of_range", "workloads[chat].targets[0].wait", "above 0s"),
    (("wait: 2s", "latency: 5s"), "latency_below_service", "workloads[chat].targets[0].latency", "6s"),
    (("wait: 2s", "latency: 7s, wait: 1s"), "conflicting_fields", "workloads[chat].targets[0]", "one of them"),
    (("wait: 2s", "percentile: 0.9"), "missing_field", "workloads[chat].targets[0]", "neither wait nor latency"),
    (("time: 6s", "time: 6s, observed: {}"), "conflicting_fields", "workloads[chat].service", "time and observed"),
    (("time: 6s, concurrency", "concurrency"), "missing_field", "workloads[chat].service", "neither"),
    (("time: 6s", "observed: {}, scv: 1"), "conflicting_fields", "workloads[chat].service.scv", "trace"),
    (("time: 6s", "time: 0s"), "out_of_range", "workloads[chat].service.time", "above"),
    (("time: 6s", "time: 6s, scv: -1"), "out_of_range", "workloads[chat].service.scv", "at least 0"),
    (("concurrency: 64", "concurrency: 0"), "out_of_range", "workloads[chat].service.concurrency", "at least 1"),
    (
        ("gpusPerReplica: 1", "gpusPerReplica: 1, minReplicas: 5, maxReplicas: 4"),
        "minimum_above_maximum",
        "workloads[chat].minReplicas",
        "maxReplicas is 4",
    ),
    (("gpusPerReplica: 1", "gpusPerReplica: 1, weight: .inf"), "not_finite", "workloads[chat].weight", "finite"),
    (("gpusPerReplica: 1", "gpusPerReplica: 1, weight: -1"), "out_of_range", "workloads[chat].weight", "above 0"),
    (
        ("gpusPerReplica: 1", "gpusPerReplica: 1, balancing: leastloaded"),
        "unknown_value",
        "workloads[chat].balancing",
        "leastLoaded",
    ),
    (("name: chat", "name: Chat_1"), "bad_name", "workloads[Chat_1].name", "DNS label"),
    (("name: chat", "name: 7"), "wrong_type", "workloads[0].name", "a name"),
    (("name: two-models", "name: two models"), "bad_name", "metadata.name", "DNS label"),
    (("America/New_York", "America/NewYork"), "unknown_time_zone", "timeZone", "America/New_York"),
    (("  timeZone: America/New_York\n", ""), "missing_field", "timeZone", "missing"),
    (("file: requests.csv.gz", "file: a.csv, table: b"), "conflicting_fields", "demand[log]", "file and table"),
    ((", file: requests.csv.gz", ""), "missing_field", "demand[log]", "neither"),
    (("name: log", "name: log, columns: {servicetime: x}"), "unknown_field", "demand[log].columns.servicetime", "ser"),
    (("name: log", "name: log, columns: {rate: x, count: y}"), "conflicting_fields", "demand[log].columns", "rate"),
    (("name: log", "name: log, columns: {time: x, rate: x}"), "conflicting_fields", "demand[log].columns.rate", "time"),
    (("name: log", "name: log, interval: 0s"), "out_of_range", "demand[log].interval", "above 0s"),
    (("name: log", "name: log, origin: yesterday"), "bad_instant", "demand[log].origin", "2026-09-01T00:00"),
    (("kind: Fleet", "kind: Fleat"), "wrong_kind", "kind", "Fleet"),
    (("v1alpha1", "v1"), "wrong_api_version", "apiVersion", "v1alpha1"),
    (("apiVersion", "apiversion"), "unknown_field", "apiversion", "apiVersion"),
    (("spec:", "specs:"), "unknown_field", "specs", "spec"),
    (("spec:", "spec:\n  confidence: 1"), "out_of_range", "confidence", "below 1"),
    (("spec:", "spec:\n  research: {valueUsdPerGpuHour: 0}"), "out_of_range", "research.valueUsdPerGpuHour", "above 0"),
    (("spec:", "spec:\n  research: {quota: x}"), "wrong_type", "research.quota", "a map"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 2026-10-08, until: 2026-10-08, like: Sun}]"), "out_of_range",
     "exceptions[x].until", "not after"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 0001-01-01, until: 2026-10-08, like: Sun}]"), "out_of_range",
     "exceptions[x].from", "1971-01-01"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 2026-10-08, until: 9999-12-31, like: Sun}]"), "out_of_range",
     "exceptions[x].until", "2200-01-01"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 2026-10-08, until: 2026-10-09}]"), "missing_field",
     "exceptions[x]", "changes nothing"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 2026-02-30, until: 2026-10-09, like: Sun}]"), "bad_date",
     "exceptions[x].from", "no date"),
    (("spec:", "spec:\n  exceptions: [{name: x, from: 2026-10-08, until: 2026-10-09, like: Sun, workloads: [chot]}]"),
     "unknown_workload", "exceptions[x].workloads[0]", "chat"),
    (("spec:", "spec:\n  windows: [{starts: [7:30]}]"), "bad_clock_time", "windows[0].starts[0]", "two digits"),
    (("spec:", "spec:\n  windows: [{starts: [\"24:00\"]}]"), "bad_clock_time", "windows[0].starts[0]", "two digits"),
    (("spec:", "spec:\n  windows: [{starts: [730]}]"), "wrong_type", "windows[0].starts[0]", "quoted text"),
    (("spec:", "spec:\n  windows: [{starts: []}]"), "out_of_range", "windows[0].starts", "empty"),
    (("spec:", "spec:\n  windows: []"), "out_of_range", "windows", "at least 1"),
    (("spec:", "spec:\n  windows: [{starts: [09:00, 07:00]}]"), "starts_not_sorted", "windows[0].starts[1]", "07:00"),
    (("spec:", "spec:\n  windows: [{starts: [07:00, 07:00]}]"), "starts_not_sorted", "windows[0].starts[1]", "twice"),
    (("spec:", "spec:\n  windows: [{starts: [07:00], choose: {}}]"), "conflicting_fields", "windows[0]", "choose"),
    (("spec:", "spec:\n  windows: [{choose: {shortest: 25h}}]"), "out_of_range", "windows[0].choose.shortest", "day"),
    (("spec:", "spec:\n  windows: [{choose: {atMost: 0}}]"), "out_of_range", "windows[0].choose.atMost", "at least 1"),
    (("spec:", "spec:\n  windows: [{days: [Mon, Tue]}]"), "weekday_in_no_pattern", "windows", "Wed, Thu"),
    (("spec:", "spec:\n  windows: [{}, {days: [Sun]}]"), "weekday_in_two_patterns", "windows[1].days", "Sun"),
    (("spec:", "spec:\n  windows: [{days: [Monday]}]"), "unknown_value", "windows[0].days[0]", "Mon"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "field", "word"), FIELDS, ids=[row[0][1][:60] for row in FIELDS])
def test_refused_by_kind_and_field(tmp_path: Path, change: tuple[str, str], kind: str, field: str, word: str) -> None:
    assert change[0] in SHORT
    error = refusal(tmp_path, SHORT.replace(change[0], change[1], 1))
    assert (error.kind, error.place.field) == (kind, field)
    assert word in str(error)
    assert error.place.line is not None
    assert error.place.file == str(tmp_path / "fleet.yaml")


TEXTS = [
    ("", "empty_file"),
    ("# only a comment\n", "empty_file"),
    ("null\n", "empty_file"),
    ("[1, 2]\n", "wrong_type"),
    ("just text\n", "wrong_type"),
    (SHORT + "---\nkind: Fleet\n", "multiple_documents"),
    ("%YAML 1.1\n---\n" + SHORT, "yaml_directive"),
    ("%TAG ! tag:x,2000:\n---\n" + SHORT, "yaml_directive"),
    (SHORT.replace("spec:", "spec: !!map"), "yaml_tag"),
    (SHORT.replace("6s", "!!python/object:os.system 6s"), "yaml_tag"),
    (SHORT.replace("6s", "*no"), "unknown_alias"),
    (SHORT.replace("6s", "&a [*a]"), "unknown_alias"),
    (SHORT.replace("6s", "[" * 400), "too_deep"),
    (SHORT.replace("6s", "@"), "not_yaml"),
    (SHORT.replace("6s", '"\\UFFFFFFFF"'), "not_yaml"),
    (SHORT.replace("6s", "\x01"), "not_yaml"),
    (SHORT.replace("  timeZone", "\ttimeZone"), "not_yaml"),
    (SHORT.replace("6s", "{[a]: b}"), "bad_key"),
    (SHORT.encode().replace(b"chat", b"ch\xff\xfet"), "not_utf8"),
    (SHORT.encode("utf-16"), "not_utf8"),
    (b"#" * 4_000_001, "too_large"),
]


@pytest.mark.parametrize(("text", "kind"), TEXTS, ids=[kind for _, kind in TEXTS])
def test_no_document_at_all(tmp_path: Path, text: str | bytes, kind: str) -> None:
    assert refusal(tmp_path, text).kind == kind


def test_an_alias_bomb_is_refused_before_it_is_expanded(tmp_path: Path) -> None:
    levels = [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 18)]
    bomb = "apiVersion: ebbtide.dev/v1alpha1\nkind: Fleet\nspec:\n  a0: &a0 [lol]\n" + "".join(levels)
    assert refusal(tmp_path, bomb).kind == "alias_bomb"
    wide = "x:\n- &a [" + "1x, " * 5000 + "]\n" + "- *a\n" * 199
    assert refusal(tmp_path, wide).kind == "alias_bomb"
    many = "x:\n- &a 1\n" + "- *a\n" * 201
    assert refusal(tmp_path, many).kind == "alias_bomb"


def test_an_honest_alias_is_fine(tmp_path: Path) -> None:
    text = SHORT.replace("targets: [{wait: 2s}]", "targets: &t [{wait: 2s}]").replace(
        "targets: [{wait: 5s}]", "targets: *t"
    )
    fleet = read_fleet(written(tmp_path, text)).fleet
    assert fleet.workloads[0].targets == fleet.workloads[1].targets


def test_references_must_be_named_where_there_is_more_than_one(tmp_path: Path) -> None:
    two = SHORT.replace("nodes: 6}]", "nodes: 6}, {name: l4, gpusPerNode: 4, nodes: 2}]")
    error = refusal(tmp_path, two)
    assert isinstance(error, DocumentErrors)
    assert [(one.kind, one.place.field) for one in error.errors] == [
        ("unused_pool", "pools[h100]"),
        ("unused_pool", "pools[l4]"),
        ("missing_field", "workloads[chat].pool"),
        ("missing_field", "workloads[agents].pool"),
    ]
    assert len(str(error).splitlines()) == 4
    named = two.replace("name: chat,", "name: chat, pool: h100,").replace("name: agents,", "name: agents, pool: l4,")
    assert [workload.pool for workload in read_fleet(written(tmp_path, named)).fleet.workloads] == ["h100", "l4"]


def test_a_pool_or_source_that_nobody_names_is_refused(tmp_path: Path) -> None:
    two = SHORT.replace("nodes: 6}]", "nodes: 6}, {name: l4, gpusPerNode: 4, nodes: 2}]")
    two = two.replace("name: chat,", "name: chat, pool: h100,").replace("name: agents,", "name: agents, pool: h100,")
    error = refusal(tmp_path, two)
    assert (error.kind, error.place.field) == ("unused_pool", "pools[l4]")
    text = SHORT.replace("gz}]", "gz}, {name: other, file: b.csv}]")
    text = text.replace("gpusPerReplica", "demand: {source: log}, gpusPerReplica")
    error = refusal(tmp_path, text)
    assert (error.kind, error.place.field) == ("unused_source", "demand[other]")


def test_a_gap_and_an_overlap_between_days_are_named(tmp_path: Path) -> None:
    windows = (
        "spec:\n  windows: [{days: [Mon,Tue,Wed,Thu,Fri], starts: [07:30, 19:00]}, {days: [Sat,Sun], starts: [09:00]}]"
    )
    error = refusal(tmp_path, SHORT.replace("spec:", windows))
    assert isinstance(error, DocumentErrors)
    assert {one.kind: one.message.split(":")[0] + one.message[9:18] for one in error.errors}.keys() == {
        "window_gap",
        "window_overlap",
    }
    messages = {one.kind: one.message for one in error.errors}
    assert messages["window_gap"].startswith("Sat 07:30-09:00 is in no window")
    assert messages["window_overlap"].startswith("Mon 07:30-09:00 is in two windows")


def test_duplicate_names(tmp_path: Path) -> None:
    error = refusal(tmp_path, SHORT.replace("name: agents", "name: chat"))
    assert (error.kind, error.place.line) == ("duplicate_name", 10)


def test_at_most_2000_workloads(tmp_path: Path) -> None:
    row = "  - {{name: w{}, gpusPerReplica: 1, service: {{time: 6s}}, targets: [{{wait: 2s}}]}}\n"
    head = SHORT.split("  - {name: chat")[0]
    error = refusal(tmp_path, head + "".join("  - {}\n" for _ in range(2001)))
    assert "2,001 items; at most 2,000" in str(error)
    assert len(read_fleet(written(tmp_path, head + "".join(row.format(n) for n in range(40)))).fleet.workloads) == 40


def test_all_problems_are_told_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = SHORT.replace("nodes: 6", "node: 6").replace("wait: 5s", "wait: 5").replace("time: 6s", "tim: 6s")
    error = refusal(tmp_path, text)
    assert isinstance(error, DocumentErrors)
    assert [one.place.line for one in error.errors] == sorted(one.place.line or 0 for one in error.errors)
    assert {one.place.field for one in error.errors} >= {
        "pools[h100].node",
        "workloads[chat].service.tim",
        "workloads[agents].targets[0].wait",
    }


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_fleet(tmp_path / "nowhere.yaml")
    assert caught.value.kind == "no_file"
    with pytest.raises(InputError) as caught:
        read_fleet(tmp_path)
    assert caught.value.kind == "not_a_file"


def test_places_of_fields(tmp_path: Path) -> None:
    document = read_fleet(written(tmp_path, FULL))
    assert document.place("workloads[chat].demand.key").line == FULL[: FULL.index("m-small/c5")].count("\n") + 1
    assert (
        document.place("workloads[agents].balancing").line == FULL[: FULL.index("- name: agents")].count("\n") + 1
    )  # not written: the workload's line
    assert document.place("nothing.at.all").line is None


def test_unquoted_times_and_dates_stay_text(tmp_path: Path) -> None:
    text = SHORT.replace("spec:", "spec:\n  windows: [{starts: [00:00, 10:00, 22:00]}]")
    assert read_fleet(written(tmp_path, text)).fleet.patterns[0].starts == (Time(0), Time(10), Time(22))


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    plain = read_fleet(written(tmp_path, SHORT)).fleet
    assert read_fleet(written(tmp_path, b"\xef\xbb\xbf" + SHORT.replace("\n", "\r\n").encode())).fleet == plain


def test_document_errors_are_document_errors(tmp_path: Path) -> None:
    assert isinstance(refusal(tmp_path, SHORT.replace("nodes: 6", "nodes: 0")), DocumentError)
