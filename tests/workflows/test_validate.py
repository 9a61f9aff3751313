"""``validate`` says what a document is, or all that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.adapters.documents.schedule import write_schedule
from ebbtide.errors import DocumentError, InputError
from ebbtide.fleet.schedule import Explanation, Schedule
from ebbtide.workflows.validate import validate

FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  demand: [{name: log, file: requests.csv.gz}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 6}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 6s, concurrency: 64}, targets: [{wait: 2s}]}
"""


def test_a_fleet(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    checked = validate(path)
    assert checked.text().startswith(f"{path}: a valid Fleet, two-models: 1 workload, 1 pool\nsha256:")
    assert checked.as_json()["kind"] == "Fleet"
    assert checked.as_json()["digest"] == checked.digest


def test_a_schedule(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, schedule, explanation)
    checked = validate(path)
    assert checked.text().startswith(f"{path}: a valid Schedule, day-and-night: 6 windows, 2 workloads, 1 pool\n")
    assert checked.digest == schedule.fleet_digest


def test_everything_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("nodes: 6", "node: 6").replace("wait: 2s", "wait: 2"))
    with pytest.raises(DocumentError) as caught:
        validate(path)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "kind"), [("kind: Flet\n", "wrong_kind"), ("{}", "missing_field"), ("kind: Schedule\n", "missing_field")]
)
def test_no_such_kind(tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        validate(path)
    assert caught.value.kind == kind
