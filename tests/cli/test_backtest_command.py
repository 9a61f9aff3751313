"""`ebbtide backtest`, as its users run it: the table, the JSON, the page, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HEADING = "POLICY P95 WAIT ATTAINED HELD PROD GPU-H RESEARCH GPU-H LOST MOVES REGRET"
POLICIES = ["static", "reactive", "cron", "ebbtide", "hindsight"]


@pytest.fixture
def short_file(fleet_file: Path) -> Path:
    """Four days of the small fleet's demand: two of them are replayed."""
    rows = (fleet_file.parent / "rates.csv").read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if not row.startswith(("2026-09-05", "2026-09-06", "2026-09-07"))]
    (fleet_file.parent / "rates.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return fleet_file


def test_json_holds_every_policy_and_its_sums_are_the_fleets(ebbtide, short_file: Path) -> None:
    told = ebbtide("backtest", short_file, "--json", "--seed", 7)
    assert told.code == 0, told.err
    assert told.err == ""
    found = json.loads(told.out)
    assert list(found) == ["policies", "workloads", "seed", "troubles", "span", "written"]
    assert found["seed"] == 7
    assert found["written"] == []
    assert found["span"]["unit"] == "day"
    assert [part["from"] for part in found["span"]["stretches"]] == [
        "2026-09-03T00:00:00-04:00",
        "2026-09-04T00:00:00-04:00",
    ]
    policies = {one["name"]: one for one in found["policies"]}
    assert list(policies) == POLICIES
    for one in policies.values():
        assert one["production_gpu_h"] + one["moving_gpu_h"] + one["research_gpu_h"] == pytest.approx(12 * 8 * 48)
        assert 0.5 < one["attained"] <= 1.0
        assert one["windows_scored"] == 2 * 3 * 2
    assert policies["hindsight"]["regret"] is None
    best = policies["hindsight"]["production_gpu_h"]
    assert policies["static"]["regret"] == pytest.approx(policies["static"]["production_gpu_h"] / best - 1)
    assert policies["static"]["moves"] == 0
    assert policies["ebbtide"]["windows_held"] >= 11
    requests = {name: one["requests"] for name, one in policies.items()}
    assert len(set(requests.values())) == 1, "all policies get the same requests"
    chat = found["workloads"][0]
    assert chat["name"] == "chat"
    for row in chat["policies"]:
        assert sum(window["requests"] for window in row["windows"]) == row["requests"]
        assert [window["window"] for window in row["windows"]] == ["00:00-08:00", "08:00-20:00", "20:00-00:00"]


def test_the_table_fits_and_the_page_is_one_file(ebbtide, short_file: Path) -> None:
    folder = short_file.parent / "out"
    rivals = "static, hindsight"
    told = ebbtide("backtest", short_file, "--against", rivals, "--workloads", "-o", folder)
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert " ".join(lines[0].split()) == HEADING
    assert [line.split()[0] for line in lines[1:4]] == ["static", "ebbtide", "hindsight"]
    assert lines[3].split()[-1] == "-"
    assert max(len(line) for line in lines) <= 80
    assert "2026-09-03 to 2026-09-04: 2 days replayed" in told.out
    assert any(line.startswith("agents ") for line in lines)
    assert "reactive" not in told.out
    page = (folder / "backtest.html").read_text(encoding="utf-8")
    assert f"wrote {folder / 'backtest.html'}" in told.err
    assert "http" not in page.replace("http-equiv", "")
    again = ebbtide("backtest", short_file, "--against", rivals, "--workloads", "-o", folder)
    assert again.out == told.out
    assert (folder / "backtest.html").read_text(encoding="utf-8") == page
    other = ebbtide("backtest", short_file, "--against", rivals, "--workloads", "--seed", 2)
    assert other.out != told.out


def test_intervals_that_were_not_observed_are_said_and_not_scored(ebbtide, short_file: Path) -> None:
    rates = short_file.parent / "rates.csv"
    rows = [
        row
        for row in rates.read_text(encoding="utf-8").splitlines()
        if not row.startswith(("2026-09-04T10:00,chat", "2026-09-04T11:00,chat"))
    ]
    rates.write_text("\n".join(rows) + "\n", encoding="utf-8")
    told = ebbtide("backtest", short_file, "--against", "static")
    assert told.code == 0, told.err
    assert "2 intervals (2.1 %) were not observed: replayed at interpolated rates, not" in told.out


def test_what_cannot_be_replayed_is_refused(ebbtide, short_file: Path) -> None:
    told = ebbtide("backtest", short_file, "--against", "static,hindsigt")
    assert told.code == 2
    assert 'no rival is named "hindsigt"' in told.err
    told = ebbtide("backtest", short_file, "--against", "ebbtide")
    assert told.code == 2
    assert "it always takes part; there are static, reactive, cron, hindsight" in told.err
    told = ebbtide("backtest", short_file, "--days", 3, "-o", short_file.parent / "none")
    assert told.code == 2
    assert "the demand has 2 days to test, not 3" in told.err
    assert not (short_file.parent / "none").exists()
    rates = short_file.parent / "rates.csv"
    rows = rates.read_text(encoding="utf-8").splitlines()
    rates.write_text("\n".join(row for row in rows if "-09-01" in row or "time" in row) + "\n", encoding="utf-8")
    told = ebbtide("backtest", short_file, "--json")
    assert told.code == 2
    assert json.loads(told.out)["error"]["kind"] == "too_short"


def test_a_file_of_somebody_else_stays(ebbtide, short_file: Path) -> None:
    (short_file.parent / "backtest.html").write_text("mine", encoding="utf-8")
    told = ebbtide("backtest", short_file, "-o", short_file.parent)
    assert told.code == 2
    assert "did not write it" in told.err
    assert (short_file.parent / "backtest.html").read_text(encoding="utf-8") == "mine"


def test_with_troubles_the_last_day_alone_is_the_same_table_again_and_every_score_a_number(
    ebbtide, short_file: Path
) -> None:
    asked = ("backtest", short_file, "--against", "static,hindsight", "--days", 1, "--troubles", "wild")
    told = ebbtide(*asked)
    assert told.code == 0, told.err
    text = " ".join(told.out.split())
    assert "2026-09-04 to 2026-09-04: the last day of 2 replayed, planned on all before; seed 1, wild troubles" in text
    assert ebbtide(*asked).out == told.out
    found = json.loads(ebbtide(*asked, "--json").out)
    assert (found["troubles"], found["span"]["days"], found["span"]["possible_days"]) == ("wild", 1, 2)
    for one in found["policies"]:
        scores = [value for key, value in one.items() if key.endswith(("_s", "_gpu_h", "attained", "moves"))]
        assert len(scores) == 9
        assert all(isinstance(value, int | float) and value >= 0.0 for value in scores), one
    refused = ebbtide("backtest", short_file, "--troubles", "many")
    assert refused.code == 2
    assert "there are none, usual, wild" in refused.err
