"""BatchJobs and BatchPlan: what is completed, what is refused and where, and that a plan is read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from whenever import Instant

from ebbtide.adapters.documents.batch_plan import PlanDocument, plan_output, read_plan
from ebbtide.adapters.documents.jobs import read_jobs
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.search import plan_batch
from ebbtide.errors import DocumentError, InputError

AT_S = float(Instant.from_utc(2026, 9, 7, 16).timestamp())  # a Monday, 18:00 in Berlin
H = 3600.0
HEAD = "apiVersion: ebbtide.dev/v1alpha1\nkind: BatchJobs\nmetadata: {name: week}\nspec:\n  jobs:\n"


def read(folder: Path, jobs: str):
    path = folder / "jobs.yaml"
    path.write_text(HEAD + jobs)
    return read_jobs(path, at_s=AT_S, until_s=AT_S + 7 * 86_400, time_zone="Europe/Berlin")


ALL = """\
  - name: prepare
    gpusPerPod: 1
    duration: {expected: 1h, p90: 2h}
    earliestStart: "2026-09-07T20:00:00+02:00"
    deadline: 12h
  - name: train
    pods: 2
    gpusPerPod: 8
    duration: {expected: 5h}
    deadline: "2026-09-09T08:00:00+02:00"
    valueUsd: 400
    preemptible: {checkpointInterval: 30m}
    after: [prepare]
    widths: [{pods: 4, speedup: 1.8}]
    pools: [h100]
"""


def test_every_field_has_its_value(tmp_path: Path) -> None:
    prepare, train = read(tmp_path, ALL).jobs
    assert prepare.earliest_start_s == AT_S + 2 * H
    assert prepare.deadline_s == AT_S + 14 * H
    assert train.duration == Duration(expected_s=5 * H, p90_s=6.5 * H)
    assert (train.pods, train.gpus, train.value_usd, train.checkpoint_interval_s) == (2, 16, 400, 1800)
    assert (train.after, train.pools, train.earliest_start_s) == (("prepare",), ("h100",), AT_S)
    assert [(shape.pods, shape.duration.expected_s) for shape in train.shapes] == [(2, 5 * H), (4, 10_000)]


def test_a_recurring_job_is_a_job_for_every_date(tmp_path: Path) -> None:
    jobs = read(
        tmp_path,
        """\
  - {name: load, gpusPerPod: 1, duration: {expected: 1h}}
  - {name: eval, gpusPerPod: 1, duration: {expected: 1h}, repeat: {days: [Mon, Tue], at: "20:00"}, deadline: 6h,
     after: [load]}
  - {name: digest, gpusPerPod: 1, duration: {expected: 1h}, repeat: {days: [Tue], at: "21:00"}, after: [eval]}
""",
    ).jobs
    assert [job.name for job in jobs] == ["load", "eval-20260907", "eval-20260908", "digest-20260908"]
    assert [job.deadline_s for job in jobs[1:3]] == [AT_S + 8 * H, AT_S + 32 * H]
    assert [job.after for job in jobs[1:]] == [("load",), ("load",), ("eval-20260908",)]


def test_durations_from_past_runs(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("job,duration_s\ntrain,7200\ntrain,3600\ntrain,5400\nother,1\n")
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|Elapsed\n7|nightly|COMPLETED|01:00:00\n7.batch|batch|COMPLETED|01:00:00\n"
        "8|nightly|FAILED|00:00:10\n"
    )
    train, nightly = read(
        tmp_path,
        """\
  - {name: train, gpusPerPod: 1, duration: {history: {file: past.csv}}}
  - {name: night, gpusPerPod: 1, duration: {history: {file: sacct.txt, job: nightly}}}
