"""All of a measurement that is known before its first request in earnest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.load.checks import Quality, quality_of
from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.adapters.load.fingerprint import Seen, look
from ebbtide.adapters.load.gaps import Law
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.preflight import first_answers
from ebbtide.adapters.load.prompts import items_of
from ebbtide.capacity.steps import Wish
from ebbtide.errors import InputError
from ebbtide.workflows.measure_setup import endpoint_of, law_of, limits_of

FIRST_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """All that is known before the first step."""

    document: TargetDocument
    endpoint: Endpoint
    items: tuple[Item, ...]
    law: Law
    quality: Quality | None
    seen: Seen
    idle_s: float


def prepared(document: TargetDocument, told: Callable[[str], None]) -> Job:
    """Everything read, and the endpoint asked a few times: what is wrong shows before anything is sent in earnest."""
    endpoint, law = endpoint_of(document), law_of(document)
    if endpoint.credential is not None:
        endpoint.credential.header_value()
    told("asking the endpoint; its first answer may take a minute")
    seen = look(endpoint)
    model = model_of(document, seen)
    items = items_of(document, model=model)
    quality = quality_of(document, items)
    # The first request may load a model: it is given a minute, whatever the later ones are.
    idle = first_answers(replace(endpoint, timeout_s=max(endpoint.timeout_s, FIRST_S)), items)
    return Job(
        document=document,
        endpoint=endpoint,
        items=items,
        law=law,
        quality=quality,
        seen=seen,
        idle_s=idle.latency_s,
    )


def model_of(document: TargetDocument, seen: Seen) -> str | None:
    """The model that requests name: the Target's, or the endpoint's only one."""
    spec = document.spec.endpoint
    if spec.model is not None or spec.api == "http" or not seen.models:
        return spec.model
    if len(seen.models) > 1:
        message = f"the endpoint has several: {', '.join(seen.models[:8])}"
        raise InputError(message, kind="missing_field", place=document.place("endpoint.model"), hint="name one")
    return seen.models[0]


def wish_of(job: Job, start_rps: float) -> Wish:
    """What to find and what may be spent on it."""
    spec = job.document.spec
    return Wish(
        limits=limits_of(spec),
        start_rps=start_rps,
        budget_requests=spec.search.requests,
        budget_s=spec.search.time,
        tolerance=spec.search.tolerance,
        confidence=spec.search.confidence,
        least_step_s=spec.search.shortest_step,
    )
