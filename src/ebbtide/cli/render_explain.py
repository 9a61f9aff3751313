"""The answer of ``ebbtide explain`` as text of at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from ebbtide.adapters.report.figures import figure
from ebbtide.cli.columns import WIDTH
from ebbtide.fleet.horizon import hours_label
from ebbtide.fleet.schedule import Standing
from ebbtide.fleet.workload import Target
from ebbtide.units import format_duration
from ebbtide.workflows.explain import Answer, Answers

_LABELS = ("floor", "last given", "refused")
# What held the number, by the word in the document.
_HELD = {
    "target": "target: one fewer misses it",
    "floor": "floor: fewer are not stable",
    "minimum": "minimum: the Fleet asks for so many",
    "maximum": "maximum: the Fleet allows no more",
    "gain": "gain: the last one pays for its GPUs",
    "room": "room: GPUs were left on its nodes",
    "move": "move: moving nodes would cost more",
    "shortage": "shortage: the pool has no more GPUs",
}


def explain_text(answers: Answers, *, width: int = WIDTH) -> str:
    """A block for each answer: what was given, what the floor, the last one given and the first refused do, and what
    held the number."""
    blocks = [
        "\n".join([*_head(answer, width), *_rows(answer, width), *_held_by(answer, width), *_edited(answer, width)])
        for answer in answers.answers
    ]
    return "\n\n".join(blocks) + "\n"


def _head(answer: Answer, width: int) -> list[str]:
    gpus = "" if answer.gpus is None else f", {_many(answer.gpus, 'GPU')}"
    target = "" if answer.target is None else f"; target {_target(answer.target)}"
    return _wrapped(
        f"{answer.workload} {hours_label(answer.window)}: {_many(answer.replicas, 'replica')}{gpus}, "
        f"for {_demand(answer)}{target}",
        width,
        indent="  ",
    )


def _demand(answer: Answer) -> str:
    """The mean rate and, where more was planned for, the highest: it is the one that the replicas are held against."""
    mean, peak = figure(answer.reason.rate_rps), figure(answer.reason.peak_rps)
    return f"{mean} rps" if peak == mean else f"{mean} rps, up to {peak}"


def _target(target: Target) -> str:
    return f"{_percentile(target)} {target.kind.value} {format_duration(target.bound_s)}"


def _percentile(target: Target | None) -> str:
    return "wait" if target is None else f"P{target.percentile * 100:.6g}"


def _rows(answer: Answer, width: int) -> list[str]:
    """Aligned lines, narrower where they would not fit; a verdict that still passes the width gets its own line."""
    for gap in ("   ", "  "):
        lines = [(left, verdict) for left, verdict in _columns(answer, gap)]
        if all(len(left) + len(gap) + len(verdict) <= width for left, verdict in lines):
            break
    rows = [line for left, verdict in lines for line in _joined(left, verdict, gap, width)]
    return rows + (["  refused     none: this is the maximum"] if answer.reason.refused is None else [])


def _joined(left: str, verdict: str, gap: str, width: int) -> list[str]:
    line = f"{left}{gap}{verdict}".rstrip()
    return [line] if len(line) <= width else [left, *_wrapped(f"    {verdict}", width, indent="    ")]


def _columns(answer: Answer, gap: str) -> Iterator[tuple[str, str]]:
    """Each line's figures, aligned, and its verdict."""
    standings = [
        (label, standing, verdict)
        for label, standing, verdict in zip(_LABELS, _standings(answer), _verdicts(answer), strict=True)
        if standing is not None
    ]
    counts = [f"{standing.replicas:,}" for _, standing, _ in standings]
    waits = [_wait(standing.wait_s) for _, standing, _ in standings]
    waiting = [_waiting(standing.waiting) for _, standing, _ in standings]
    held = answer.replica_holds_rps
    for index, (label, _, verdict) in enumerate(standings):
        if held is not None:
            holds = f"holds {_right([f'{figure(one.replicas * held)} rps' for _, one, _ in standings], index)}"
            yield gap.join([f"  {label:<10}  {_right(counts, index)}", holds]), verdict
            continue
        wait = f"{_percentile(answer.target)} {_right(waits, index)}"
        yield gap.join([f"  {label:<10}  {_right(counts, index)}", wait, f"{_right(waiting, index)} waiting"]), verdict


