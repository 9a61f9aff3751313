"""The answer of ``ebbtide backtest`` as plain text of at most 80 columns, and its JSON form."""

from __future__ import annotations

import math
from collections.abc import Iterator

from whenever import Instant

from ebbtide.adapters.report.figures import share_kept, wait, whole
from ebbtide.cli.columns import WIDTH, Column, Paint, elided, filled, lines_of, total_width
from ebbtide.simulate.scoring import Score
from ebbtide.workflows.backtest_trial import EBBTIDE, REACTIVE
from ebbtide.workflows.replay import Backtested, PolicyScore

_SHARES = (0.5, 0.95, 0.99)


def render_backtest(found: Backtested, *, workloads: bool = False, colour: bool = False, width: int = WIDTH) -> str:
    """A line per policy and what it rests on; with ``workloads`` a table per workload; ends with a newline.

    Where the lines would be wider than ``width`` policies become columns.
    """
    paint = Paint(colour=colour)
    columns = _columns(found)
    heading, *rows = lines_of(columns if total_width(columns) <= width else _turned(columns))
    lines = [paint.bold(heading), *rows, *(line for text in _legend(found) for line in filled(text, width))]
    if workloads:
        for one in found.fleet.workloads:
            lines += ["", *_workload_table(found, one.name, paint)]
    return "\n".join(lines) + "\n"


def backtest_json(found: Backtested) -> dict[str, object]:
    """``policies, workloads, seed, troubles, span`` and ``written``."""
    return {
        "policies": [_policy(found, one) for one in found.policies],
        "workloads": [
            {"name": one.name, "policies": [_of_workload(policy, one.name) for policy in found.policies]}
            for one in found.fleet.workloads
        ],
        "seed": found.seed,
        "troubles": found.troubles,
        "span": _span(found),
        "written": [str(path) for path in found.written],
    }


def share_text(share: float) -> str:
    """A share as a table's cell.

    >>> share_text(0.9783), share_text(0.99996), share_text(1.0), share_text(math.nan)
    ('97.8%', '99.9%', '100%', '-')
    """
    return share_kept(share).replace(" %", "%").replace("–", "-")


def _columns(found: Backtested) -> list[Column]:
    policies = found.policies
    scores = [one.score for one in policies]
    regrets = [found.regret(one) for one in policies]
    return [
        Column(heading="POLICY", cells=tuple(one.name for one in policies), gap=0, left=True),
        Column(heading="P95 WAIT", cells=tuple(_wait(one, 0.95) for one in scores), gap=2),
        Column(heading="ATTAINED", cells=tuple(share_text(one.attained) for one in scores)),
        Column(heading="HELD", cells=tuple(share_text(one.held_share) for one in scores)),
        Column(heading="PROD GPU-H", cells=tuple(whole(one.production_gpu_h) for one in policies), gap=2),
        Column(heading="RESEARCH GPU-H", cells=tuple(whole(one.research_gpu_h) for one in policies)),
        Column(heading="LOST", cells=tuple(whole(one.lost_gpu_h) for one in policies)),
        Column(heading="MOVES", cells=tuple(whole(one.moves) for one in policies)),
        Column(heading="REGRET", cells=tuple("-" if one is None else f"{one:.1%}" for one in regrets)),
    ]


def _turned(columns: list[Column]) -> list[Column]:
    """The same table with rows and columns changed."""
    head, *others = columns
    labels = Column(heading=head.heading, cells=tuple(one.heading for one in others), gap=0, left=True)
    turned = [
        Column(heading=name, cells=tuple(one.cells[index] for one in others)) for index, name in enumerate(head.cells)
    ]
    return [labels, *turned]


def _wait(score: Score, share: float) -> str:
    seconds = score.wait_s(share)
    return "-" if math.isnan(seconds) else wait(seconds)


def _legend(found: Backtested) -> Iterator[str]:
    yield _span_text(found)
    yield (
        "ATTAINED: requests within all targets. HELD: windows that kept them. LOST: research's work since its last "
        "checkpoint, in GPU-hours. REGRET: production GPU-hours over hindsight's"
    )
    if found.unscored:
        share = f"{found.unscored / found.intervals:.1%}".replace("%", " %")
        yield (f"{found.unscored:,} intervals ({share}) were not observed: replayed at interpolated rates, not scored")
    for policy in found.policies:
        for pool, nodes in policy.over_nodes.items():
            if nodes:
                yield (
                    f"{policy.name} needs {nodes} nodes of {pool} more than may stand in production; counted as if "
                    "they were there"
                )
    if found.policy(REACTIVE) is not None:
        yield "reactive: its nodes are there when its pods come; nobody waits for a move, and nothing goes wrong"
    ours = found.policy(EBBTIDE)
    if ours is not None and ours.shortages:
        first, *others = ours.shortages
        yield f"ebbtide, {first}" + (f"; and {len(others)} more (--json names them)" if others else "")


