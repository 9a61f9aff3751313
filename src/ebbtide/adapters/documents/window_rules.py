"""Windows cover the cycle once (§5.1): every weekday in one pattern, starts in order, no gap between days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whenever import Time

from ebbtide.adapters.documents.fleet_models import MAX_WINDOWS, WindowsSpec
from ebbtide.adapters.documents.problems import Problem
from ebbtide.adapters.documents.yaml_text import Path
from ebbtide.fleet.horizon import WEEK, clock
from ebbtide.units import DAY_S

_ROOT: Path = ("spec", "windows")


def window_problems(patterns: Sequence[WindowsSpec]) -> list[Problem]:
    """What is wrong with a Fleet's windows; gaps between days are looked for once the rest is right."""
    problems = [problem for index, pattern in enumerate(patterns) for problem in _pattern(pattern, (*_ROOT, index))]
    problems += _weekdays(patterns)
    return problems or [*_day_borders(patterns), *_total(patterns)]


def _pattern(pattern: WindowsSpec, path: Path) -> Iterator[Problem]:
    if not pattern.days:
        yield Problem(path=(*path, "days"), kind="out_of_range", message="has no day", hint="remove the item")
    if pattern.starts and pattern.choose is not None:
        yield Problem(
            path=path, kind="conflicting_fields", message="has both starts and choose", hint="give one of them"
        )
    if "starts" in pattern.model_fields_set and not pattern.starts:
        yield Problem(path=(*path, "starts"), kind="out_of_range", message="is empty", hint="give a start or remove it")
    yield from _order(pattern.starts, (*path, "starts"))
    if pattern.choose is not None and pattern.choose.shortest > DAY_S:
        yield Problem(
            path=(*path, "choose", "shortest"),
            kind="out_of_range",
            message="is longer than a day, and windows follow each other within one",
        )


def _order(starts: Sequence[Time], path: Path) -> Iterator[Problem]:
    for index in range(1, len(starts)):
        before, after = starts[index - 1], starts[index]
        if before == after:
            message = f"{clock(after)} is there twice"
        elif before > after:
            message = f"{clock(after)} follows {clock(before)}; starts are in order of the day"
        else:
            continue
        yield Problem(path=(*path, index), kind="starts_not_sorted", message=message)


def _weekdays(patterns: Sequence[WindowsSpec]) -> Iterator[Problem]:
    held: dict[str, int] = {}
    for index, pattern in enumerate(patterns):
        for day in pattern.days:
            if day in held:
                where = "twice in this pattern" if held[day] == index else f"in windows[{held[day]}] already"
                message = f"{day} is {where}; each weekday has one pattern"
                yield Problem(path=(*_ROOT, index, "days"), kind="weekday_in_two_patterns", message=message)
            held.setdefault(day, index)
    missing = [day.value for day in WEEK if day.value not in held]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield Problem(
            path=_ROOT,
            kind="weekday_in_no_pattern",
            message=f"{', '.join(missing)} {verb} in no pattern; every weekday needs one",
        )


def _first(pattern: WindowsSpec) -> Time:
    # Chosen boundaries are free within their day, which then begins at midnight beside other patterns.
    return pattern.starts[0] if pattern.starts else Time(0)


def _day_borders(patterns: Sequence[WindowsSpec]) -> Iterator[Problem]:
    """A day's last window runs to its own first start on the next day; the next day must begin right there."""
    index_of = {day: index for index, pattern in enumerate(patterns) for day in pattern.days}
    for number, day in enumerate(WEEK):
        following = WEEK[(number + 1) % len(WEEK)]
        ends, begins = _first(patterns[index_of[day.value]]), _first(patterns[index_of[following.value]])
        if ends == begins:
            continue
        gap = ends < begins
        span = f"{following} {clock(min(ends, begins))}-{clock(max(ends, begins))}"
        yield Problem(
            path=(*_ROOT, index_of[following.value]),
            kind="window_gap" if gap else "window_overlap",
            message=f"{span} is in {'no window' if gap else 'two windows'}: {day}'s last window ends at {clock(ends)}, "
            f"{following}'s first begins at {clock(begins)}",
            hint="let all patterns begin at the same time of day",
        )


def _total(patterns: Sequence[WindowsSpec]) -> Iterator[Problem]:
    total = sum(len(pattern.starts) for pattern in patterns)
    if total > MAX_WINDOWS:
        yield Problem(path=_ROOT, kind="out_of_range", message=f"has {total} windows; at most {MAX_WINDOWS}")
