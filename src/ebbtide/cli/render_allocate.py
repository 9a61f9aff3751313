"""The answer of ``ebbtide allocate`` as plain text of at most 80 columns (docs: a session).

Windows are rows while the table fits; with more workloads or pools than fit, the windows become columns, in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ebbtide.adapters.report.figures import (
    minutes,
    more_or_less,
    percent_pair,
    small_percent,
    static_nodes,
    target_share,
    whole,
)
from ebbtide.cli.columns import WIDTH, Column, Paint, elided, filled, lines_of, total_width
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window, clock, hours_label
from ebbtide.fleet.schedule import Explanation, Schedule, Shortage
from ebbtide.fleet.workload import TargetKind

_LABEL_GAP = 2
_SHORT_NAME = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What the tables are made of, and how they are painted."""

    schedule: Schedule
    explanation: Explanation
    fleet: Fleet
    paint: Paint
    width: int

    @property
    def several_pools(self) -> bool:
        return len(self.schedule.pools) > 1

    def worst(self, window: int) -> tuple[str, float]:
        """The workload nearest to its target (or furthest beyond it) in a window, and its share of the target.

        NaN where no workload's wait is observed: all are planned on claims.
        """
        shares = {name: reasons[window].target_share for name, reasons in self.explanation.reasons.items()}
        named = [(name, share) for name, share in shares.items() if share == share]
        return max(named, key=lambda pair: pair[1]) if named else ("-", math.nan)


def render_allocate(
    schedule: Schedule, explanation: Explanation, fleet: Fleet, *, colour: bool = False, width: int = WIDTH
) -> str:
    """The table of windows, its legend, the day's GPU-hours, the gap to the bound, shortages; ends with a newline.

    At most ``width`` columns wide, unless a single name is wider. ``colour`` adds ANSI styles, which take no columns.
    """
    plan = _Plan(schedule=schedule, explanation=explanation, fleet=fleet, paint=Paint(colour=colour), width=width)
    columns = _columns_by_window(plan)
    table = _rows_by_window(plan, columns) if total_width(columns) <= width else _rows_by_workload(plan)
    return "\n".join([*table, *_legend(plan), *_totals(plan), *_shortages(plan)]) + "\n"


# --- windows as rows ---------------------------------------------------------------------------------------------


def _columns_by_window(plan: _Plan) -> list[Column]:
    windows = plan.schedule.windows
    labels = tuple(hours_label(window) for window in windows)
    columns = [Column(heading="WINDOW", cells=labels, gap=0, left=True)]
    if not plan.several_pools:
        leads = tuple(minutes(lead) for lead in plan.schedule.pools[0].lead_s)
        columns.append(Column(heading="LEAD", cells=leads, gap=_LABEL_GAP))
    for index, workload in enumerate(plan.schedule.workloads):
        cells = tuple(whole(count) for count in workload.replicas)
        columns.append(Column(heading=workload.name, cells=cells, gap=1 if index else _LABEL_GAP))
    columns += _pool_columns(plan)
    worst = [plan.worst(index) for index in range(len(windows))]
    cells = tuple("-" if math.isnan(share) else f"{name} {target_share(share)}" for name, share in worst)
    return [*columns, Column(heading="WORST", cells=cells, gap=_LABEL_GAP, left=True)]


def _pool_columns(plan: _Plan) -> Iterator[Column]:
    for pool in plan.schedule.pools:
        lead = tuple(minutes(seconds) for seconds in pool.lead_s)
        if plan.several_pools:
            yield Column(heading="LEAD", cells=lead, gap=_LABEL_GAP)
        production = tuple(whole(nodes) for nodes in pool.production_nodes)
        yield Column(heading="PROD", cells=production, gap=1 if plan.several_pools else _LABEL_GAP)
        yield Column(heading="EPH", cells=tuple(whole(nodes) for nodes in pool.ephemeral_nodes))


