"""What a Target's and a claim's latency bounds mean."""

from __future__ import annotations

from ebbtide.adapters.documents.target_models import BoundSpec
from ebbtide.capacity.limits import LATENCY


def bound_of(bound: BoundSpec) -> tuple[str, float]:
    """The one metric that a checked bound gives, as documents call it, and its seconds."""
    return next((name, value) for name, value in bounds_of(bound).items() if value is not None)


def bounds_of(bound: BoundSpec) -> dict[str, float | None]:
    """All four metrics; None where not given."""
    return {
        LATENCY: bound.latency,
        "firstToken": bound.first_token,
        "betweenTokens": bound.between_tokens,
        "longestGap": bound.longest_gap,
    }
