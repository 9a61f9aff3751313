"""`ebbtide size --claim`: what n replicas hold by a claim, or how many a rate needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebbtide.adapters.documents.claim import read_claim
from ebbtide.errors import InputError, Place
from ebbtide.queueing.claimed import replicas_for

MOST_RPS = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What ``replicas`` hold by a claim, its targets met; ``least``: the fewest that hold the rate."""

    claim: str
    arrival_rate_rps: float
    replica_holds_rps: float
    replicas: int
    least: int

    @property
    def holds_rps(self) -> float:
        """The rate that they hold."""
        return self.replicas * self.replica_holds_rps

    @property
    def is_held(self) -> bool:
        """Whether the rate that arrives is held."""
        return self.replicas >= self.least


def held(claim_file: Path, *, arrival_rate_rps: float, replicas: int | None) -> Held:
    """By the claim in a file; ``replicas`` None: the fewest. Raises ``InputError`` for a wrong claim or number."""
    if not (math.isfinite(arrival_rate_rps) and 0.0 <= arrival_rate_rps <= MOST_RPS):
        message = f"must be a number from 0 to {MOST_RPS:g}, not {arrival_rate_rps:g}"
        raise InputError(message, kind="bad_arrival_rate_rps", place=Place(field="arrival_rate_rps"))
    if replicas is not None and replicas < 1:
        raise InputError(f"must be at least 1, not {replicas}", kind="bad_servers", place=Place(field="servers"))
    claim = read_claim(claim_file).claim
    least = int(replicas_for(np.array([arrival_rate_rps]), claim.sustained.low_rps)[0])
    return Held(
        claim=claim.name,
        arrival_rate_rps=arrival_rate_rps,
        replica_holds_rps=claim.sustained.low_rps,
        replicas=least if replicas is None else replicas,
        least=least,
    )
