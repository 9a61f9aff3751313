"""`ebbtide measure`: from a Target to a claim with its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, isfinite
from pathlib import Path

import numpy as np

from ebbtide.adapters.documents.claim import claim_output
from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.target import TargetDocument, read_target
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.evidence import RunFolder, parquet, sha256
from ebbtide.adapters.load.fingerprint import fingerprint
from ebbtide.adapters.load.messages import Setup
from ebbtide.adapters.report.measurement import render_measurement
from ebbtide.capacity.budget import forecast
from ebbtide.capacity.claim import CapacityClaim
from ebbtide.capacity.quality import Comparison, Pairs, compared
from ebbtide.capacity.search import Found, outcome
from ebbtide.errors import InputError, Place
from ebbtide.workflows.measure_claim import buffered, claim_of, near_steps, now
from ebbtide.workflows.measure_job import Job, model_of, prepared, wish_of
from ebbtide.workflows.measure_page import page_of
from ebbtide.workflows.measure_start import Baseline, anew, pairs_of
from ebbtide.workflows.measure_steps import Measuring, Progress, Run, Watch, replayed

MOST_BUFFERED = 0.5
MOST_PROCESSES = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """What a measurement found and wrote; ``claim`` None: no rate has a bound on both sides yet."""

    document: TargetDocument
    found: Found
    run: Run
    claim: CapacityClaim | None
    comparison: tuple[Pairs, Comparison] | None
    warnings: tuple[str, ...]
    written: tuple[Path, ...]


def silent(progress: Progress) -> None:
    """The watch of a caller that does not want to be told."""


def unspoken(text: str) -> None:
    """The same of what is said before the first step."""


def measure(
    target_file: Path,
    output: Path,
    *,
    processes: int = 1,
    resume: bool = False,
    watch: Watch = silent,
    told: Callable[[str], None] = unspoken,
) -> Measured:
    """Measure the Target in a file; writes the claim, its evidence (.parquet) and its page (.html) beside each other.

    Finished steps are kept in ``<output>.steps`` until the claim is written, and ``resume`` goes on from there.
    Raises ``InputError`` for a wrong Target, ``WorldError`` for an endpoint that does not answer or a rate that can't
    be offered from here.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise InputError(f"--processes is {processes}; from 1 to {MOST_PROCESSES}", kind="out_of_range")
    document = read_target(target_file)
    outputs = {kind: output.with_suffix(f".{kind}") for kind in ("parquet", "html")}
    for path in (output, outputs["html"]):
        refuse_foreign(path)
    folder = RunFolder(output.with_suffix(".steps"))
    job = prepared(document, told)
    try:
        run, idle = _begun(job, folder, processes=processes, resume=resume, watch=watch, told=told)
    finally:
        if job.quality is not None:
            job.quality.check.close()
    return _written(job, run, idle, output, outputs, folder)


def _begun(
    job: Job, folder: RunFolder, *, processes: int, resume: bool, watch: Watch, told: Callable[[str], None]
) -> tuple[Run, Baseline | None]:
    setup = Setup(endpoint=job.endpoint, items=job.items, law=job.law, keep_texts=job.quality is not None)
    about = folder.about()
    if resume and about is None:
        raise InputError("there is no run to go on with", kind="no_run", place=Place(file=str(folder.path)))
    if resume and about is not None and about["digest"] != job.document.digest:
        message = f"was begun with another {job.document.path.name}; what is kept is of the old one"
        raise InputError(
            message, kind="other_target", place=Place(file=str(folder.path)), hint="begin without --resume"
        )
    with Crew(setup, processes=processes) as crew:
        if resume and about is not None:
            run = replayed(wish_of(job, about["start_rps"]), folder.steps())
            run.sent = about["sent"]
            idle = Baseline(right={int(item): bool(right) for item, right in about["idle"]})
        else:
            run, idle = anew(job, folder, crew, told)
        told(_ahead(run))
        Measuring(
            crew,
            folder,
            run,
            items=job.items,
            quality=job.quality,
            seed=job.document.spec.search.seed,
            watch=watch,
        ).to_the_end()
    return run, idle if job.quality is not None else None


def _ahead(run: Run) -> str:
    """What the run is likely to cost, told before it (§M.4)."""
    state = run.state
    if state.done is not None:
        return state.done
    ahead, rate = forecast(state), state.wish.start_rps
    minutes = [max(1, round(one / 60.0)) for one in (ahead.least_s, ahead.most_s)]
    return (
        f"likely {ahead.least_requests:,} to {ahead.most_requests:,} requests, at most {state.wish.budget_requests:,}; "
        f"{minutes[0]} to {minutes[1]} min at {rate:.3g} a second, less if it holds more"
    )


def _written(
    job: Job, run: Run, idle: Baseline | None, output: Path, others: dict[str, Path], folder: RunFolder
) -> Measured:
    found = outcome(run.state)
    content = parquet(run.steps) if run.steps else b""
    evidence = others["parquet"], sha256(content)
    model = model_of(job.document, job.seen)
    seen = fingerprint(job.seen, job.document.spec.hardware, job.document.spec.settings, model)
    caveats = tuple(_caveats(run, found))
    claim = claim_of(
        job.document,
        run,
        found,
        fingerprint=seen,
        law=job.law,
        evidence=evidence,
        at=now(),
        warnings=caveats,
    )
    comparison = _compared(run, found, idle)
    if not run.steps:
        return Measured(
            document=job.document,
            found=found,
            run=run,
            claim=None,
            comparison=None,
            warnings=(),
            written=(),
        )
    make_folder(output.parent)
    warnings = (*caveats, *_voids(run))
    page = render_measurement(page_of(job.document, run, found, claim, seen, warnings))
    outputs = [Output(path=evidence[0], content=content), Output(path=others["html"], content=page.encode())]
    if claim is not None:
        outputs.append(claim_output(output, claim))
    write_together(outputs)
    folder.forget()
    return Measured(
        document=job.document,
        found=found,
        run=run,
        claim=claim,
        comparison=comparison,
        warnings=warnings,
        written=tuple(one.path for one in outputs),
    )


def _compared(run: Run, found: Found, idle: Baseline | None) -> tuple[Pairs, Comparison] | None:
    if idle is None or found.interval is None:
        return None
    near = near_steps(run, found.interval)
    if not near:
        return None
    pairs = pairs_of(
        idle, np.concatenate([one.calls.item for one in near]), np.concatenate([one.marks for one in near])
    )
    return pairs, compared(pairs)


def _voids(run: Run) -> list[str]:
    voids = run.state.voids
    return [f"{voids} steps were void: they count for nothing but what they cost"] if voids else []


def _caveats(run: Run, found: Found) -> list[str]:
    """What a reader of the claim must know as well."""
    lines = []
    share = buffered([step.calls for step in run.steps if step.void is None])
    if share is not None and share > MOST_BUFFERED:
        lines.append(
            f"{share:.0%} of the streams came all at once: a proxy on the way seems to buffer them, so the first "
            "token's time is the answer's, and the time between tokens says nothing"
        )
    if not found.bracket.monotone:
        lines.append("a higher rate passed after a lower one had failed; the claim keeps to the lower")
    interval = found.interval
    if not found.resolved and interval is not None and isfinite(interval.low) and isfinite(interval.high):
        low, high = exp(interval.low), exp(interval.high)
        lines.append(
            f"unresolved: ±{interval.half_width:.1%} reached, ±{run.state.wish.tolerance:.1%} wished for "
            f"({low:.4g} to {high:.4g} requests a second); {found.reason}"
        )
    return lines