def _span_text(found: Backtested) -> str:
    """What was replayed, and what was left out of it."""
    zone = found.fleet.time_zone
    first, last = (_date(at, zone) for at in (found.tested[0].fold.start_s, found.tested[-1].fold.end_s - 1))
    troubles = "" if found.troubles == "none" else f", {found.troubles} troubles"
    if found.days == found.possible_days:
        stretches = len(found.tested)
        unit = found.unit if stretches == 1 else f"{found.unit}s"
        each = "" if stretches == 1 else "each "
        what = f"{stretches} {unit} replayed, {each}planned on all before it"
    else:
        days = "the last day" if found.days == 1 else f"the last {found.days} days"
        what = f"{days} of {found.possible_days} replayed, planned on all before"
        if found.chosen:
            what += f"; the demand is heavy: --days {found.possible_days} replays all"
    return f"{first} to {last}: {what}; seed {found.seed}{troubles}"


def _workload_table(found: Backtested, workload: str, paint: Paint) -> list[str]:
    rows = [
        (policy, label, score)
        for policy in found.policies
        for label, score in [("all", policy.of_workload(workload)), *policy.scores[workload].items()]
    ]
    names = [policy.name if label == "all" else "" for policy, label, _ in rows]
    columns = [
        Column(heading=elided([workload])[0], cells=tuple(names), gap=0, left=True),
        Column(heading="WINDOW", cells=tuple(elided([label for _, label, _ in rows])), gap=2, left=True),
        *(
            Column(heading=f"P{100 * share:g}", cells=tuple(_wait(score, share) for *_, score in rows))
            for share in _SHARES
        ),
        Column(heading="ATTAINED", cells=tuple(share_text(score.attained) for *_, score in rows)),
        Column(heading="HELD", cells=tuple(f"{score.held.sum()}/{score.cells.sum()}" for *_, score in rows)),
        Column(
            heading="GPU-H",
            cells=tuple(whole(policy.gpu_h[workload]) if label == "all" else "" for policy, label, _ in rows),
        ),
    ]
    heading, *lines = lines_of(columns)
    return [paint.bold(heading), *lines]


def _date(at_s: int, zone: str) -> str:
    return str(Instant.from_timestamp(at_s).to_tz(zone).date())


def _policy(found: Backtested, policy: PolicyScore) -> dict[str, object]:
    return {
        "name": policy.name,
        **_score(policy.score),
        "production_gpu_h": policy.production_gpu_h,
        "moving_gpu_h": policy.moving_gpu_h,
        "research_gpu_h": policy.research_gpu_h,
        "lost_gpu_h": policy.lost_gpu_h,
        "moves": policy.moves,
        "shortages": list(policy.shortages),
        "regret": found.regret(policy),
        "nodes_beyond_fleet": dict(policy.over_nodes),
        "notes": list(policy.notes),
    }


def _of_workload(policy: PolicyScore, workload: str) -> dict[str, object]:
    return {
        "policy": policy.name,
        **_score(policy.of_workload(workload)),
        "gpu_h": policy.gpu_h[workload],
        "windows": [{"window": label, **_score(score)} for label, score in policy.scores[workload].items()],
    }


def _score(score: Score) -> dict[str, object]:
    waits = {f"p{100 * share:g}_wait_s": _json(score.wait_s(share)) for share in _SHARES}
    return {
        **waits,
        "attained": _json(score.attained),
        "requests": int(score.requests.sum()),
        "windows_held": int(score.held.sum()),
        "windows_scored": int(score.cells.sum()),
    }


def _json(value: float) -> float | str | None:
    """A number, ``unstable`` for an infinite wait, None without requests."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "unstable"


def _span(found: Backtested) -> dict[str, object]:
    zone = found.fleet.time_zone

    def instant(at_s: int) -> str:
        return Instant.from_timestamp(at_s).to_tz(zone).to_fixed_offset().format_iso()

    return {
        "unit": found.unit,
        "stretches": [{"from": instant(one.fold.start_s), "until": instant(one.fold.end_s)} for one in found.tested],
        "days": found.days,
        "possible_days": found.possible_days,
        "intervals": found.intervals,
        "intervals_interpolated": found.unscored,
    }