""",
    ).jobs
    assert (train.duration.expected_s, train.duration.p90_s) == (5400, 7200)
    assert (nightly.duration.expected_s, nightly.duration.p90_s) == (3600, 4680)


REFUSED = {
    "zero": ("{name: a, gpusPerPod: 1, duration: {expected: 0s}}", "duration.expected", "must be above 0s"),
    "over": (
        '{name: a, gpusPerPod: 1, duration: {expected: 1h}, deadline: "2026-09-07T17:59:00+02:00"}',
        "jobs[a].deadline",
        "which is over",
    ),
    "twice": (
        "{name: a, gpusPerPod: 1, duration: {expected: 1h}}\n  - {name: a, gpusPerPod: 1, duration: {expected: 1h}}",
        "jobs[a].name",
        'the name "a" is given twice',
    ),
    "circle": (
        "{name: a, gpusPerPod: 1, duration: {expected: 1h}, after: [b]}\n"
        "  - {name: b, gpusPerPod: 1, duration: {expected: 1h}, after: [a]}",
        "jobs[a].after",
        "waits for itself: a after b after a",
    ),
    "unknown": (
        "{name: train, gpusPerPod: 1, duration: {expected: 1h}, after: [trian]}",
        "jobs[train].after[0]",
        'there is no job "trian"; nearest: train',
    ),
    "p90": (
        "{name: a, gpusPerPod: 1, duration: {expected: 2h, p90: 1h}}",
        "jobs[a].duration.p90",
        "below the expected",
    ),
    "no duration": ("{name: a, gpusPerPod: 1, duration: {}}", "jobs[a].duration", "neither expected nor history"),
    "deadline": ("{name: a, gpusPerPod: 1, duration: {expected: 1h}, deadline: soon}", "jobs[a].deadline", "write 12h"),
    "misspelt": ("{name: a, gpuPerPod: 1, duration: {expected: 1h}}", "jobs[a].gpuPerPod", "nearest: gpusPerPod"),
    "before the start": (
        '{name: a, gpusPerPod: 1, duration: {expected: 1h}, earliestStart: "2026-09-09T00:00:00+02:00",'
        ' deadline: "2026-09-08T00:00:00+02:00"}',
        "jobs[a].deadline",
        "not after the earliest start",
    ),
    "no history": (
        "{name: a, gpusPerPod: 1, duration: {history: {file: past.csv}}}",
        "jobs[a].duration.history",
        'holds no finished run of "a"',
    ),
    "widths": (
        "{name: a, gpusPerPod: 1, duration: {expected: 1h}, widths: [{pods: 1, speedup: 2}]}",
        "jobs[a].widths[0].pods",
        "given already",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_refused_where_it_stands(tmp_path: Path, what: str) -> None:
    (tmp_path / "past.csv").write_text("job,duration_s\nb,1\n")
    jobs, field, said = REFUSED[what]
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, f"  - {jobs}\n")
    assert field in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.place.line in (6, 7)


def test_a_history_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("what,ever\n1,2\n")
    with pytest.raises(InputError, match="job and duration_s are needed"):
        read(tmp_path, "  - {name: a, gpusPerPod: 1, duration: {history: {file: past.csv}}}\n")


def test_a_plan_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    jobs = read(tmp_path, ALL).jobs
    tide = Hollow(
        pool="h100",
        tenure=Tenure.EPHEMERAL,
        gpus_per_node=8,
        edges_s=(AT_S, AT_S + 6 * H, AT_S + 20 * H, AT_S + 60 * H),
        nodes=(2, 0, 3),
    )
    plan = plan_batch(jobs, [tide], at_s=AT_S)
    assert len(plan.jobs[1].place.runs) == 2  # interrupted once
    document = PlanDocument(
        name="week", schedule_name="s", fleet_digest="sha256:" + "0" * 64, time_zone="Europe/Berlin", plan=plan
    )
    output = plan_output(tmp_path / "plan.yaml", document)
    output.path.write_bytes(output.content)
    again = read_plan(output.path)
    assert plan_output(output.path, again).content == output.content
    assert [one.place for one in again.plan.jobs] == [one.place for one in plan.jobs]
    assert [one.job for one in again.plan.jobs] == list(jobs)
