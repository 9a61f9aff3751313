"""A schedule that a person edited is refused where its columns or its dated windows can't both be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from whenever import Date

from ebbtide.adapters.documents.dated_overlaps import overlaps
from ebbtide.adapters.documents.schedule import read_schedule, write_schedule
from ebbtide.adapters.documents.schedule_models import WindowSpec
from ebbtide.errors import DocumentError
from ebbtide.fleet.horizon import WEEK
from ebbtide.fleet.schedule import Schedule


def refused(path: Path) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_schedule(path)
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "sides"),
    [
        (
            "ephemeralNodes: [18, 24, 21,",
            "ephemeralNodes: [18, 24, 20,",
            ("11 + 20 = 31 nodes in window all-0600", "14 + 18 = 32 nodes in window all-0000"),
        ),
        (
            "productionNodes: [14,",
            "productionNodes: [140,",
            ("140 + 18 = 158 nodes in window all-0000", "8 + 24 = 32 nodes in window all-0200"),
        ),
    ],
)
def test_nodes_that_come_from_nowhere(
    tmp_path: Path, schedule: Schedule, old: str, new: str, sides: tuple[str, str]
) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, schedule, None)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    error = refused(path)
    assert (error.kind, error.place.field) == ("nodes_not_conserved", "pools[h100]")
    assert error.place.line == 1 + text.splitlines().index("  - name: h100")
    assert all(side in str(error) for side in sides)


def test_nodes_of_a_dated_window_are_conserved_too(tmp_path: Path, dated_schedule: Schedule) -> None:
    path = tmp_path / "schedule.yaml"
    write_schedule(path, dated_schedule, None)
    assert read_schedule(path)[0] == dated_schedule
    path.write_text(path.read_text().replace("25, 24, 24, 8]", "25, 24, 24, 9]"))
    assert "9 + 24 = 33 nodes in window golden-week-0000" in str(refused(path))


def dated_twice(dated_schedule: Schedule, change: Callable[[Schedule], Schedule]) -> Schedule:
    """The dated window once more under another name, changed."""
    again = replace(dated_schedule.windows[-1], name="again")

    def longer(column: object, names: tuple[str, ...]) -> object:
        return replace(column, **{name: (*getattr(column, name), getattr(column, name)[-1]) for name in names})

    pools = ("production_nodes", "ephemeral_nodes", "ephemeral_quota_gpus", "lead_s")
    twice = replace(
        dated_schedule,
        windows=(*dated_schedule.windows, again),
        workloads=tuple(longer(one, ("replicas", "holds_rps")) for one in dated_schedule.workloads),
        pools=tuple(longer(one, pools) for one in dated_schedule.pools),
    )
    return change(twice)


def with_last(schedule: Schedule, **changed: object) -> Schedule:
    return replace(schedule, windows=(*schedule.windows[:-1], replace(schedule.windows[-1], **changed)))


def test_two_dated_windows_at_one_time(tmp_path: Path, dated_schedule: Schedule) -> None:
    path = tmp_path / "schedule.yaml"
    overlapping = dated_twice(
        dated_schedule, lambda one: with_last(one, valid_from=Date(2026, 10, 7), valid_until=Date(2026, 10, 9))
    )
    write_schedule(path, overlapping, None)
    error = refused(path)
    assert (error.kind, error.place.field) == ("window_overlap", "windows[again]")
    assert "2026-10-07 00:00 is in two dated windows, golden-week-0000 and again" in str(error)


@pytest.mark.parametrize("days", [WEEK[:1], WEEK[5:]])
def test_dated_windows_that_follow_each_other_are_fine(
    tmp_path: Path, dated_schedule: Schedule, days: tuple[object, ...]
) -> None:
    path = tmp_path / "schedule.yaml"
    fine = dated_twice(
        dated_schedule,
        lambda one: with_last(one, days=days, valid_from=Date(2026, 10, 8), valid_until=Date(2026, 11, 1)),
    )
    write_schedule(path, fine, None)
    assert read_schedule(path)[0] == fine


@st.composite
def dated_windows(draw: st.DrawFn) -> list[WindowSpec]:
    def window(number: int) -> WindowSpec:
        first = Date(2026, 10, draw(st.integers(1, 20)))
        return WindowSpec.model_validate(
            {
                "name": f"w{number}",
                "days": draw(st.lists(st.sampled_from([day.value for day in WEEK]), min_size=1, unique=True)),
                "start": f"{draw(st.integers(0, 23)):02}:00",
                "end": f"{draw(st.integers(0, 23)):02}:00",
                "from": str(first),
                "until": str(first.add(days=draw(st.integers(1, 20)))),
            }
        )

    return [window(number) for number in range(draw(st.integers(2, 3)))]


def hours_of(window: WindowSpec) -> set[int]:
    """The hours since 2026-10-01 that a window holds, day by day: the plain way."""
    start, end = window.start.hour, window.end.hour
    held: set[int] = set()
    for day in range(60):
        date = Date(2026, 10, 1).add(days=day)
        if window.from_ <= date < window.until and WEEK[date.to_stdlib().weekday()].value in window.days:
            held |= {24 * day + start + hour for hour in range((end - start) % 24 or 24)}
    return held


@given(dated_windows())
def test_an_overlap_is_found_where_hours_are_shared(windows: list[WindowSpec]) -> None:
    held = [hours_of(window) for window in windows]
    shared = any(held[a] & held[b] for a in range(len(held)) for b in range(a))
    assert bool(list(overlaps(windows))) is shared
