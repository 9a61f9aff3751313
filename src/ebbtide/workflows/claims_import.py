"""`ebbtide claims import`: what another tool measured, as a claim, with what a reader must know of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path

from whenever import Instant, OffsetDateTime, TimeDelta

from ebbtide.adapters.documents.claim import claim_output
from ebbtide.adapters.documents.claim_values import live_value
from ebbtide.adapters.documents.files import make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.target import TargetDocument, read_target
from ebbtide.adapters.load.evidence import sha256
from ebbtide.adapters.results.read import Results, read_results
from ebbtide.capacity.claim import CapacityClaim, Effort, Mix, Profile, Sustained
from ebbtide.capacity.levels import HeldLevels, Level, at_share, held, unknowns
from ebbtide.capacity.limits import LATENCY, Limit
from ebbtide.errors import InputError, Place
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.workflows.measure_setup import limits_of

# A sender later than this share of the tightest target has not offered what it says (§M.5).
LATENESS_SHARE = 0.01
# Cut off at the end: more of them than this share of what may be late could change the answer.
CUT_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The claim (None: even the lowest load misses a target), every load, and what was found of them."""

    tool: str
    claim: CapacityClaim | None
    levels: tuple[Level, ...]
    found: HeldLevels
    written: tuple[Path, ...]


def import_claim(files: Sequence[Path], target: Path, output: Path) -> Imported:
    """The claim of a Target's limits from one tool's result files; nothing is written where no load holds them.

    Raises ``InputError`` for a file of no known tool, files of several tools, or without what a limit asks for.
    """
    document = read_target(target)
    refuse_foreign(output)
    results = [read_results(path) for path in files]
    tools = sorted({one.tool for one in results})
    if len(tools) > 1:
        message = f"the files are of several tools: {', '.join(tools)}; a claim is of one"
        raise InputError(message, kind="several_tools")
    levels, limits = [level for one in results for level in one.levels], limits_of(document.spec)
    _refuse_unknown(results, limits)
    found = held(levels, limits)
    claim = None if found.low is None else _claim(document, results, found, limits, output)
    written: tuple[Path, ...] = ()
    if claim is not None:
        make_folder(output.parent)
        write_together([claim_output(output, claim, by="claims import")])
        written = (output,)
    ordered = tuple(sorted(levels, key=lambda one: one.held_rps))
    return Imported(tool=tools[0], claim=claim, levels=ordered, found=found, written=written)


def _refuse_unknown(results: Sequence[Results], limits: Sequence[Limit]) -> None:
    for one in results:
        for missing in unknowns(one.levels, limits):
            limit = missing.limit
            raise InputError(
                f"holds {missing.why} for {limit.name} (P{100.0 * (1.0 - limit.bad_share):.6g} is asked for)",
                kind="missing_percentile",
                place=Place(file=str(one.path)),
                hint="ask in the Target for what the file holds",
            )


def _claim(
    document: TargetDocument, results: Sequence[Results], found: HeldLevels, limits: Sequence[Limit], output: Path
) -> CapacityClaim:
    level, spec = found.low, document.spec
    assert level is not None
    source = next(one for one in results if level in one.levels)
    ordered = sorted((one for file in results for one in file.levels), key=lambda one: one.held_rps)
    measured = _measured_at(source, level)
    high = found.high
    return CapacityClaim(
        name=document.name,
        sustained=Sustained(
            low_rps=level.held_rps / spec.replicas,
            high_rps=max(high.held_rps, level.held_rps) / spec.replicas if high is not None else inf,
            limited_by=found.limited_by,
            monotone=found.monotone,
            replicas=spec.replicas,
        ),
        limits=tuple(limit for limit in limits if limit.name != "quality"),
        fingerprint=Fingerprint(
            **spec.hardware.model_dump(),
            **{**spec.settings.model_dump(), "model_revision": spec.settings.model_revision or source.model},
        ),
        mix=Mix(
            source=source.path.name,
            arrivals=level.arrivals,
            input_tokens=level.input_tokens,
            input_scv=level.input_scv,
            output_tokens=level.output_tokens,
            output_scv=level.output_scv,
        ),
        effort=Effort(
            measured_s=sum(one.seconds for one in ordered),
            requests=sum(one.answered + one.failed + one.cut_off for one in ordered),
            lateness_p99_s=level.lateness_s,
            open_loop=level.open_loop is not False,
            tool=source.tool,
        ),
        measured_at=measured,
        valid_until=(measured.to_instant() + TimeDelta(seconds=spec.valid_for)).to_fixed_offset(measured.offset),
        resolved=False,
        profile=_profile(ordered, limits, spec.replicas),
        evidence_file=os.path.relpath(source.path.resolve(), output.resolve().parent),
        evidence_sha256=sha256(source.content),
        warnings=tuple(_warnings(document, source, level, found, limits)),
        live=live_value(spec.live),
    )


