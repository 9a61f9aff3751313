"""A measurement's answer as text and as JSON."""

from __future__ import annotations

from math import exp, isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebbtide.workflows.measure import Measured


def measured_text(found: Measured) -> str:
    """The rate, what limits it, what it stands on."""
    lines = []
    claim = found.claim
    if claim is None:
        more = "no rate has a bound on both sides yet: more requests or time are needed"
        lines.append(found.found.reason if not found.run.steps else more)
    else:
        held = claim.sustained
        half = (held.high_rps - held.low_rps) / (held.high_rps + held.low_rps)
        lines.append(
            f"{claim.name} holds {held.low_rps:.4g} to {held.high_rps:.4g} requests a second{_each(held.replicas)} "
            f"(±{half:.1%}, {found.run.state.wish.confidence:.0%} confidence)"
            + ("" if claim.resolved else ", unresolved")
        )
        lines.append(f"limited by {held.limited_by}; planning uses {held.low_rps:.4g}")
        effort = claim.effort
        lines.append(
            f"{found.found.requests:,} requests in {effort.measured_s / 60.0:.1f} min, "
            f"{effort.effective:,.0f} effective around the answer; "
            f"no disturbance longer than {effort.longest_disturbance_s:.0f} s would have been seen"
        )
        if claim.quality is not None:
            quality = claim.quality
            lines.append(
                f"quality ({quality.check}): {quality.low:.2%} to {quality.high:.2%} right at the answer, "
                f"{quality.required:.2%} required"
            )
    if found.comparison is not None:
        pairs, against = found.comparison
        lines.append(
            f"against idle: {against.shown} ({pairs.lost} of {pairs.pairs:,} lost, {pairs.gained} gained"
            + (f"; {against.needed_pairs:,} pairs would show it" if against.shown.value == "not shown" else "")
            + ")"
        )
    faults = ", ".join(f"{fault.words}: {detail}" for fault, detail in found.run.details.items())
    if faults:
        lines.append(f"seen: {faults}")
    return "\n".join(lines)


def measured_json(found: Measured) -> dict[str, Any]:
    """One object, snake_case with units; what is not known is null. ``low_rps``, ``high_rps``: of all replicas."""
    claim, interval = found.claim, found.found.interval
    low, high = (None, None) if interval is None else (_bound(interval.low), _bound(interval.high))
    return {
        "name": found.document.name,
        "resolved": found.found.resolved,
        "reason": found.found.reason,
        "low_rps": low,
        "high_rps": high,
        "replicas": found.document.spec.replicas,
        "replica_low_rps": None if claim is None else claim.sustained.low_rps,
        "limited_by": None if claim is None else claim.sustained.limited_by,
        "requests": found.found.requests,
        "steps": len(found.run.steps),
        "void_steps": found.run.state.voids,
        "against_idle": None if found.comparison is None else found.comparison[1].shown.value,
        "warnings": list(found.warnings),
        "written": [str(path) for path in found.written],
    }


def _each(replicas: int) -> str:
    return "" if replicas == 1 else f" a replica, of {replicas} measured together"


def _bound(end: float) -> float | None:
    return exp(end) if isfinite(end) else None