def _rows_by_window(plan: _Plan, columns: list[Column]) -> list[str]:
    heading, *rows = lines_of(columns)
    over = [_pool_heading(plan, columns)] if plan.several_pools else []
    missed = [plan.worst(index)[1] > 1 for index in range(len(rows))]
    painted = [_painted(plan, line, columns[-1].cells[index], missed[index]) for index, line in enumerate(rows)]
    return [*(plan.paint.bold(line) for line in (*over, heading)), *painted]


def _painted(plan: _Plan, line: str, worst: str, missed: bool) -> str:
    if not missed:
        return line
    cut = len(line) - len(worst)
    return line[:cut] + plan.paint.alarm(line[cut:])


def _pool_heading(plan: _Plan, columns: list[Column]) -> str:
    """A line above the headings that names each pool over its three columns."""
    line = " " * total_width(columns[: 1 + len(plan.schedule.workloads)])
    first = 1 + len(plan.schedule.workloads)
    for index, pool in enumerate(plan.schedule.pools):
        width = total_width(columns[first + 3 * index : first + 3 * index + 3])
        line += " " * _LABEL_GAP + elided([pool.name], width - _LABEL_GAP)[0].ljust(width - _LABEL_GAP)
    return line.rstrip()


# --- workloads as rows -------------------------------------------------------------------------------------------


def _rows_by_workload(plan: _Plan) -> list[str]:
    """Blocks of windows, each a table with a row per workload; first split where the days change, then by width."""
    names = elided([column.name for column in plan.schedule.workloads])
    labels = (*names, *(label for pool in plan.schedule.pools for label in _pool_labels(plan, pool.name)))
    labels = (*labels, "WORST", "") if _names_fit(plan) else (*labels, "WORST")
    lines: list[str] = []
    for days, group in _day_groups(plan.schedule.windows):
        for block in _blocks(plan, group, max(len(label) for label in (*labels, days))):
            lines += ([""] if lines else []) + _block(plan, labels, days, block)
    return lines


def _pool_labels(plan: _Plan, pool: str) -> tuple[str, ...]:
    prefix = f"{pool} " if plan.several_pools else ""
    return tuple(prefix + word for word in ("LEAD", "PROD", "EPH"))


def _day_groups(windows: tuple[Window, ...]) -> list[tuple[str, list[int]]]:
    """Window numbers by what their label says beside the hours: days, dates, or nothing; in the schedule's order."""
    groups: dict[str, list[int]] = {}
    for index, window in enumerate(windows):
        label = " ".join(hours_label(window).replace(window.span, "").replace("(", "").replace(")", "").split())
        groups.setdefault(label or "FROM", []).append(index)
    return list(groups.items())


def _names_fit(plan: _Plan) -> bool:
    """Whether the worst workload's name fits under its share; a cut name says nothing and costs columns."""
    return all(len(column.name) <= _SHORT_NAME for column in plan.schedule.workloads)


def _blocks(plan: _Plan, group: list[int], label_width: int) -> Iterator[list[int]]:
    block: list[int] = []
    width = label_width
    for index in group:
        more = 1 + _window_column(plan, index).width
        if block and width + more > plan.width:
            yield block
            block, width = [], label_width
        block.append(index)
        width += more
    yield block


def _window_column(plan: _Plan, index: int) -> Column:
    """One window's cells: replicas, each pool's lead and nodes, the worst share and, below it, whose it is."""
    window = plan.schedule.windows[index]
    cells = [whole(column.replicas[index]) for column in plan.schedule.workloads]
    for pool in plan.schedule.pools:
        cells += [minutes(pool.lead_s[index]), whole(pool.production_nodes[index]), whole(pool.ephemeral_nodes[index])]
    name, share = plan.worst(index)
    cells.append("-" if math.isnan(share) else target_share(share))
    return Column(heading=clock(window.start), cells=(*cells, name) if _names_fit(plan) else tuple(cells))


