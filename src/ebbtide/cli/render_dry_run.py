"""A dry run as text and JSON."""

from __future__ import annotations

import textwrap
from typing import Any

from ebbtide.cli.columns import terminal_width
from ebbtide.control.actions import Action, Why
from ebbtide.workflows.dry_run import DryRun
from ebbtide.workflows.run_record import action_plain


def dry_run_text(found: DryRun) -> str:
    """What would be done, in order, and what not; each with its rule."""
    decision = found.decision
    lines = [f"{decision.phase}, window {decision.window or '-'}; nothing was written"]
    if not found.answers:
        lines.append("nothing to do")
    for one in found.answers:
        lines += _entry(str(one.result), f"{_named(one.action)}: {_because(one.action.why)}")
        lines += [line for problem in one.problems for line in _entry("", str(problem))]
    for left in decision.withheld:
        lines += _entry("withheld", f"{left.what}: {_because(left.why)}")
    return "\n".join(lines)


def _entry(word: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, width=terminal_width(), initial_indent=f"{word:<10}", subsequent_indent=" " * 10, break_long_words=False
    )


def _because(why: Why) -> str:
    return f"{why.text} ({why.rule})"


def _named(action: Action) -> str:
    """`Cordon side=production node=a`."""
    plain = action_plain(action)
    return " ".join([type(action).__name__, *(f"{name}={value}" for name, value in plain.items())])


def dry_run_json(found: DryRun) -> dict[str, Any]:
    """The same for scripts."""
    decision = found.decision
    return {
        "phase": decision.phase,
        "window": decision.window,
        "actions": [
            {
                "kind": type(one.action).__name__,
                **action_plain(one.action),
                "rule": one.action.why.rule,
                "why": one.action.why.text,
                "result": str(one.result),
                "problems": [str(problem) for problem in one.problems],
            }
            for one in found.answers
        ],
        "withheld": [{"what": one.what, "rule": one.why.rule, "why": one.why.text} for one in decision.withheld],
        "shortages": dict(decision.shortages),
    }
