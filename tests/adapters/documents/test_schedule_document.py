"""Schedules: written as in the documentation, read back as they were, refused where they are wrong."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from whenever import Time

from ebbtide.adapters.documents.emit import rounded_down, significant
from ebbtide.adapters.documents.files import MARK
from ebbtide.adapters.documents.schedule import MOST_BYTES, read_schedule, schedule_outputs, write_schedule
from ebbtide.errors import InputError
from ebbtide.fleet.horizon import WEEK, Window
from ebbtide.fleet.schedule import Explanation, PoolColumn, Schedule, Standing, WorkloadColumn, WorkloadReason

HEAD = """\
# written by ebbtide 0.1.0 for fleet day-and-night: edit with care
apiVersion: ebbtide.dev/v1alpha1
kind: Schedule
metadata: {name: day-and-night}
spec:
  fleet: {name: day-and-night, digest: "sha256:DIGEST"}
  timeZone: Asia/Shanghai
  validUntil: "2026-09-29T00:00:00+08:00"
  windows:
  - {name: all-0000, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "00:00", end: "02:00"}
  - {name: all-0200, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "02:00", end: "06:00"}
  - {name: all-0600, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "06:00", end: "09:00"}
  - {name: all-0900, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "09:00", end: "13:00"}
  - {name: all-1300, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "13:00", end: "19:00"}
  - {name: all-1900, days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun], start: "19:00", end: "00:00"}
  workloads:
  - {name: chat, replicas: [37, 16, 25, 36, 42, 81], holdsRps: [370, 160, 250, 360, 420, 810]}
  - {name: agents, replicas: [3, 6, 9, 27, 27, 11], holdsRps: [30, 60, 90, 270, 270, 110]}
  pools:
  - name: h100
    productionNodes: [14, 8, 11, 25, 24, 24]
    ephemeralNodes: [18, 24, 21, 7, 8, 8]
    ephemeralQuotaGpus: [144, 192, 168, 56, 64, 64]
    lead: [0s, 0s, 50m, 1h35m, 0s, 0s]
explanation:
  provenance:
    version: "0.1.0"
