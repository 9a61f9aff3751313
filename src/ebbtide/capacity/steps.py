"""What the search asks of a driver, what it gets back, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ebbtide.capacity.batches import Batches
from ebbtide.capacity.limits import Answers, Limit
from ebbtide.capacity.verdict import Measured


class Purpose(StrEnum):
    """Why a step is made: for a verdict, or as a block of the fit around the crossing."""

    BRACKET = "bracket"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to find, and what may be spent on it. ``tolerance`` is the interval's half-width as a share of the rate.

    ``least_step_s``: a step's first look comes no earlier. ``budget_s`` None: the requests alone bound the run.
    ``ends_at_tolerance`` False: the search goes on to its budget, for somebody else decides when it is enough.
    """

    limits: tuple[Limit, ...]
    start_rps: float
    budget_requests: int
    budget_s: float | None = None
    tolerance: float = 0.05
    confidence: float = 0.95
    least_step_s: float = 20.0
    ends_at_tolerance: bool = True

    def __post_init__(self) -> None:
        if not self.limits:
            raise ValueError("a sustained rate needs at least one limit")
        if self.start_rps <= 0.0 or self.budget_requests < 1 or not 0.0 < self.tolerance < 1.0:
            raise ValueError(f"not to be searched: {self.start_rps}, {self.budget_requests}, {self.tolerance}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """Send Poisson (or the chosen) arrivals at ``rate_rps`` until the step has ``requests`` intended ones.

    ``continues``: the step before goes on without a pause; ``requests`` counts from its beginning. ``drain``: first
    wait until everything sent before is answered. ``warm_up_requests`` of them, or more, will not be measured.
    """

    rate_rps: float
    requests: int
    purpose: Purpose
    continues: bool = False
    drain: bool = False
    warm_up_requests: int = 0

    @property
    def duration_s(self) -> float:
        """How long the whole step takes."""
        return self.requests / self.rate_rps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """All of a step's intended requests so far, from its beginning; ``void`` says why it was not offered as planned."""

    plan: StepPlan
    answers: Answers
    void: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A finished step: its sums by limit, warm-up included, and what was measured."""

    plan: StepPlan
    whole: tuple[Batches, ...]
    measured: Measured


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchState:
    """Everything that is known: a run can stop here and go on anywhere, from the steps' answers alone.

    ``open`` is the step under way, looked at ``looks`` times; the interval is looked at again
    after ``blocks_wanted`` requests of blocks; ``done`` says why the search is over.
    """

    wish: Wish
    steps: tuple[Step, ...] = ()
    open: Step | None = None
    looks: int = 0
    voids: int = 0
    spent_requests: int = 0
    spent_s: float = 0.0
    blocks_wanted: int = 0
    done: str | None = None
