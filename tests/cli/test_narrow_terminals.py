"""Tables fit a terminal down to 60 columns, and say the same there: no figure is cut."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from ebbtide.cli.columns import terminal_width

NUMBER = re.compile(r"\d[\d,.:%]*")
WORKLOADS = ("chat", "agents")


def numbers(text: str) -> Counter[str]:
    return Counter(NUMBER.findall(text))


def narrow_and_wide(ebbtide, monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[str, str]:
    wide = ebbtide(*words).out
    monkeypatch.setenv("COLUMNS", "60")
    narrow = ebbtide(*words).out
    monkeypatch.setenv("COLUMNS", "80")
    assert max(len(line) for line in wide.splitlines()) <= 80
    assert max(len(line) for line in narrow.splitlines()) <= 60
    return narrow, wide


@pytest.mark.parametrize(
    ("columns", "width"), [("80", 80), ("200", 80), ("72", 72), ("60", 60), ("20", 60), ("0", 80), ("many", 80)]
)
def test_the_width_is_that_of_the_terminal_within_reason(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    # What Python asks of the terminal itself where COLUMNS says nothing.
    monkeypatch.setattr("shutil.os.get_terminal_size", lambda _: (_ for _ in ()).throw(OSError("no terminal")))
    assert terminal_width() == width


def test_every_table_says_the_same_in_60_columns(
    ebbtide, monkeypatch: pytest.MonkeyPatch, fleet_file: Path, tmp_path: Path
) -> None:
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "allocate", fleet_file, "-o", tmp_path)
    assert numbers(narrow) >= numbers(wide) - Counter(re.findall(r"\d\d:\d\d", wide))
    schedule = tmp_path / "schedule.yaml"
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "explain", schedule)
    assert narrow.split() == wide.split()
    edited = tmp_path / "edited.yaml"
    edited.write_text(re.sub(r"replicas: \[\d+,", "replicas: [123456,", schedule.read_text()))
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "diff", schedule, edited)
    assert narrow.split() == wide.split()
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "allocate", fleet_file, "--least-gpus")
    assert narrow.split() == wide.split()


def test_many_workloads_become_rows_in_60_columns(
    ebbtide, monkeypatch: pytest.MonkeyPatch, fleet_file: Path, tmp_path: Path
) -> None:
    text = fleet_file.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if "name: chat" in line)
    more = [line.replace("name: chat,", f"name: chat-{k}, demand: {{key: chat}},") for k in range(6)]
    fleet_file.write_text(text + "\n".join(more) + "\n", encoding="utf-8")
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "allocate", fleet_file, "-o", tmp_path)
    assert wide.startswith(("WINDOW", "FROM"))
    assert narrow.startswith("FROM")


@pytest.mark.parametrize("rate", ["9.5", "1e-9", "9e14"])
def test_the_calculators_columns_stand_below_each_other_where_they_do_not_fit(
    ebbtide, monkeypatch: pytest.MonkeyPatch, rate: str
) -> None:
    words = (
        "--arrival-rate-rps",
        rate,
        "--service-time-s",
        "1",
        "--target-wait-s",
        "0.5",
        "--target-percentile",
        "0.9",
    )
    narrow, wide = narrow_and_wide(ebbtide, monkeypatch, "size", *words)
    assert numbers(narrow) >= numbers(wide)