""".replace("DIGEST", "4b" * 32)


def same(a: object, b: object) -> bool:
    """Equal, NaN being equal to itself."""
    return repr(a) == repr(b)


def test_the_document_reads_as_documented(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    path = tmp_path / "schedule.yaml"
    assert write_schedule(path, schedule, explanation) == (path,)
    text = path.read_text()
    assert text.startswith(HEAD)
    assert "wait: [0.9s, 0.9s, 0.9s, 0.9s, 0.9s, 0.9s]" in text
    assert "floorWait: [71s, 71s, 71s, 71s, 71s, unstable]" in text
    assert "refusedReplicas: [38, 17, 26, 37, 43, null]" in text
    assert "targets:\n    - {wait: 2s, percentile: 0.95}\n" in text
    assert max(len(line) for line in text.splitlines()) <= 150


@pytest.mark.parametrize("gpus", [None, 0, 96_000_000_000])
def test_any_size_of_a_shortage_is_read_back(
    tmp_path: Path, schedule: Schedule, explanation: Explanation, gpus: int | None
) -> None:
    path = tmp_path / "schedule.yaml"
    shortages = tuple(replace(one, missing_gpus=gpus) for one in explanation.shortages)
    write_schedule(path, schedule, replace(explanation, shortages=shortages))
    assert f"missingGpus: {'null' if gpus is None else gpus}," in path.read_text()
    _, read = read_schedule(path)
    assert read is not None
    assert [one.missing_gpus for one in read.shortages] == [gpus]


def test_what_is_written_is_read_back(tmp_path: Path, dated_schedule: Schedule, explanation: Explanation) -> None:
    path = tmp_path / "schedule.yaml"
    reasons = {name: (*rows, rows[0]) for name, rows in explanation.reasons.items()}
    explanation = replace(explanation, reasons=reasons)
    write_schedule(path, dated_schedule, explanation)
    plan, why = read_schedule(path)
    assert plan == dated_schedule
    assert same(why, explanation)
    assert read_schedule(path, explained=False) == (dated_schedule, None)


def test_what_older_documents_do_not_say_is_not_known(
    tmp_path: Path, schedule: Schedule, explanation: Explanation
) -> None:
    path = tmp_path / "schedule.yaml"
    hours = replace(explanation.gpu_hours_per_day, static_missing_nodes=6)
    write_schedule(path, schedule, replace(explanation, gpu_hours_per_day=hours))
    _, why = read_schedule(path)
    assert why is not None
    assert why.gpu_hours_per_day == hours
    text = path.read_text()
    assert "leastReplicas: [37, 16, 25, 36, 42, 81]\n" in text
    path.write_text(re.sub(r"staticMissingNodes: 6|leastReplicas: .*", "", text))
    _, why = read_schedule(path)
    assert why is not None
    assert why.gpu_hours_per_day == explanation.gpu_hours_per_day
    assert {row.least_replicas for rows in why.reasons.values() for row in rows} == {None}
    path.write_text(re.sub(r"leastReplicas: .*", "leastReplicas: []", text))
    with pytest.raises(InputError, match=r"has 0 entries, but there are 6 windows"):
        read_schedule(path)


def test_no_explanation(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, schedule, None)
    assert read_schedule(path) == (schedule, None)
    write_schedule(path, schedule, explanation)
    path.write_text(path.read_text().split("explanation:")[0])
    assert read_schedule(path) == (schedule, None)


def test_rates_are_rounded_down_and_leads_up(tmp_path: Path, schedule: Schedule) -> None:
    first, second = schedule.workloads
    exact = replace(first, holds_rps=(393.99, 0.0, 12345.6, 0.012349, 1e-9, 863.0))
    pool = replace(schedule.pools[0], lead_s=(0.2, 0.0, 3000.5, 5700.0, 0.0, 0.0))
    write_schedule(tmp_path / "s.yaml", replace(schedule, workloads=(exact, second), pools=(pool,)), None)
    plan, _ = read_schedule(tmp_path / "s.yaml")
    assert plan.workloads[0].holds_rps == (393.0, 0.0, 12300.0, 0.0123, 1e-9, 863.0)
    assert plan.pools[0].lead_s == (1.0, 0.0, 3001.0, 5700.0, 0.0, 0.0)


def test_rounding_down_never_goes_up() -> None:
    draw = random.Random(7)
    for _ in range(2000):
        value = 10 ** draw.uniform(-8, 8)
        down = rounded_down(value, 3)
        assert down <= value
        assert value - down < value * 0.0101
        assert significant(down, 3) == down


def many(schedule: Schedule, explanation: Explanation, *, workloads: int, windows: int) -> tuple[Schedule, Explanation]:
    """A plan as large as asked, of plausible numbers."""
    draw = random.Random(1)
    step = 1440 * 7 // windows
    starts = [minute * step for minute in range(windows)]
    slots = tuple(
        Window(
            name=f"w-{start}",
            days=(WEEK[start // 1440],),
            start=Time(start % 1440 // 60, start % 60),
            end=Time((start + step) % 1440 // 60, (start + step) % 60),
        )
        for start in starts
    )

    def standing(replicas: int) -> Standing:
        return Standing(
            replicas=replicas,
            wait_s=draw.uniform(0, 9),
            waiting=draw.uniform(0, 99),
            attainment=draw.random(),
            gain_usd_per_h=draw.uniform(0, 9),
        )

    def reason() -> WorkloadReason:
        return WorkloadReason(
            rate_rps=draw.uniform(0, 99),
            peak_rps=draw.uniform(0, 99),
            target_share=draw.random(),
            floor=standing(3),
            given=standing(4),
            refused=standing(5),
            bound="target",
            cost_usd_per_h=4.0,
        )

    names = [f"workload-{number}" for number in range(workloads)]
    columns = tuple(
        WorkloadColumn(
            name=name,
            replicas=tuple(draw.randint(1, 99) for _ in slots),
            holds_rps=tuple(significant(draw.uniform(1, 999), 3) for _ in slots),
        )
        for name in names
    )
    nodes = (5,) * windows
    pool = PoolColumn(
        name="h100", production_nodes=nodes, ephemeral_nodes=nodes, ephemeral_quota_gpus=nodes, lead_s=(0.0,) * windows
    )
    plan = replace(schedule, windows=slots, workloads=columns, pools=(pool,))
    return plan, replace(explanation, reasons={name: tuple(reason() for _ in slots) for name in names}, facts={})


def test_long_columns_go_beside_the_schedule(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    plan, why = many(schedule, explanation, workloads=40, windows=84)
    path = tmp_path / "plan.yaml"
    beside = tmp_path / "plan.explanation.json.gz"
    assert write_schedule(path, plan, why) == (path, beside)
    assert path.stat().st_size < 200_000
    read, read_why = read_schedule(path)
    assert read == plan
    assert read_why is not None
    assert read_why.reasons.keys() == why.reasons.keys()
    for ours, theirs in zip(why.reasons["workload-7"], read_why.reasons["workload-7"], strict=True):
        assert math.isclose(ours.given.wait_s, theirs.given.wait_s, rel_tol=0.005, abs_tol=1e-4)
        assert math.isclose(ours.given.gain_usd_per_h, theirs.given.gain_usd_per_h, rel_tol=0.005)
    again = tmp_path / "again"
    again.mkdir()
    write_schedule(again / "plan.yaml", plan, why)
    assert (again / "plan.yaml").read_bytes() == path.read_bytes()
    write_schedule(path, schedule, explanation)
    assert not beside.exists()


def test_columns_beside_that_are_not_the_right_ones(
    tmp_path: Path, schedule: Schedule, explanation: Explanation
) -> None:
    plan, why = many(schedule, explanation, workloads=40, windows=84)
    path, beside = write_schedule(tmp_path / "plan.yaml", plan, why)
    beside.write_bytes(gzip.compress(b'{"writtenBy": "written by ebbtide 0", "workloads": []}'))
    assert refusal(path) == "columns_digest"
    beside.unlink()
    assert refusal(path) == "no_file"
    assert read_schedule(path, explained=False) == (plan, None)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"junk", "damaged_file"),
        (gzip.compress(b"{", mtime=0)[:-3], "damaged_file"),
        (gzip.compress(b"{", mtime=0), "damaged_file"),
        (gzip.compress(b"[" * 100_000, mtime=0), "damaged_file"),
        (gzip.compress(b'{"writtenBy": "x", "workloads": [{"name": "a"}]}', mtime=0), "missing_field"),
        (gzip.compress(b'{"writtenBy": "x", "workloads": 3}', mtime=0), "wrong_type"),
        (gzip.compress(b"[]", mtime=0), "wrong_type"),
    ],
)
def test_damaged_columns(
    tmp_path: Path, schedule: Schedule, explanation: Explanation, content: bytes, kind: str
) -> None:
    import hashlib

    plan, why = many(schedule, explanation, workloads=40, windows=84)
    path, beside = write_schedule(tmp_path / "plan.yaml", plan, why)
    beside.write_bytes(content)
    text = path.read_text()
    old = text.split("json.gz, sha256: ")[1].strip(' "}\n')
    path.write_text(text.replace(old, hashlib.sha256(content).hexdigest()))
    assert refusal(path) == kind


def test_a_schedule_that_no_api_server_takes_is_refused(
    tmp_path: Path, schedule: Schedule, explanation: Explanation
) -> None:
    plan, _ = many(schedule, explanation, workloads=1, windows=336)
    plan = replace(plan, workloads=tuple(replace(plan.workloads[0], name=f"w-{n}") for n in range(700)))
    with pytest.raises(InputError) as caught:
        write_schedule(tmp_path / "plan.yaml", plan, None)
    assert caught.value.kind == "schedule_too_large"
    assert list(tmp_path.iterdir()) == []
    smaller, _ = many(schedule, explanation, workloads=1, windows=168)
    smaller = replace(smaller, workloads=tuple(replace(smaller.workloads[0], name=f"w-{n}") for n in range(900)))
    (output,) = schedule_outputs(tmp_path / "plan.yaml", smaller, None)
    assert len(output.content) < MOST_BYTES


@pytest.mark.parametrize("content", [b"", b"mine\n", b"\x1f\x8bdamaged", b"# written by hand\n"])
def test_a_file_that_ebbtide_did_not_write_stays(tmp_path: Path, schedule: Schedule, content: bytes) -> None:
    path = tmp_path / "schedule.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        write_schedule(path, schedule, None)
    assert caught.value.kind == "foreign_output"
    assert path.read_bytes() == content


def test_a_foreign_columns_file_stays(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    plan, why = many(schedule, explanation, workloads=40, windows=84)
    beside = tmp_path / "plan.explanation.json.gz"
    beside.write_bytes(gzip.compress(b"mine"))
    with pytest.raises(InputError) as caught:
        write_schedule(tmp_path / "plan.yaml", plan, why)
    assert caught.value.kind == "foreign_output"
    assert not (tmp_path / "plan.yaml").exists()
    write_schedule(tmp_path / "plan.yaml", schedule, None)
    assert gzip.decompress(beside.read_bytes()) == b"mine"


def test_columns_carry_the_mark(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    plan, why = many(schedule, explanation, workloads=40, windows=84)
    _, beside = write_schedule(tmp_path / "plan.yaml", plan, why)
    assert json.loads(gzip.decompress(beside.read_bytes()))["writtenBy"].startswith(MARK.decode())


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_schedule(path)
    return caught.value.kind


EDITS: list[tuple[Callable[[str], str], str, str]] = [
    (lambda text: text.replace("replicas: [37, 16", "replicas: [37"), "column_length", "workloads[chat].replicas"),
    (lambda text: text.replace("lead: [0s, 0s", "lead: [0s"), "column_length", "pools[h100].lead"),
    (lambda text: text.replace("[37, 16", "[37, -1"), "out_of_range", "workloads[chat].replicas[1]"),
    (lambda text: text.replace("[37, 16", "[37, x"), "wrong_type", "workloads[chat].replicas[1]"),
    (lambda text: text.replace('start: "02:00"', 'start: "03:00"'), "window_gap", "windows"),
    (lambda text: text.replace('end: "02:00"', 'end: "03:00"'), "window_overlap", "windows[all-0200]"),
    (lambda text: text.replace("all-0200", "all-0000"), "duplicate_name", "windows[all-0000].name"),
    (lambda text: text.replace("name: agents", "name: chat"), "duplicate_name", "workloads[chat].name"),
    (lambda text: text.replace("sha256:4b", "sha256:4"), "bad_form", "fleet.digest"),
    (lambda text: text.replace("+08:00\"\n  windows", "\"\n  windows"), "bad_instant", "validUntil"),
    (lambda text: text.replace("holdsRps", "holdsRsp", 1), "unknown_field", "workloads[chat].holdsRsp"),
    (lambda text: text.replace("kind: Schedule", "kind: Fleet"), "wrong_kind", "kind"),
    (lambda text: text.replace("spec:", "spec:\n  pause: true"), "wrong_type", "pause"),
    (lambda text: text.replace("replicas:", "variant: a, replicas:", 1), "not_yet", "workloads[chat].variant"),
    (lambda text: text.replace("bound: [target", "bound: [targt"), "unknown_value",
     "explanation.workloads[chat].bound[0]"),
    (lambda text: text.replace("rateRps: [52, ", "rateRps: [", 1), "column_length",
     "explanation.workloads[chat].rateRps"),
    (lambda text: text.replace("{wait: 2s,", "{wait: 2s, latency: 9s,"), "conflicting_fields",
     "explanation.workloads[chat].targets[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "kind", "field"), EDITS, ids=[f"{kind}-{field}" for _, kind, field in EDITS])
def test_edited_wrongly(
    tmp_path: Path,
    schedule: Schedule,
    explanation: Explanation,
    edit: Callable[[str], str],
    kind: str,
    field: str,
) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, schedule, explanation)
    edited = edit(path.read_text())
    assert edited != path.read_text()
    path.write_text(edited)
    with pytest.raises(InputError) as caught:
        read_schedule(path)
    assert (caught.value.kind, caught.value.place.field) == (kind, field)
    assert caught.value.place.line is not None


def test_dated_windows_need_both_ends(tmp_path: Path, dated_schedule: Schedule) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, dated_schedule, None)
    text = path.read_text()
    path.write_text(text.replace(', until: "2026-10-08"', ""))
    assert refusal(path) == "missing_field"
    path.write_text(text.replace('until: "2026-10-08"', 'until: "2026-10-01"'))
    assert refusal(path) == "out_of_range"
