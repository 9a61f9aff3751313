"""The command line, run in this process: exit code, stdout and stderr as a shell would see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ebbtide.cli.answers import finish
from ebbtide.cli.main import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "day-and-night"

# A small fleet whose plan takes a blink: two workloads, given windows, three days of demand by the hour.
FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  demand: [{name: log, file: rates.csv}]
  windows: [{starts: ["00:00", "08:00", "20:00"]}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 12, reservedNodes: 2}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 6s, concurrency: 4}, targets: [{wait: 2s}]}
  - {name: agents, gpusPerReplica: 2, service: {time: 8s, concurrency: 4}, targets: [{latency: 40s}]}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Told]


@pytest.fixture
def ebbtide(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one command line, in 80 columns wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Told:
        words = [str(word) for word in arguments]
        code = finish(lambda: app(words, standalone_mode=False) or 0, as_json="--json" in words)
        told = capsys.readouterr()
        return Told(code=code, out=told.out, err=told.err)

    return call


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    """The small fleet and its demand in a folder of its own."""
    rows = ["time,service,rate_rps"]
    for day in range(1, 8):
        for hour in range(24):
            wave = 1.0 + (8 <= hour < 20) * 3.0 + 0.1 * day
            rows += [
                f"2026-09-{day:02}T{hour:02}:00,chat,{wave:.2f}",
                f"2026-09-{day:02}T{hour:02}:00,agents,{wave / 2:.2f}",
            ]
    (tmp_path / "rates.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path
