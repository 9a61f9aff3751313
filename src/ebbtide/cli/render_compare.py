"""A comparison's answer as text and as JSON."""

from __future__ import annotations

from math import exp, isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebbtide.capacity.around import Interval
    from ebbtide.workflows.measure_compare import Compared, MeasuredSide


def compared_text(found: Compared) -> str:
    """The ratio, both rates, what is known to differ, what was spent."""
    first, second = found.sides
    lines = [_headline(found)]
    lines += [_side(side) for side in (first, second)]
    if found.changed:
        lines.append("known to differ: " + "; ".join(found.changed))
    requests = sum(side.found.requests for side in found.sides)
    minutes = sum(side.found.seconds for side in found.sides) / 60.0
    lines.append(
        f"{requests:,} requests in {minutes:.1f} min, by turns (A B B A), with the same arrivals for both"
        + ("" if found.resolved else f"; unresolved: ±{found.tolerance:.1%} was wished for")
    )
    return "\n".join(lines)


def compared_json(found: Compared) -> dict[str, Any]:
    """One object, snake_case with units; an end that is not bounded is null."""
    ratio = found.ratio
    return {
        "ratio": None if ratio is None else ratio.ratio,
        "low": None if ratio is None or ratio.low <= 0.0 else ratio.low,
        "high": None if ratio is None or not isfinite(ratio.high) else ratio.high,
        "confidence": found.confidence,
        "differs": ratio is not None and ratio.differs,
        "resolved": found.resolved,
        "first": _side_json(found.sides[0]),
        "second": _side_json(found.sides[1]),
        "changed": list(found.changed),
        "warnings": list(found.warnings),
        "written": [str(path) for path in found.written],
    }


def _headline(found: Compared) -> str:
    first, second = (side.name for side in found.sides)
    ratio = found.ratio
    if ratio is None:
        return f"{first} against {second}: no ratio yet: more requests or time are needed"
    ends = f"{ratio.low:.3g} to {ratio.high:.3g} at {found.confidence:.0%} confidence"
    if ratio.differs:
        return f"{first} holds {ratio.ratio:.3g} times what {second} holds ({ends})"
    return f"no difference shown between {first} and {second}: {ratio.ratio:.3g} times ({ends})"


def _side(side: MeasuredSide) -> str:
    interval = side.found.interval
    if interval is None:
        return f"  {side.name}: no rate has a bound on both sides yet"
    low, high = _end(interval.low), _end(interval.high)
    said = f"{'?' if low is None else f'{low:.4g}'} to {'?' if high is None else f'{high:.4g}'} requests a second"
    each = "" if side.document.spec.replicas == 1 else f" ({side.document.spec.replicas} replicas)"
    return f"  {side.name}: {said}{each}, limited by {_limited_by(side, interval)}"


def _side_json(side: MeasuredSide) -> dict[str, Any]:
    interval = side.found.interval
    return {
        "name": side.name,
        "low_rps": None if interval is None else _end(interval.low),
        "high_rps": None if interval is None else _end(interval.high),
        "replicas": side.document.spec.replicas,
        "limited_by": None if interval is None else _limited_by(side, interval),
        "requests": side.found.requests,
        "steps": len(side.run.steps),
        "void_steps": side.run.state.voids,
    }


def _limited_by(side: MeasuredSide, interval: Interval) -> str:
    return side.run.state.wish.limits[interval.limit].name


def _end(end: float) -> float | None:
    return exp(end) if isfinite(end) else None
