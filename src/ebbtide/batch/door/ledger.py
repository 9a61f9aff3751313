"""What each team's jobs were said to take, and what they took: estimates are corrected by it (§7.1).

What belongs here: the record and what follows from it. What doesn't: when a run ended (``adapters``), where it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ebbtide.batch.durations import Duration, duration_of_past

KEPT = 40  # runs of a team: the last weeks of most, and a record that stays small
ENOUGH = 5  # runs before an estimate is corrected by them: fewer say more of one job than of its team
LARGEST = 4.0  # no correction by more than this, up or down: beyond it something else is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run that succeeded. ``said_s``: the expected duration that its owner gave; None: none."""

    uid: str
    team: str
    said_s: float | None
    real_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The last runs of every team, by team and end."""

    runs: tuple[Ran, ...] = ()

    @property
    def uids(self) -> frozenset[str]:
        """Of the runs that are in it."""
        return frozenset(one.uid for one in self.runs)

    def of(self, team: str) -> tuple[Ran, ...]:
        """The runs of one team, the last one at the end."""
        return tuple(one for one in self.runs if one.team == team)

    def usual(self, team: str) -> Duration | None:
        """What runs of the team usually take; None where too few are known."""
        real = [one.real_s for one in self.of(team)]
        return duration_of_past(real) if len(real) >= ENOUGH else None

    def corrected(self, team: str, said: Duration) -> Duration:
        """An estimate as the team's runs make it likely: the median and the 90th percentile of real over said.

        >>> runs = [Ran(uid=str(k), team="t", said_s=100.0, real_s=150.0, ended_s=k) for k in range(9)]
        >>> Ledger(runs=tuple(runs)).corrected("t", Duration.usual(60.0))
        Duration(expected_s=90.0, p90_s=90.0)
        >>> Ledger().corrected("t", Duration.usual(60.0)).expected_s
        60.0
        """
        ratios = [
            min(max(one.real_s / one.said_s, 1.0 / LARGEST), LARGEST) for one in self.of(team) if one.said_s is not None
        ]
        if len(ratios) < ENOUGH:
            return said
        factor = duration_of_past(ratios)
        return Duration(expected_s=said.expected_s * factor.expected_s, p90_s=said.expected_s * factor.p90_s)

    def told(self, runs: Iterable[Ran]) -> Ledger:
        """With these runs, each once; of every team the last ones are kept."""
        found = {one.uid: one for one in (*self.runs, *runs) if one.real_s > 0.0}
        ordered = sorted(found.values(), key=lambda one: (one.team, one.ended_s, one.uid))
        kept = [list(group)[-KEPT:] for _, group in groupby(ordered, key=attrgetter("team"))]
        return Ledger(runs=tuple(one for group in kept for one in group))
