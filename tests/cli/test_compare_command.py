"""`ebbtide measure compare` end to end: in virtual time where the ratio must come out right, and once over sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from scipy.optimize import brentq

from ebbtide.adapters.simserver.slots import Shape
from ebbtide.cli.render_compare import compared_json
from ebbtide.simulate.services import SheddingServers, exponential
from ebbtide.workflows import measure_compare as workflow
from ebbtide.workflows.measure_steps import Progress
from loopback import simulated
from loopback.virtual import ROOM, SERVERS, VirtualCrew

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {{name: {name}}}
spec:
  endpoint: {{url: "{url}", timeout: 30s}}
  requests: {{prompts: {prompts}}}
  targets: [{{latency: {latency}}}]
  errorBudget: 0.01
  search: {{start: {start}, requests: {requests}, tolerance: 0.12, shortestStep: 1s}}
  settings: {{flags: "--slots {name}"}}
"""
FEWER = 12
Command = Callable[..., object]


class TwoCrews(VirtualCrew):
    """The second setting has twelve servers in place of sixteen."""

    def begin(self, rate_rps: float, requests: int, seed: tuple[int, ...]) -> None:
        super().begin(rate_rps, requests, seed)
        if self.setup.endpoint.url.endswith("?fewer"):
            self.service = SheddingServers(FEWER, exponential(1.0), np.random.default_rng(seed), waiting_room=ROOM)
            self.service.begin(rate_rps)


