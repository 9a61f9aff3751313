"""``explain`` answers from the document alone, in the documentation's form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from whenever import Time

from ebbtide.adapters.documents.schedule import write_schedule
from ebbtide.cli.render_explain import explain_text
from ebbtide.errors import InputError
from ebbtide.fleet.horizon import WEEK, Window
from ebbtide.fleet.schedule import Explanation, Schedule
from ebbtide.workflows.explain import explain, explain_schedule
from ebbtide.workflows.windows import selected_windows


def test_the_documented_session(tmp_path: Path, schedule: Schedule, explanation: Explanation) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, schedule, explanation)
    answers = explain(path, window="09:00", workload="agents")
    assert explain_text(answers) == (
        "agents 09:00-13:00: 27 replicas, 54 GPUs, for 52.0 rps, up to 61.5; target P95\n"
        "  wait 5s\n"
        "  floor       26   P95  71s   1,220 waiting   misses the target\n"
        "  last given  27   P95 0.9s     8.2 waiting   meets the target\n"
        "  refused     28   P95 0.1s     1.0 waiting   saves 0.07 USD/h, research: 4.00\n"
        "  held by     target: one fewer misses it\n"
    )


def test_its_json(schedule: Schedule, explanation: Explanation) -> None:
    answer = explain_schedule(schedule, explanation, window="09:00", workload="agents").as_json()
    assert {"workload", "window", "replicas", "floor", "last_given", "first_refused"} <= answer.keys()
    assert (answer["workload"], answer["window"], answer["replicas"], answer["gpus"]) == ("agents", "all-0900", 27, 54)
    assert answer["floor"] == {
        "replicas": 26,
        "wait_s": 71.0,
        "waiting_requests": 1220.0,
        "attainment": 0.12,
        "meets_target": False,
        "saves_per_h": "unstable",
    }
    json.dumps(answer, allow_nan=False)
    several = explain_schedule(schedule, explanation, window="09:00").as_json()
    assert [one["workload"] for one in several["answers"]] == ["chat", "agents"]
    json.dumps(explain_schedule(schedule, explanation).as_json(), allow_nan=False)


def test_unstable_floors_and_the_maximum(schedule: Schedule, explanation: Explanation) -> None:
    text = explain_text(explain_schedule(schedule, explanation, window="20:00", workload="chat"))
    assert "  floor        2   P95 unstable   unlimited waiting   misses the target\n" in text
    assert text.endswith("  refused     none: this is the maximum\n  held by     maximum: the Fleet allows no more\n")


def test_a_shortage(schedule: Schedule, explanation: Explanation) -> None:
    reasons = {
        name: tuple(replace(row, bound="shortage") for row in rows) for name, rows in explanation.reasons.items()
    }
    text = explain_text(
        explain_schedule(schedule, replace(explanation, reasons=reasons), window="09:00", workload="agents")
    )
    assert "last given  27   P95 0.9s     8.2 waiting   misses the target\n" in text
    assert "no GPUs are left" in text


def test_what_is_below_the_floor_is_not_called_the_floor(schedule: Schedule, explanation: Explanation) -> None:
    told = []
    for word in ("floor", "shortage"):
        rows = tuple(replace(row, floor=row.given, bound=word) for row in explanation.reasons["agents"])
        why = replace(explanation, reasons={**explanation.reasons, "agents": rows})
        told.append(explain_text(explain_schedule(schedule, why, window="09:00", workload="agents")))
    assert "meets the target, is the floor\n" in told[0]
    assert "is the floor" not in told[1]


def test_an_edited_schedule_says_so(schedule: Schedule, explanation: Explanation) -> None:
    chat, agents = schedule.workloads
    edited = replace(schedule, workloads=(chat, replace(agents, replicas=(3, 6, 9, 30, 27, 11))))
    answers = explain_schedule(edited, explanation, window="09:00", workload="agents")
    assert answers.answers[0].edited
    assert "made with 27 replicas" in explain_text(answers)


def test_no_line_is_wider_than_80(schedule: Schedule, explanation: Explanation) -> None:
    wide = replace(
        explanation,
        bound=replace(explanation.bound, unit="GPU-h per cycle"),
        reasons={
            name: tuple(
                replace(
                    row,
                    rate_rps=123_456.0,
                    cost_usd_per_h=123_456.0,
                    given=replace(row.given, replicas=12_345, waiting=1e7),
                    refused=row.refused and replace(row.refused, replicas=12_346, waiting=1e7, gain_usd_per_h=65_432.1),
                )
                for row in rows
            )
            for name, rows in explanation.reasons.items()
        },
    )
    text = explain_text(explain_schedule(schedule, wide))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "GPU-h/h" in text


def test_without_facts_the_text_leaves_them_out(schedule: Schedule, explanation: Explanation) -> None:
    text = explain_text(explain_schedule(schedule, replace(explanation, facts={}), window="09:00", workload="agents"))
    assert text.startswith("agents 09:00-13:00: 27 replicas, for 52.0 rps, up to 61.5\n")
    assert "target P95" not in text
    assert "the target" not in text


@pytest.mark.parametrize(
    ("word", "least", "told"),
    [
        ("target", 27, "target: one fewer misses it"),
        ("floor", 25, "floor: fewer are not stable; 25 meet the target"),
        ("minimum", 0, "minimum: the Fleet asks for so many; the target needs none"),
        ("maximum", 31, "maximum: the Fleet allows no more; 31 would meet the target"),
        ("gain", 1, "gain: the last one pays for its GPUs; 1 meets the target"),
        ("room", 24, "room: GPUs were left on its nodes; 24 meet the target"),
        ("move", 24, "move: moving nodes would cost more; 24 meet the target"),
        ("shortage", None, "shortage: the pool has no more GPUs"),
    ],
)
def test_what_held_the_number_is_told_with_the_least_that_meets_the_target(
    tmp_path: Path, schedule: Schedule, explanation: Explanation, word: str, least: int | None, told: str
) -> None:
    reasons = {
        name: tuple(replace(row, bound=word, least_replicas=least) for row in rows)
        for name, rows in explanation.reasons.items()
    }
    write_schedule(tmp_path / "schedule.yaml", schedule, replace(explanation, reasons=reasons))
    answers = explain(tmp_path / "schedule.yaml", window="09:00", workload="agents")
    assert explain_text(answers).endswith(f"\n  held by     {told}\n")
    assert (answers.as_json()["bound"], answers.as_json()["least_replicas"]) == (word, least)


def test_a_replica_that_whole_nodes_refuse_says_so(schedule: Schedule, explanation: Explanation) -> None:
    rows = tuple(replace(row, cost_usd_per_h=0.06) for row in explanation.reasons["agents"])
    cheap = replace(explanation, reasons={**explanation.reasons, "agents": rows})
    text = explain_text(explain_schedule(schedule, cheap, window="09:00", workload="agents"))
    assert text.endswith("  held by     target: one fewer misses it; one more would take another node\n")


def test_no_explanation(tmp_path: Path, schedule: Schedule) -> None:
    write_schedule(tmp_path / "s.yaml", schedule, None)
    with pytest.raises(InputError) as caught:
        explain(tmp_path / "s.yaml", window="09:00", workload="chat")
    assert caught.value.kind == "no_explanation"


@pytest.mark.parametrize(
    ("window", "workload", "kind", "hint"),
    [
        ("09:00", "agent", "unknown_workload", "agents"),
        ("25:00", "agents", "unknown_window", None),
        ("noon", "agents", "unknown_window", None),
        ("Mun 09:00", "agents", "unknown_window", None),
        ("all-0901", "agents", "unknown_window", "all-0900"),
    ],
)
def test_unknown(
    schedule: Schedule, explanation: Explanation, window: str, workload: str, kind: str, hint: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        explain_schedule(schedule, explanation, window=window, workload=workload)
    assert caught.value.kind == kind
    assert hint is None or caught.value.hint == hint


def weekly(schedule: Schedule) -> Schedule:
    """Working days in two windows, the second over midnight; Saturday and Sunday in one each."""
    windows = (
        Window(name="work", days=WEEK[:5], start=Time(7), end=Time(19)),
        Window(name="night", days=WEEK[:5], start=Time(19), end=Time(7)),
        Window(name="weekend", days=WEEK[5:], start=Time(7), end=Time(7)),
    )
    return replace(schedule, windows=windows)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("09:00", ["work", "weekend"]),
        ("9:00", ["work", "weekend"]),
        ("Mon 09:00", ["work"]),
        ("monday 09:00", ["work"]),
        ("Sat 09:00", ["weekend"]),
        ("03:00", ["night", "weekend"]),
        ("Sat 03:00", ["night"]),  # Friday's night runs into Saturday
        ("Mon 03:00", ["weekend"]),  # Sunday's window runs into Monday
        ("07:00", ["work", "weekend"]),  # a start belongs to its window, an end does not
        ("night", ["night"]),
        (None, ["work", "night", "weekend"]),
    ],
)
def test_which_windows_a_time_means(schedule: Schedule, text: str | None, names: list[str]) -> None:
    plan = weekly(schedule)
    assert [plan.windows[index].name for index in selected_windows(plan, text)] == names
