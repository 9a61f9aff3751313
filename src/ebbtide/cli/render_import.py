"""The answer of ``ebbtide claims import`` as text and as JSON."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from ebbtide.errors import one_line

if TYPE_CHECKING:
    from ebbtide.capacity.levels import Level
    from ebbtide.workflows.claims_import import Imported


def imported_text(found: Imported) -> str:
    """The rate, what fails first, and the loads that it was read from."""
    claim = found.claim
    if claim is None:
        lowest = found.levels[0]
        lines = [f"no load holds the targets: {lowest.held_rps:.4g} requests a second miss {found.found.limited_by}"]
    else:
        held = claim.sustained
        each = "" if held.replicas == 1 else f" a replica, of {held.replicas} measured together"
        high = f", not {held.high_rps:.4g}" if isfinite(held.high_rps) else ""
        lines = [f"{claim.name} holds {held.low_rps:.4g} requests a second{each}{high}, as {found.tool} measured it"]
        if held.limited_by is not None:
            lines.append(f"limited by {held.limited_by}; planning uses {held.low_rps:.4g}")
    return "\n".join([*lines, *(_level(level, found) for level in found.levels)])


def imported_json(found: Imported) -> dict[str, Any]:
    """One object, snake_case with units; what is not known is null."""
    claim = found.claim
    held = None if claim is None else claim.sustained
    return {
        "tool": found.tool,
        "name": None if claim is None else claim.name,
        "replica_low_rps": None if held is None else held.low_rps,
        "replica_high_rps": None if held is None or not isfinite(held.high_rps) else held.high_rps,
        "limited_by": found.found.limited_by,
        "open_loop": None if claim is None else claim.effort.open_loop,
        "levels": [
            {
                "file": level.file,
                "rate_rps": level.held_rps,
                "answered": level.answered,
                "failed": level.failed,
                "cut_off": level.cut_off,
                "arrivals": level.arrivals,
                "open_loop": level.open_loop,
            }
            for level in found.levels
        ],
        "warnings": [] if claim is None else list(claim.warnings),
        "written": [str(path) for path in found.written],
    }


def _level(level: Level, found: Imported) -> str:
    mark = "holds" if level is found.found.low else "misses" if level is found.found.high else ""
    failed = f", {level.failed:,} failed" if level.failed else ""
    how = f", {level.arrivals}" if level.arrivals else ""
    return (
        f"  {level.held_rps:9.4g}/s  {level.answered:,} answered{failed}{how}  {one_line(level.file)}  {mark}".rstrip()
    )
