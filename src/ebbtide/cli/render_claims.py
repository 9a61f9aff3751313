"""The answer of ``ebbtide claims check`` as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ebbtide.cli.columns import WIDTH
from ebbtide.errors import one_line
from ebbtide.workflows.claims_check import CheckedClaim


def checked_text(found: Sequence[CheckedClaim], *, width: int = WIDTH) -> str:
    """A block for each claim: what it says, then each check with its answer."""
    return "\n\n".join("\n".join(_block(one, width)) for one in found)


def _block(found: CheckedClaim, width: int) -> list[str]:
    claim, lines = found.document.claim, []
    head = f"{one_line(str(found.document.path))}: {claim.name} holds {claim.sustained.low_rps:.4g} rps a replica"
    lines += textwrap.wrap(
        f"{head}, measured {claim.measured_at.date()}", width, subsequent_indent="  ", break_long_words=False
    )
    for check in found.checks:
        lines += textwrap.wrap(
            f"  {check.answer:<8}{check.about:<10}{one_line(check.said)}",
            width,
            subsequent_indent=" " * 20,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def checked_json(found: Sequence[CheckedClaim]) -> dict[str, Any]:
    """``claims``, each with its ``checks``; ``stands``: no check said no."""
    return {
        "stands": all(one.stands for one in found),
        "claims": [
            {
                "file": str(one.document.path),
                "name": one.document.claim.name,
                "sha256": one.document.sha256,
                "low_rps": one.document.claim.sustained.low_rps,
                "measured_at": str(one.document.claim.measured_at),
                "valid_until": str(one.document.claim.valid_until),
                "stands": one.stands,
                "checks": [
                    {"about": check.about, "answer": check.answer.value, "said": check.said} for check in one.checks
                ],
            }
            for one in found
        ],
    }