def _standings(answer: Answer) -> tuple[Standing | None, ...]:
    has_floor = answer.replica_holds_rps is None and answer.reason.floor.replicas != answer.reason.given.replicas
    floor = answer.reason.floor if has_floor else None
    return floor, answer.reason.given, answer.reason.refused


def _verdicts(answer: Answer) -> tuple[str, str, str]:
    reason = answer.reason
    floor, given = _meets(answer.meets(reason.floor)), _meets(answer.meets(reason.given))
    # Fewer than the floor are explained without it: then both are the given count, and the target is missed.
    is_floor = reason.floor.replicas == reason.given.replicas and answer.replica_holds_rps is None
    if is_floor and answer.meets(reason.given) is not False:
        given += ", is the floor" if given else "is the floor"
    return floor, given, _refused(answer)


def _refused(answer: Answer) -> str:
    refused = answer.reason.refused
    if refused is None:
        return ""
    if answer.reason.bound == "shortage":
        return f"{_meets(answer.meets(refused)) or 'refused'}; no GPUs are left"
    saves = f"saves {_money(refused.gain_usd_per_h)} {answer.money}/h"
    return f"{saves}, research: {_money(answer.reason.cost_usd_per_h)}"


def _held_by(answer: Answer, width: int) -> list[str]:
    reason = answer.reason
    given, least = reason.given.replicas, reason.least_replicas
    if not given and not least and reason.bound != "shortage":
        return ["  held by     no requests: none were seen in this window"]
    told = [_HELD[reason.bound]]
    if least is not None and least < given:
        told.append(f"{least:,} {'meets' if least == 1 else 'meet'} the target" if least else "the target needs none")
    if least is not None and least > given:
        told.append(f"{least:,} would meet the target")
    if _is_worth_more(answer):
        told.append("one more would take another node")
    lines = _wrapped(f"  held by     {'; '.join(told)}", width, indent=" " * 14)
    if answer.replica_holds_rps is None:
        return lines
    says = f"a replica holds {figure(answer.replica_holds_rps)} rps; waits are not observed"
    return [*lines, *_wrapped(f"  claim       {says}", width, indent=" " * 14)]


def _is_worth_more(answer: Answer) -> bool:
    """Whether the refused replica saves more than its own GPUs are worth: then whole nodes are why it was refused."""
    refused, bound = answer.reason.refused, answer.reason.bound
    is_open = refused is not None and bound not in ("shortage", "move")
    return is_open and refused is not None and refused.gain_usd_per_h > answer.reason.cost_usd_per_h


def _meets(meets: bool | None) -> str:
    return "" if meets is None else "meets the target" if meets else "misses the target"


def _edited(answer: Answer, width: int) -> list[str]:
    if not answer.edited:
        return []
    was = answer.reason.given.replicas
    return _wrapped(
        f"  the schedule was edited: it was made with {_many(was, 'replica')}, which is what is explained",
        width,
        indent="  ",
    )


def _right(cells: list[str], index: int) -> str:
    return cells[index].rjust(max(len(cell) for cell in cells))


def _wait(seconds: float) -> str:
    """``0.9s``, ``71s``, ``40ms``, ``unstable``."""
    if not math.isfinite(seconds):
        return "unstable"
    if 0 < seconds < 0.05:
        return f"{seconds * 1000:.2g}ms"
    return "0s" if seconds == 0 else f"{seconds:,.1f}s" if seconds < 9.95 else f"{seconds:,.0f}s"


def _waiting(requests: float) -> str:
    if not math.isfinite(requests):
        return "unlimited"
    if 0 < requests < 0.05:
        return "<0.1"
    return f"{requests:,.1f}" if requests < 99.95 else f"{requests:,.0f}"


def _money(value: float) -> str:
    if 0 < value < 0.005:
        return "<0.01"
    return f"{value:,.2f}" if value < 999.995 else f"{value:,.0f}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _wrapped(text: str, width: int, *, indent: str) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
