"""How one window is named on its own: its hours, before them its days where they are not all, after them its dates."""

from __future__ import annotations

from ebbtide.fleet.horizon import WEEK, Window, day_label


def hours_label(window: Window) -> str:
    """``09:00-13:00``, ``Sat+Sun 09:00-13:00``, ``09:00-13:00 (2026-10-01 to 2026-10-07)``.

    >>> from whenever import Time
    >>> hours_label(Window(name="w", days=WEEK[:5], start=Time(9), end=Time(13)))
    'Mon-Fri 09:00-13:00'
    """
    days = "" if window.days == WEEK else f"{_days(window)} "
    dates = ""
    if window.valid_from is not None and window.valid_until is not None:
        dates = f" ({window.valid_from} to {window.valid_until.subtract(days=1)})"
    return f"{days}{window.span}{dates}"


def _days(window: Window) -> str:
    return "+".join("-".join(day.capitalize() for day in run.split("-")) for run in day_label(window.days).split("+"))
