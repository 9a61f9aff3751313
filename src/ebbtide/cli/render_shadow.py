"""A score of a record as text and JSON."""

from __future__ import annotations

from dataclasses import asdict

from ebbtide.cli.columns import Column, elided, lines_of
from ebbtide.errors import one_line
from ebbtide.simulate.shadow import ShadowScore, WindowShadow


def shadow_text(found: ShadowScore) -> str:
    """A table of workloads and one of pools, a row for each window; then the totals."""
    lines = [f"{found.hours:,.1f} hours with a plan were looked at; {found.missing_h:,.1f} are missing"]
    if found.unplanned_h:
        lines[0] += f", {found.unplanned_h:,.1f} had no plan in force"
    if found.windows:
        lines += ["", *_workloads(found.windows), "", *_pools(found.windows), ""]
    lines.append(
        f"GPU-hours the schedule would have given: to research {found.to_research_gpu_h:,.0f}, "
        f"to production {found.to_production_gpu_h:,.0f}"
    )
    return "\n".join(lines)


def _workloads(windows: tuple[WindowShadow, ...]) -> list[str]:
    rows = [(one, each) for one in windows for each in one.workloads]
    return lines_of(
        [
            _left("WINDOW", [one.window for one, _ in rows], gap=0),
            Column(heading="HOURS", cells=tuple(f"{one.hours:.1f}" for one, _ in rows), gap=2),
            _left("WORKLOAD", [each.name for _, each in rows]),
            Column(heading="PLANNED", cells=tuple(f"{each.planned:.1f}" for _, each in rows), gap=2),
            Column(heading="READY", cells=tuple(f"{each.ready:.1f}" for _, each in rows), gap=2),
            Column(heading="RPS", cells=tuple(_number(each.mean_rps) for _, each in rows), gap=2),
            Column(heading="MOST", cells=tuple(_number(each.most_rps) for _, each in rows), gap=2),
            Column(heading="ABOVE", cells=tuple(_share(each.above_share) for _, each in rows), gap=2),
        ]
    )


def _pools(windows: tuple[WindowShadow, ...]) -> list[str]:
    rows = [(one, each) for one in windows for each in one.pools]
    return lines_of(
        [
            _left("WINDOW", [one.window for one, _ in rows], gap=0),
            _left("POOL", [each.name for _, each in rows]),
            Column(heading="PLANNED", cells=tuple(f"{each.planned:.1f}" for _, each in rows), gap=2),
            Column(heading="SEEN", cells=tuple(f"{each.seen:.1f}" for _, each in rows), gap=2),
            Column(
                heading="GPU-H TO RESEARCH", cells=tuple(f"{each.to_research_gpu_h:,.1f}" for _, each in rows), gap=2
            ),
            Column(heading="TO PRODUCTION", cells=tuple(f"{each.to_production_gpu_h:,.1f}" for _, each in rows), gap=2),
        ]
    )


def _left(heading: str, cells: list[str], *, gap: int = 2) -> Column:
    names = elided(list(dict.fromkeys(cells)), 18)
    short = dict(zip(dict.fromkeys(cells), names, strict=True))
    return Column(heading=heading, cells=tuple(one_line(short[one]) for one in cells), gap=gap, left=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def shadow_json(found: ShadowScore) -> dict[str, object]:
    """The same for scripts: hours and GPU-hours by window, None where a rate was not observed."""
    return {
        "hours": found.hours,
        "missing_h": found.missing_h,
        "unplanned_h": found.unplanned_h,
        "to_research_gpu_h": found.to_research_gpu_h,
        "to_production_gpu_h": found.to_production_gpu_h,
        "windows": [asdict(one) for one in found.windows],
    }
