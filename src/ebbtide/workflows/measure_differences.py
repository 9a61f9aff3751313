"""Two Targets side by side: what they run that is known to differ, and what makes their ratio one of unlike things."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from ebbtide.adapters.documents.claim_values import claim_field
from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.documents.target_models import QualitySpec
from ebbtide.adapters.load.fingerprint import fingerprint
from ebbtide.adapters.load.prompts import items_of
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.workflows.measure_job import Job, model_of
from ebbtide.workflows.measure_setup import limits_of

Given = tuple[TargetDocument, TargetDocument]


def sides_named(given: Given) -> tuple[str, str]:
    """The Targets' names; where they are equal, the files'; where these are too, which came first."""
    for names in ([one.name for one in given], [Path(one.path).stem for one in given]):
        if names[0] != names[1]:
            return names[0], names[1]
    return "first", "second"


def changed(first: Job, second: Job) -> tuple[str, ...]:
    """Fields of hardware and settings that both sides know and that differ, as `field first → second`."""
    seen = [_seen(job) for job in (first, second)]
    pairs = [(one.name, *(getattr(side, one.name) for side in seen)) for one in fields(Fingerprint)]
    return tuple(
        f"{claim_field(name)} {before} → {after}"
        for name, before, after in pairs
        if before is not None and after is not None and before != after
    )


def cautions(given: Given, first: Job, second: Job) -> tuple[str, ...]:
    """Why the ratio is not of the settings alone: other requests, other times, other limits, other effort."""
    return tuple(_cautions(given, first, second))


def _cautions(given: Given, first: Job, second: Job) -> Iterator[str]:
    one, two = given[0].spec, given[1].spec
    if limits_of(one) != limits_of(two) or (one.quality is None) != (two.quality is None):
        yield "the two must hold different targets: the ratio is not of the settings alone"
    elif one.quality is not None and two.quality is not None and _check(one.quality) != _check(two.quality):
        yield "the two check quality differently: the ratio is not of the settings alone"
    if _bodies(given[0]) != _bodies(given[1]):
        yield "the two are sent different requests: the ratio is of the mixes too"
    if (first.law.arrivals, first.law.scv) != (second.law.arrivals, second.law.scv) or not _same_gaps(first, second):
        yield "the two have different arrivals: the ratio is of these too"
    if one.endpoint.stream != two.endpoint.stream:
        yield "only one of the two streams its answers"
    if one.replicas != two.replicas:
        yield f"{one.replicas} replicas against {two.replicas}: the ratio is of a replica's rates"
    others = {name: getattr(two.search, name) for name in ("requests", "time", "tolerance", "confidence", "seed")}
    if any(value != getattr(one.search, name) for name, value in others.items()):
        yield f"{given[1].path.name} asks for another search; that of {given[0].path.name} is made for both"


def _seen(job: Job) -> Fingerprint:
    spec = job.document.spec
    return fingerprint(job.seen, spec.hardware, spec.settings, model_of(job.document, job.seen))


def _check(quality: QualitySpec) -> dict[str, Any]:
    return quality.model_dump(exclude={"idle", "sample"})


def _bodies(document: TargetDocument) -> list[tuple[bytes, str]]:
    """What is sent, whatever the models are called."""
    return [(item.body, item.content_type) for item in items_of(document, model="model")]


def _same_gaps(first: Job, second: Job) -> bool:
    gaps = first.law.gaps, second.law.gaps
    if gaps[0] is None or gaps[1] is None:
        return gaps[0] is gaps[1]
    return len(gaps[0]) == len(gaps[1]) and bool((gaps[0] == gaps[1]).all())
