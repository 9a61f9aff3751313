"""Where a search starts when the Target does not say: a short ramp, and answers at idle to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.special import betainc

from ebbtide.adapters.documents.target_models import QualitySpec
from ebbtide.adapters.load.calls import Fault
from ebbtide.adapters.load.checks import Quality
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.adapters.load.evidence import RunFolder
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.preflight import idle_answers
from ebbtide.capacity.limits import Limit, judged
from ebbtide.capacity.quality import Pairs
from ebbtide.capacity.steps import SearchState
from ebbtide.errors import InputError
from ebbtide.workflows.measure_job import Job, wish_of
from ebbtide.workflows.measure_setup import limits_of
from ebbtide.workflows.measure_steps import Run, answers_of

# A ramp's stage: long enough that a service that can't follow shows it, short enough to cost next to nothing.
LEAST_STAGE_S, LEAST_STAGE_REQUESTS = 2.0, 20
RAMP_SHARE = 0.05  # of the budget
TOO_BAD = 3.0  # times what is allowed, and more than chance: the ramp has gone far enough
MOST_STAGES = 24
CERTAIN = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Which items were answered rightly at idle; only they can be compared (§M.6)."""

    right: dict[int, bool]


def anew(job: Job, folder: RunFolder, crew: Crew, told: Callable[[str], None]) -> tuple[Run, Baseline]:
    """A run without steps, told where to start, and the answers at idle; the folder is begun anew."""
    spec, idle, sent = job.document.spec, Baseline(right={}), 0
    if job.quality is not None:
        assert spec.quality is not None
        idle = baseline(job.endpoint, job.items, job.quality, spec.quality.idle, told)
    failing = idle_failure(idle, spec.quality)
    start_rps = spec.search.start
    if failing is not None:
        return Run(SearchState(wish=wish_of(job, start_rps or 1.0), done=failing)), idle
    if start_rps is None:
        start_rps, sent = ramp(
            crew,
            limits_of(spec),
            idle_s=job.idle_s,
            budget_requests=spec.search.requests,
            seed=spec.search.seed,
            told=told,
        )
    about = {
        "digest": job.document.digest,
        "start_rps": start_rps,
        "idle": [[item, right] for item, right in idle.right.items()],
        "sent": sent,
    }
    folder.begin(about)
    return Run(SearchState(wish=wish_of(job, start_rps)), sent=sent), idle


def ramp(
    crew: Crew, limits: Sequence[Limit], *, idle_s: float, budget_requests: int, seed: int, told: Callable[[str], None]
) -> tuple[float, int]:
    """The last rate of a doubling ramp that went well (or half the first), and the requests that it took.

    Only a place to start from: no figure of it goes into the claim.
    """
    rate, sent = 0.5 / max(idle_s, 1e-3), 0
    for stage in range(MOST_STAGES):
        requests = ceil(max(LEAST_STAGE_REQUESTS, rate * max(LEAST_STAGE_S, 2.0 * idle_s)))
        if sent + requests > RAMP_SHARE * budget_requests:
            break
        told(f"ramp: {rate:.3g} requests a second")
        crew.begin(rate, requests, (seed, 0, stage))
        calls = crew.decided().calls
        sent += requests
        answers = answers_of(calls, np.full(requests, -1, dtype=np.int8))
        if any(_too_bad(*judged(limit, answers), limit.bad_share) for limit in limits):
            crew.drained()
            return max(0.5 * rate, 1e-3), sent
        rate *= 2.0
    crew.drained()
    return rate, sent


def _too_bad(speaks: np.ndarray, bad: np.ndarray, allowed: float) -> bool:
    trials = int(speaks.sum())
    return trials > 0 and int(bad.sum()) > TOO_BAD * allowed * trials + 3.0


def baseline(
    endpoint: Endpoint, items: Sequence[Item], quality: Quality, count: int, told: Callable[[str], None]
) -> Baseline:
    """Answers at idle, checked. ``InputError`` where the checker itself breaks on the first of them."""
    asked = min(count, len(items))
    found = idle_answers(endpoint, items, max(asked, 1), lambda done: told(f"answers at idle: {done} of {asked}"))
    texts = [one.text if one.fault is Fault.NONE else None for one in found.calls]
    checked = quality.check.marks(*_answered(items, found.items, texts, quality))
    if len(checked) and bool((checked == 2).all()):
        why = getattr(quality.check, "example", "")
        raise InputError(f"the checker broke on the first answers: {why}", kind="checker_failed")
    places = [item for item, text in zip(found.items, texts, strict=True) if text is not None]
    return Baseline(right={item: int(mark) == 0 for item, mark in zip(places, checked, strict=True) if mark != 2})


def idle_failure(idle: Baseline, quality: QualitySpec | None) -> str | None:
    """Why no rate can hold the quality asked for; None where idle answers don't show that.

    Said only where so few right answers would come once in a thousand times of a service that just holds it.
    """
    if quality is None or not idle.right:
        return None
    count, right = len(idle.right), sum(idle.right.values())
    if float(betainc(count - right, right + 1.0, 1.0 - quality.required)) > CERTAIN or right == count:
        return None
    return (
        f"no rate holds it: at idle {right:,} of {count:,} answers were right ({right / count:.1%}), "
        f"{quality.required:.1%} are required"
    )


def _answered(
    items: Sequence[Item], places: Sequence[int], texts: Sequence[str | None], quality: Quality
) -> tuple[list[Item], list[str]]:
    from ebbtide.adapters.load.checks import answer_text

    pairs = [(items[place], text) for place, text in zip(places, texts, strict=True) if text is not None]
    return [item for item, _ in pairs], [answer_text(text, quality.spec.pointer) for _, text in pairs]


def pairs_of(idle: Baseline, items: np.ndarray, marks: np.ndarray) -> Pairs:
    """Prompts answered at idle and under load, each load answer paired with its prompt's at idle."""
    lost = gained = count = 0
    for item, mark in zip(items.tolist(), marks.tolist(), strict=True):
        before = idle.right.get(item)
        if before is None or mark < 0:
            continue
        count += 1
        lost += before and mark == 1
        gained += not before and mark == 0
    return Pairs(pairs=count, lost=lost, gained=gained)
