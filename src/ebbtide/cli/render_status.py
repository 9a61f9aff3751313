"""Where a schedule stands, as text of 80 columns and as JSON; and the last decisions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from whenever import Instant

from ebbtide.units import format_duration
from ebbtide.workflows.people import Status

Plain = Mapping[str, Any]


def status_json(found: Status) -> dict[str, Any]:
    """``phase, window, next_change, motion, shortages, conditions``: null and empty before a controller told any."""
    told = found.told or {}
    change_s = told.get("next_change_s")
    return {
        "phase": told.get("phase"),
        "window": told.get("window"),
        "next_change": None if change_s is None else Instant.from_timestamp(round(change_s)).format_iso(),
        "motion": [
            {**one, "moves": [_move(move, told, found.now_s) for move in told["moves"] if move["pool"] == one["pool"]]}
            for one in told.get("motion", ())
        ],
        "shortages": told.get("shortages", []),
        "conditions": told.get("conditions", []),
    }


def _move(move: Plain, told: Plain, now_s: float) -> dict[str, Any]:
    return {
        "node": move["arrived"] or move["node"],
        "direction": move["direction"],
        "stage": move["stage"],
        "age_s": round(now_s - move["begun_s"]),
        "expected_s": round(_within_s(move, told)),
        "late": move["late"],
    }


def _within_s(move: Plain, told: Plain) -> float:
    pool = next(one for one in told["pools"] if one["name"] == move["pool"])
    return float(pool["yield_within_s" if move["direction"] == "yield" else "reclaim_within_s"])


def status_text(found: Status, *, width: int) -> str:
    """A line for the whole, one for each node on its way, one for what is short; warnings below."""
    told = found.told
    if told is None:
        return f"{found.fleet}  no controller has told anything yet{_life(found)}"
    lines = _filled(f"{found.fleet}  {_phase(told)}{_change(told, found.now_s)}", width, "  ")
    for move in told["moves"]:
        age, within = format_duration(_minutes(found.now_s - move["begun_s"])), format_duration(_within_s(move, told))
        late = ", late" if move["late"] else ""
        lines.append(f"  {move['arrived'] or move['node']}  {move['stage']}, {age} of {within} (P90){late}")
    lines += _filled(f"{_shortages(told)}; {_live(told)}", width, "  ")
    lines += [
        line
        for one in told["conditions"]
        if one["holds"] == "False" and one["type"] != "PlanHolds"
        for line in _filled(f"{one['type']}: {one['message'] or one['reason']}", width, "  ")
    ]
    lines += _wishes(found, width)
    life = _life(found)
    return "\n".join([*lines, life.removeprefix("; ")] if life else lines)


def _phase(told: Plain) -> str:
    shadow = " (Shadow: nothing is done)" if told["mode"] == "Shadow" else ""
    moving = [
        f"{one['there']} of {one['wanted']} nodes there, {one['moving']} moving"
        + (f" ({one['late']} late)" if one["late"] else "")
        for one in told["motion"]
    ]
    return f"{told['phase']}{shadow}" + (f": {'; '.join(moving)}" if moving else "")


def _change(told: Plain, now_s: float) -> str:
    change_s = told["next_change_s"]
    if change_s is None:
        return ""
    local = Instant.from_timestamp(round(change_s)).to_tz(told["time_zone"])
    if change_s <= now_s:
        return f"; the window {told['window']} ended at {local.time().format_iso()[:5]}"
    return f"; {local.time().format_iso()[:5]} begins in {format_duration(_minutes(change_s - now_s))}"


def _minutes(seconds: float) -> float:
    return float(max(math.floor(seconds / 60.0), 0) * 60) or float(round(max(seconds, 0.0)))


def _shortages(told: Plain) -> str:
    short = [f"{one['workload']} -{one['missing_replicas']} ({one['reason']})" for one in told["shortages"]]
    return "shortages: " + (", ".join(short) if short else "none")


def _live(told: Plain) -> str:
    share = told["busiest_share"]
    if share is None:
        return "live demand is not observed"
    return f"live demand at most {100.0 * share:.0f} % of what the plan holds ({told['busiest']})"


def _wishes(found: Status, width: int) -> list[str]:
    lines = []
    if found.wishes.pause is not None:
        reason = found.wishes.pause.reason
        lines += _filled(f"paused{': ' + reason if reason else ''}; `ebbtide resume` goes on", width, "  ")
    for one in found.wishes.overrides:
        if one.until_s > found.now_s:
            until = Instant.from_timestamp(round(one.until_s)).format_iso()
            lines += _filled(f"override {one.name}: {one.kind} {one.what} until {until}: {one.reason}", width, "  ")
    return lines


def _life(found: Status) -> str:
    if found.alive:
        return ""
    if found.renewed_s is None or not found.holder:
        return "; no controller runs"
    return f"; no controller: the last one was here {format_duration(_minutes(found.now_s - found.renewed_s))} ago"


def _filled(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width=width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def history_text(decided: Sequence[Plain], *, width: int) -> str:
    """A decision a line, oldest first."""
    lines = [
        line
        for one in decided
        for line in _filled(
            f"{one['at']}  {one['result']:<8} {one['what']}: {one['why']} ({one['rule']})", width, " " * 31
        )
    ]
    return "\n".join(lines) or "nothing was decided yet"
