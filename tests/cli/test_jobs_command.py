"""`ebbtide jobs`: the four-job example, exit codes, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "four-jobs"
AT = "2026-09-11T20:00"


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ebbtide.workflows.allocate import allocate

    folder = tmp_path_factory.mktemp("four")
    allocate(EXAMPLE / "fleet.yaml", folder)
    return folder / "schedule.yaml"


@pytest.fixture
def plan(ebbtide, schedule: Path):
    def call(jobs: Path, *more: object):
        return ebbtide(
            "jobs", "plan", jobs, "--schedule", schedule, "--fleet", EXAMPLE / "fleet.yaml", "--at", AT, *more
        )

    return call


def test_four_jobs_on_four_gpus(plan, tmp_path: Path) -> None:
    told = plan(EXAMPLE / "jobs.yaml", "-o", tmp_path)
    assert told.code == 0
    assert "4 of 4 deadlines hold" in told.out
    assert "train-c: waits for the GPUs of train-a, train-b" in told.out
    assert max(map(len, told.out.splitlines())) <= 80
    assert (tmp_path / "plan.yaml").read_text().startswith("# written by ebbtide")


def test_for_scripts(plan) -> None:
    told = plan(EXAMPLE / "jobs.yaml", "--json")
    answer = json.loads(told.out)
    assert answer["totals"] == {"jobs": 4, "placed": 4, "deadlines": 4, "deadlines_held": 4, "value_usd": 0.0}
    starts = [one["start"] for one in answer["plan"]["spec"]["jobs"]]
    assert starts == ["2026-09-11T20:00:00+02:00"] * 2 + ["2026-09-11T23:30:00+02:00"] * 2


def test_a_deadline_that_cannot_hold_is_an_answer(plan, tmp_path: Path) -> None:
    tight = tmp_path / "jobs.yaml"
    tight.write_text((EXAMPLE / "jobs.yaml").read_text().replace("deadline: 8h", "deadline: 6h"))
    told = plan(tight)
    assert told.code == 3
    assert "2 of 4 deadlines hold" in told.out


def test_a_job_wider_than_research_is_an_answer(plan, tmp_path: Path) -> None:
    wide = tmp_path / "jobs.yaml"
    wide.write_text((EXAMPLE / "jobs.yaml").read_text().replace("gpusPerPod: 2", "gpusPerPod: 8", 1))
    told = plan(wide)
    assert told.code == 3
    assert "train-a: never fits: 1 pods of 8 GPUs" in told.out


def test_wrong_input_is_refused(plan, tmp_path: Path, ebbtide, schedule: Path) -> None:
    wrong = tmp_path / "jobs.yaml"
    wrong.write_text((EXAMPLE / "jobs.yaml").read_text().replace("deadline: 8h", "deadline: 0s", 1))
    assert plan(wrong).code == 2
    told = ebbtide("jobs", "plan", EXAMPLE / "jobs.yaml", "--schedule", schedule, "--at", "whenever")
    assert told.code == 2
    assert "--at" in told.err


def test_without_a_fleet_reserved_nodes_are_not_known(ebbtide, schedule: Path) -> None:
    told = ebbtide("jobs", "plan", EXAMPLE / "jobs.yaml", "--schedule", schedule, "--at", AT)
    assert told.code == 3
    assert "no Fleet at hand" in told.err


def test_an_export_of_slurm(plan, tmp_path: Path) -> None:
    export = tmp_path / "sacct.txt"
    export.write_text(
        "JobID|JobName|State|Timelimit|ReqTRES|NNodes|Deadline\n"
        "7|a|PENDING|04:00:00|gres/gpu=4|1|2026-09-12T08:00:00\n"
        "8|b|PENDING|04:00:00|gres/gpu=2|1|Unknown\n"
    )
    told = plan(export)
    assert told.code == 0
    assert "1 of 1 deadlines hold" in told.out


@pytest.fixture
def when(ebbtide, schedule: Path):
    def call(*more: object):
        return ebbtide("jobs", "when", "--schedule", schedule, "--fleet", EXAMPLE / "fleet.yaml", "--at", AT, *more)

    return call


def test_when_beside_the_plan_that_stands(plan, when, tmp_path: Path) -> None:
    assert plan(EXAMPLE / "jobs.yaml", "-o", tmp_path).code == 0
    told = when("--gpus", 2, "--hours", 2, "--deadline", "tomorrow-06:00", "--plan", tmp_path / "plan.yaml")
    assert told.code == 0
    assert "starts 09-12 03:00 (in 7h) on a100, reserved nodes" in told.out
    late = when("--gpus", 4, "--hours", 3, "--deadline", "tomorrow-06:00", "--plan", tmp_path / "plan.yaml", "--json")
    answer = json.loads(late.out)
    assert (late.code, answer["in_time"], answer["slack_s"]) == (3, False, -3240)
    assert {one["kind"] for one in answer["reliefs"]} == {"later_deadline", "more_nodes", "move"}


@pytest.mark.parametrize(
    "wrong",
    [
        ("--gpus", 3, "--gpus-per-pod", 2, "--hours", 1),
        ("--gpus", 1, "--hours", 1, "--pool", "b200"),
        ("--gpus", 1, "--hours", 1, "--deadline", "2026-09-01T00:00"),
        ("--gpus", 1, "--hours", 1, "--checkpoint", "soon"),
        ("--gpus", 1, "--hours", 2, "--p90-hours", 1),
    ],
)
def test_a_wish_that_is_none(when, wrong: tuple[object, ...]) -> None:
    told = when(*wrong)
    assert (told.code, told.out) == (2, "")
    assert wrong[-2] in told.err or "--gpus" in told.err


def test_a_plan_that_stands_is_kept(plan, tmp_path: Path) -> None:
    assert plan(EXAMPLE / "jobs.yaml", "-o", tmp_path).code == 0
    five = tmp_path / "five.yaml"
    # Planned anew it would come first: its deadline is the nearest.
    hurry = "  - {name: hurry, gpusPerPod: 4, duration: {expected: 1h}, deadline: 9h}\n"
    five.write_text((EXAMPLE / "jobs.yaml").read_text() + hurry)
    told = plan(five, "--keep", tmp_path / "plan.yaml", "--json")
    starts = {one["name"]: one["start"][11:16] for one in json.loads(told.out)["plan"]["spec"]["jobs"]}
    assert list(starts.values()) == ["20:00", "20:00", "23:30", "23:30", "03:00"]


def test_the_page(plan, tmp_path: Path) -> None:
    tight = tmp_path / "jobs.yaml"
    tight.write_text((EXAMPLE / "jobs.yaml").read_text().replace("deadline: 8h", "deadline: 6h"))
    assert plan(tight, "--report", "-o", tmp_path).code == 3
    page = (tmp_path / "jobs.html").read_text()
    assert "2 of 4 deadlines cannot hold" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count('class="run') >= 4