def target(folder: Path, name: str, url: str, **changes: object) -> Path:
    """A Target and its prompts in the folder."""
    fields = {"prompts": "prompts.jsonl", "latency": "10m", "start": 3.0, "requests": 40_000, **changes}
    for file, count in (("prompts.jsonl", 50), ("others.jsonl", 40)):
        lines = [json.dumps({"prompt": f"say {number}"}) for number in range(count)]
        (folder / file).write_text("\n".join(lines), encoding="utf-8")
    path = folder / f"{name}.yaml"
    path.write_text(TARGET.format(name=name, url=url, **fields), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A quick model."""
    with simulated(Shape(slots=16, queue=4, time_s=0.01, tokens=2)) as found:
        yield found


@pytest.fixture
def two(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two Targets whose steps are virtual."""
    monkeypatch.setattr(workflow, "Crew", TwoCrews)
    url = f"{address}/v1/chat/completions"
    return target(tmp_path, "sixteen", url), target(tmp_path, "twelve", f"{url}?fewer", start=2.0)


def true_rps(servers: int) -> float:
    """Where a hundredth is shed."""

    def shed(rate_rps: float) -> float:
        steps = rate_rps / np.minimum(np.arange(1, servers + ROOM + 1), servers)
        weights = np.cumprod(np.concatenate(([1.0], steps)))
        return float(weights[-1] / weights.sum())

    return float(brentq(lambda rate_rps: shed(rate_rps) - 0.01, 3.0, 20.0))


def test_the_ratio_of_two_settings(ebbtide: Command, two: tuple[Path, Path], tmp_path: Path) -> None:
    told = ebbtide("measure", "compare", *two, "-o", tmp_path / "out" / "comparison.json", "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert answer["low"] <= true_rps(SERVERS) / true_rps(FEWER) <= answer["high"]
    assert (answer["differs"], answer["resolved"], answer["warnings"]) == (True, True, [])
    for side, servers in (("first", SERVERS), ("second", FEWER)):
        assert answer[side]["low_rps"] <= true_rps(servers) <= answer[side]["high_rps"]
        assert answer[side]["limited_by"] == "errors"
        rows = pyarrow.parquet.read_table(tmp_path / "out" / f"comparison.{side}.parquet").num_rows
        assert rows == answer[side]["requests"]
    assert answer["changed"] == ["settings.flags --slots sixteen → --slots twelve"]
    written = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert written.pop("mark") == "written by ebbtide"
    assert written == answer
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "comparison.first.parquet",
        "comparison.json",
        "comparison.second.parquet",
    ]


def test_what_it_says_to_people(ebbtide: Command, two: tuple[Path, Path], tmp_path: Path) -> None:
    told = ebbtide("measure", "compare", two[0], two[0], "-o", tmp_path / "comparison.json")
    assert told.code == 0, told.err
    assert told.out.startswith("no difference shown between first and second: 1 times (")
    assert "limited by errors" in told.out
    assert "requests in " in told.out
    assert any(line.startswith("first step 1: 3/s, ") for line in told.err.splitlines())
    assert "second step 1: 3/s, " in told.err
    assert "first, asking the endpoint; its first answer may take a minute" in told.err.splitlines()
    assert told.err.splitlines()[-1].startswith("wrote ")


def test_unlike_things_are_told(ebbtide: Command, two: tuple[Path, Path], address: str, tmp_path: Path) -> None:
    url = f"{address}/v1/chat/completions"
    other = target(tmp_path, "other", url, prompts="others.jsonl", latency="9m", requests=50_000)
    told = ebbtide("measure", "compare", two[0], other, "-o", tmp_path / "comparison.json", "--json")
    assert json.loads(told.out)["warnings"] == [
        "the two must hold different targets: the ratio is not of the settings alone",
        "the two are sent different requests: the ratio is of the mixes too",
        "other.yaml asks for another search; that of sixteen.yaml is made for both",
    ]


def test_a_budget_that_is_too_small_is_no_answer(ebbtide: Command, two: tuple[Path, Path], tmp_path: Path) -> None:
    for path in two:
        path.write_text(path.read_text(encoding="utf-8").replace("40000", "3000"), encoding="utf-8")
    told = ebbtide("measure", "compare", *two, "-o", tmp_path / "comparison.json")
    assert told.code == 3
    assert "unresolved: ±12.0% was wished for" in told.out
    assert (tmp_path / "comparison.json").exists()


def test_stopped_at_any_step_it_goes_on_to_the_same_ratio(two: tuple[Path, Path], tmp_path: Path) -> None:
    whole = workflow.compare(*two, tmp_path / "whole.json", answer=compared_json)
    turns = 0

    def stop(progress: Progress) -> None:
        nonlocal turns
        turns += progress.over
        if progress.over and turns in (3, 14):
            raise KeyboardInterrupt

    for resume in (False, True):
        with pytest.raises(KeyboardInterrupt):
            workflow.compare(*two, tmp_path / "parts.json", answer=compared_json, resume=resume, watch=stop)
    parts = workflow.compare(*two, tmp_path / "parts.json", answer=compared_json, resume=True)
    assert parts.ratio == whole.ratio
    assert [side.found for side in parts.sides] == [side.found for side in whole.sides]


def test_nothing_to_go_on_with(ebbtide: Command, two: tuple[Path, Path], tmp_path: Path) -> None:
    told = ebbtide("measure", "compare", *two, "-o", tmp_path / "none.json", "--resume")
    assert (told.code, "there is no comparison to go on with" in told.err) == (2, True)


def test_a_file_of_somebody_else_s_stays(ebbtide: Command, two: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("{}")
    told = ebbtide("measure", "compare", *two, "-o", tmp_path / "comparison.json")
    assert (told.code, (tmp_path / "comparison.json").read_text()) == (2, "{}")


def test_over_real_loopback(ebbtide: Command, tmp_path: Path) -> None:
    """Two servers, one of half the slots: whatever the machine's day is like, an answer with every request in it."""
    shapes = [Shape(slots=slots, queue=2, time_s=0.01, tokens=2) for slots in (8, 4)]
    with simulated(shapes[0]) as more, simulated(shapes[1]) as less:
        two = [
            target(tmp_path, name, f"{url}/v1/chat/completions", start=start, requests=2_000, latency="20s")
            for name, url, start in (("eight", more, 300.0), ("four", less, 150.0))
        ]
        told = ebbtide("measure", "compare", *two, "-o", tmp_path / "comparison.json", "--json")
    assert told.code in (0, 3), told.err
    answer = json.loads(told.out)
    for side in ("first", "second"):
        rows = pyarrow.parquet.read_table(tmp_path / f"comparison.{side}.parquet")
        assert rows.num_rows == answer[side]["requests"] <= 2_000
        assert 200 in set(rows["status"].to_pylist())