def _block(plan: _Plan, labels: tuple[str, ...], days: str, block: list[int]) -> list[str]:
    columns = [Column(heading=days, cells=labels, gap=0, left=True), *(_window_column(plan, i) for i in block)]
    heading, *rows = lines_of(columns)
    missed = any(plan.worst(index)[1] > 1 for index in block)
    worst = labels.index("WORST")
    rows[worst] = plan.paint.alarm(rows[worst]) if missed else rows[worst]
    return [plan.paint.bold(heading), *rows]


# --- below the table ---------------------------------------------------------------------------------------------


def _legend(plan: _Plan) -> list[str]:
    pools = plan.fleet.pools
    measure = f"WORST: {target_measure(plan.fleet)} as a share of its target."
    claimed = [one.name for one in plan.fleet.workloads if one.service.claim is not None]
    if len(claimed) == len(plan.fleet.workloads):
        measure = "WORST: not observed, for all are planned on claims."
    elif claimed:
        measure = f"{measure[:-1]}, but of {_listed(claimed)}, planned on claims."
    if not plan.several_pools:
        pool = pools[0]
        reserved = f"; reserved {whole(pool.reserved_nodes)}" if pool.reserved_nodes else ""
        return filled(f"{measure} PROD, EPH: nodes of {pool.name}{reserved}", plan.width)
    reserved = ", ".join(f"{whole(pool.reserved_nodes)} of {pool.name}" for pool in pools if pool.reserved_nodes)
    return filled(f"{measure} PROD, EPH: nodes" + (f"; reserved {reserved}" if reserved else ""), plan.width)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def target_measure(fleet: Fleet) -> str:
    """What the targets bound, in words: ``P95 wait``; ``wait or latency at its percentile`` where they differ."""
    targets = [target for workload in fleet.workloads for target in workload.targets]
    kinds = [kind.value for kind in TargetKind if any(target.kind is kind for target in targets)]
    words = " or ".join(kinds) or "wait"
    percentiles = {target.percentile for target in targets}
    if len(percentiles) == 1:
        return f"P{percentiles.pop() * 100:.6g} {words}"
    return f"{words} at its percentile"


def _totals(plan: _Plan) -> list[str]:
    hours, bound = plan.explanation.gpu_hours_per_day, plan.explanation.bound
    nodes = static_nodes(hours.static_nodes, hours.static_missing_nodes)
    return [
        *filled(
            f"GPU-hours a day: production {whole(hours.production)}, moving {whole(hours.moving)}, "
            f"research {whole(hours.research)}",
            plan.width,
        ),
        *filled(
            f"freed against static peak ({nodes}): {whole(hours.freed)}; gap to bound {small_percent(bound.gap)}",
            plan.width,
        ),
        *_price_of_few_windows(plan),
    ]


def _price_of_few_windows(plan: _Plan) -> list[str]:
    price = plan.explanation.bound.few_windows
    if price is None:
        return []
    return filled(f"few windows cost {more_or_less(price)} than windows on the finest grid", plan.width)


def _shortages(plan: _Plan) -> Iterator[str]:
    windows = {window.name: window for window in plan.schedule.windows}
    for shortage in plan.explanation.shortages:
        yield from map(plan.paint.alarm, filled(_short_line(shortage, windows), plan.width))


def _short_line(shortage: Shortage, windows: dict[str, Window]) -> str:
    where = hours_label(windows[shortage.window]) if shortage.window in windows else shortage.window
    got, asked = percent_pair(shortage.attainment, shortage.required)
    needs = ": no number of GPUs is enough"
    if shortage.missing_gpus is not None:
        gpus = "1 GPU" if shortage.missing_gpus == 1 else f"{whole(shortage.missing_gpus)} GPUs"
        needs = f" needs {gpus} more"
    return f"short: {shortage.workload} {where}{needs}; {got} within target, asked {asked}"