def _warnings(
    document: TargetDocument, source: Results, level: Level, found: HeldLevels, limits: Sequence[Limit]
) -> Iterator[str]:
    tool = source.tool
    yield from _of_the_loop(tool, level)
    tightest_s = min((one.bound_s for one in limits if one.bound_s is not None), default=inf)
    if isfinite(level.lateness_s) and level.lateness_s > LATENESS_SHARE * tightest_s:
        yield (
            f"{tool} sent late: P99 {1e3 * level.lateness_s:.3g} ms after the intended time, more than 1 % of the "
            f"tightest target ({tightest_s:.6g} s), and its latencies count from when it sent"
        )
    else:
        yield f"{tool}'s latencies count from when it sent, not from when it was to send"
    may = min(one.bad_share for one in limits)
    if level.cut_off > CUT_SHARE * may * level.answered:
        yield f"{level.cut_off:,} requests were cut off at the end beside {level.answered:,} answered: not counted"
    if found.high is None:
        yield "no load that was tried misses a target: the service may hold more"
    if not found.monotone:
        yield "a higher load held after a lower one had not; the claim keeps to the lower"
    yield f"no interval: the percentiles of {level.answered:,} requests, taken as they are"
    if document.spec.quality is not None:
        yield f"the Target's quality was not looked at: {tool} checks no answers"
    if tool == "guidellm" and any(one.metric == "betweenTokens" for one in limits):
        yield "guidellm's time between tokens is over all tokens, not each request's mean"


def _of_the_loop(tool: str, level: Level) -> Iterator[str]:
    if level.open_loop is False:
        most = f", at most {level.cap:,} in flight" if level.cap else ""
        yield (
            f"closed loop ({level.arrivals}{most}): a server that slows is asked less, so under arrivals that do not "
            "wait it holds less than this"
        )
        return
    if level.open_loop is None:
        yield f"{_silent_file(tool)} does not say whether the loop was open, nor how requests arrived"
    elif level.arrivals != "poisson":
        yield f"arrivals were {level.arrivals}, not Poisson: steadier ones let a server hold more, burstier ones less"
    elif tool == "inference-perf":
        yield "inference-perf's Poisson sends on nearly every whole second: its arrivals are not Poisson"
    if level.cap is not None and level.cap_reached is not False:
        seen = ", and they were reached" if level.cap_reached else ""
        yield f"at most {level.cap:,} requests in flight{seen}: beyond them requests waited in the tool, uncounted"


def _silent_file(tool: str) -> str:
    """Which of a tool's files would say how requests were sent.

    >>> _silent_file("inference-perf")
    "no config.yaml beside inference-perf's file: it"
    """
    return f"no config.yaml beside {tool}'s file: it" if tool == "inference-perf" else f"{tool}'s file"


def _profile(levels: Sequence[Level], limits: Sequence[Limit], replicas: int) -> Profile:
    """Loads by concurrency where the tool says it, each higher than the one before."""
    percentile = next((1.0 - one.bad_share for one in limits if one.metric == LATENCY and one.bound_s), 0.95)
    rows: list[tuple[float, float, float]] = []
    for level in sorted(levels, key=lambda one: one.concurrency):
        late_s = at_share(level, LATENCY, percentile)
        if isfinite(level.concurrency) and isfinite(late_s) and (not rows or level.concurrency > 1.01 * rows[-1][0]):
            rows.append((level.concurrency, level.rate_rps, late_s))
    return Profile(
        concurrency=tuple(row[0] / replicas for row in rows),
        throughput_rps=tuple(row[1] / replicas for row in rows),
        latency_s=tuple(row[2] for row in rows),
        percentile=percentile,
    )


def _measured_at(source: Results, level: Level) -> OffsetDateTime:
    """When the load began; when its file was written, where the file does not say."""
    seconds = level.started_s if isfinite(level.started_s) else source.path.stat().st_mtime
    return Instant.from_timestamp(int(seconds)).to_fixed_offset()
