"""Talk while a measurement runs: a line a finished step on stderr, and on a terminal the present step below."""

from __future__ import annotations

import sys
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ebbtide.capacity.verdict import Verdict
from ebbtide.cli.answers import say
from ebbtide.errors import one_line

if TYPE_CHECKING:
    from ebbtide.workflows.measure_steps import Progress

_WORDS = {
    Verdict.PASSES: "passes",
    Verdict.FAILS: "fails",
    Verdict.NEAR: "near the limit",
    Verdict.UNDECIDED: "not decided",
}


class MeasureTalk:
    """What a person sees of a run; used as a context."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._shown = False
        self._before = ""

    def __enter__(self) -> MeasureTalk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def told(self, text: str) -> None:
        """What happens before the first step: a line, in place on terminals where it counts (``what: how far``)."""
        if self._quiet:
            return
        if ":" not in text:
            self._clear()
            say(text)
        elif self._terminal:
            self._show(text)
        elif text.partition(":")[0] != self._before:
            self._before = text.partition(":")[0]
            say(self._before + " …")

    def watch(self, progress: Progress) -> None:
        """A step under way, or a finished one."""
        if self._quiet:
            return
        if progress.over:
            self._clear()
            say(finished_line(progress))
        elif self._terminal:
            self._show(present_line(progress))

    def stopped(self, *folders: Path) -> None:
        """After Ctrl-C: where the finished steps are."""
        self._clear()
        kept = sum(len(list(folder.glob("*.parquet"))) for folder in folders)
        if kept and not self._quiet:
            where = " and ".join(one_line(str(folder)) for folder in folders)
            say(f"{kept} finished steps are kept in {where}; go on with --resume")

    def _show(self, text: str) -> None:
        sys.stderr.write("\r\x1b[K" + text[:160])
        sys.stderr.flush()
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


def present_line(progress: Progress) -> str:
    """The step under way.

    The rate, what is sent of it, what is under way.
    """
    plan, beat = progress.plan, progress.beat
    sent = min(beat.sent, plan.requests)
    return (
        f"{_which(progress)}: {plan.rate_rps:.4g}/s, {sent:,} of {plan.requests:,} sent, "
        f"{beat.in_flight:,} under way; {_left(progress)}"
    )


def finished_line(progress: Progress) -> str:
    """A finished step: its rate, its verdict, the worst limit, and what is left."""
    plan, state = progress.plan, progress.state
    head = f"{_which(progress)}: {plan.rate_rps:.4g}/s, {plan.requests:,} requests"
    if progress.void is not None:
        return f"{head}: void, {progress.void}"
    step = state.steps[-1]
    shares = [
        (one.bad / one.trials / limit.bad_share, limit.name, one.bad / one.trials, limit.bad_share)
        for limit, one in zip(state.wish.limits, step.measured.scatters, strict=True)
        if one.trials
    ]
    worst = max(shares, default=None)
    said = "measured" if plan.purpose.value == "block" else _WORDS[step.measured.verdict]
    bad = "" if worst is None else f" ({worst[1]}: {100 * worst[2]:.2g} % bad, {100 * worst[3]:.2g} % allowed)"
    return f"{head}: {said}{bad}; {_left(progress)}"


def _which(progress: Progress) -> str:
    return f"{progress.side} step {progress.number}".lstrip()


def _left(progress: Progress) -> str:
    from ebbtide.capacity.budget import forecast

    if progress.state.done is not None:
        return progress.state.done
    ahead = forecast(progress.state)
    minutes = [max(1, ceil(one / 60.0)) for one in (ahead.least_s, ahead.most_s)]
    if ahead.least_requests == ahead.most_requests:
        return f"at most {ahead.most_requests:,} requests and {minutes[1]} min left"
    return f"{ahead.least_requests:,} to {ahead.most_requests:,} requests, {minutes[0]} to {minutes[1]} min left"
