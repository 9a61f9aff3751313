"""`ebbtide claims check`: is a claim still true? Its date, what the Fleet expects, what runs, and what users saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from whenever import OffsetDateTime

from ebbtide.adapters.documents.claim import ClaimDocument, read_claim
from ebbtide.adapters.documents.claim_values import claim_field
from ebbtide.adapters.documents.files import file_sha256
from ebbtide.adapters.documents.fleet import FleetDocument, read_fleet
from ebbtide.adapters.kubernetes.bindings import bindings_of
from ebbtide.adapters.kubernetes.clients import Cluster, config_of
from ebbtide.adapters.kubernetes.connections import refs_of
from ebbtide.adapters.kubernetes.running import look_at
from ebbtide.capacity.claim import LiveQueries
from ebbtide.capacity.running import Running, compared
from ebbtide.control.state import Side
from ebbtide.errors import InputError, Place
from ebbtide.fleet.operations import ClusterRef
from ebbtide.fleet.workload import Workload
from ebbtide.settings import Settings
from ebbtide.workflows.claims import claim_path, objections_to
from ebbtide.workflows.claims_live import LiveLook, live_checks


class Answer(StrEnum):
    """What a check says; ``unknown``: nobody could be asked, or too little was seen."""

    OK = "ok"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One look at a claim. ``about``: valid, evidence, expects, running or live."""

    about: str
    answer: Answer
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """A claim and all that was looked at."""

    document: ClaimDocument
    checks: tuple[Check, ...]

    @property
    def stands(self) -> bool:
        """Whether no check said no."""
        return all(one.answer is not Answer.NO for one in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to look at beside the files. ``rate``, ``replicas`` and ``within`` go before the claim's own queries."""

    fleet: Path | None = None
    context: str | None = None
    kubeconfig: str | None = None
    offline: bool = False
    days: int = 28
    rate: str | None = None
    replicas: str | None = None
    within: tuple[str, ...] = ()
    step_s: int | None = None


def check_claims(
    files: Sequence[Path], asked: Asked, settings: Settings, *, at: OffsetDateTime
) -> tuple[CheckedClaim, ...]:
    """Each claim in ``files`` (all that the Fleet names, where there are none), looked at from every side.

    Raises ``InputError`` for a wrong document or a claim that the Fleet does not name, ``WorldError`` where a server
    that was asked does not answer.
    """
    document = None if asked.fleet is None else read_fleet(asked.fleet)
    if document is None and asked.context is not None:
        hint = "give --fleet: it names the workload's Deployment"
        raise InputError("--context says where to look, and nothing says for what", kind="no_fleet", hint=hint)
    if not files:
        files = _named(document)
    claims = [read_claim(path) for path in files]
    users = [_users(document, claim) for claim in claims]
    cluster = None if asked.offline or document is None else _cluster(document, asked, settings)
    try:
        return tuple(
            CheckedClaim(document=claim, checks=tuple(_checks(claim, document, ours, cluster, asked, settings, at)))
            for claim, ours in zip(claims, users, strict=True)
        )
    finally:
        if cluster is not None:
            cluster.close()


def _checks(
    claim: ClaimDocument,
    document: FleetDocument | None,
    users: Sequence[Workload],
    cluster: Cluster | None,
    asked: Asked,
    settings: Settings,
    at: OffsetDateTime,
) -> Iterator[Check]:
    yield _valid(claim, at)
    yield from _evidence(claim)
    if document is not None:
        for workload in users:
            yield from _expected(document, workload, claim, at)
            if cluster is not None:
                yield from _running(document, workload, claim, cluster)
    if not asked.offline:
        zone = "UTC" if document is None else document.fleet.time_zone
        queries = _queries(claim, asked)
        look = LiveLook(claim=claim.claim, queries=queries, days=asked.days, time_zone=zone, at=at)
        for answer, said in live_checks(look, settings):
            yield Check(about="live", answer=Answer(answer), said=said)


def _valid(claim: ClaimDocument, at: OffsetDateTime) -> Check:
    until = claim.claim.valid_until
    if not claim.claim.expired(at):
        return Check(about="valid", answer=Answer.OK, said=f"until {until}")
    now = at.to_instant().to_fixed_offset(until.offset)
    return Check(about="valid", answer=Answer.NO, said=f"ended at {until}; it is {now}: measure again")


def _evidence(claim: ClaimDocument) -> Iterator[Check]:
    """Whether the raw results are still those that it was made from; nothing where it names none."""
    name, digest = claim.claim.evidence_file, claim.claim.evidence_sha256
    if name is None or digest is None:
        return
    path = claim.path.parent / name
    if not path.is_file():
        yield Check(about="evidence", answer=Answer.UNKNOWN, said=f"{path} is not there")
    elif file_sha256(path) == digest:
        yield Check(about="evidence", answer=Answer.OK, said=f"{path} is as it was")
    else:
        yield Check(about="evidence", answer=Answer.NO, said=f"{path} is not what the claim was made from: {digest}")


def _expected(document: FleetDocument, workload: Workload, claim: ClaimDocument, at: OffsetDateTime) -> Iterator[Check]:
    found = [one for one in objections_to(document, workload, claim, at) if one.kind != "claim_expired"]
    for one in found:
        yield Check(about="expects", answer=Answer.NO, said=f"{workload.name}: {one}")
    if not found:
        yield Check(about="expects", answer=Answer.OK, said=f"{workload.name}: as the Fleet expects")


def _running(document: FleetDocument, workload: Workload, claim: ClaimDocument, cluster: Cluster) -> Iterator[Check]:
    bindings = bindings_of(document.fleet)
    binding = bindings.workload(workload.name)
    where = f"{binding.kind} {binding.namespace}/{binding.object_name}"
    running = look_at(cluster, binding, bindings.pool(workload.pool))
    if running is None or not running.pods:
        why = "is not there" if running is None else "has no running pod"
        yield Check(about="running", answer=Answer.UNKNOWN, said=f"{workload.name}: {where} {why}")
        return
    yield from _side_by_side(workload, claim, running, where)


def _side_by_side(workload: Workload, claim: ClaimDocument, running: Running, where: str) -> Iterator[Check]:
    found = compared(claim.claim.fingerprint, running, replicas=claim.claim.sustained.replicas)
    for one in found:
        field = claim_field(one.field)
        if one.running is None:
            said, answer = f"{field} is not seen in {where}; claimed: {one.claimed}", Answer.UNKNOWN
        elif one.same:
            said, answer = f"{field} is as claimed", Answer.OK
        else:
            said, answer = f"{field} is {one.running}; claimed: {one.claimed}", Answer.NO
        yield Check(about="running", answer=answer, said=f"{workload.name}: {said}")
    if not found:
        said = f"{workload.name}: the claim says nothing that a cluster shows"
        yield Check(about="running", answer=Answer.UNKNOWN, said=said)


def _queries(claim: ClaimDocument, asked: Asked) -> LiveQueries | None:
    """The claim's queries, with what was asked for in their place."""
    queries = claim.claim.live
    if asked.rate is not None or asked.within:
        rate = asked.rate or (queries.rate if queries is not None else None)
        within = asked.within or (queries.within if queries is not None else ())
        if rate is None or not within:
            missing = "--rate" if rate is None else "--within"
            raise InputError(f"{missing} is needed as well", kind="missing_field", place=Place(file=str(claim.path)))
        queries = replace(queries, rate=rate, within=within) if queries else LiveQueries(rate=rate, within=within)
    if queries is None:
        return None
    latencies = sum(one.bound_s is not None for one in claim.claim.limits)
    if len(queries.within) != latencies:
        message = f"--within is given {len(queries.within)} times, the claim has {latencies} targets: one for each"
        raise InputError(message, kind="conflicting_fields", place=Place(file=str(claim.path)))
    return replace(
        queries,
        replicas=asked.replicas or queries.replicas,
        step_s=asked.step_s if asked.step_s is not None else queries.step_s,
    )


def _named(document: FleetDocument | None) -> list[Path]:
    if document is None:
        raise InputError("no claim is named", kind="no_claim", hint="give its file, or --fleet for all of a Fleet's")
    names = [one.service.claim.name for one in document.fleet.workloads if one.service.claim is not None]
    if not names:
        raise InputError("names no claim", kind="no_claim", place=Place(file=str(document.path)))
    return [claim_path(document, name) for name in dict.fromkeys(names)]


def _users(document: FleetDocument | None, claim: ClaimDocument) -> list[Workload]:
    """The workloads that are planned on it."""
    if document is None:
        return []
    found = [
        one
        for one in document.fleet.workloads
        if one.service.claim is not None
        and claim_path(document, one.service.claim.name).resolve() == claim.path.resolve()
    ]
    if not found:
        raise InputError(
            f"no workload of {document.path} names it",
            kind="unknown_claim",
            place=Place(file=str(claim.path)),
            hint="write service: {claim: …} there, or check it without --fleet",
        )
    return found


def _cluster(document: FleetDocument, asked: Asked, settings: Settings) -> Cluster | None:
    """Where production runs: the context that was asked for, else the settings', else the Fleet's; None without any."""
    context = asked.context or settings.context_production
    if context:
        ref = ClusterRef(context=context)
    elif document.fleet.clusters is not None:
        ref = refs_of(document.fleet.clusters, {})[Side.PRODUCTION]
    else:
        return None
    config = config_of(context=ref.context or None, in_cluster=ref.in_cluster, kubeconfig=asked.kubeconfig)
    return Cluster(config, name="production" if ref.in_cluster else ref.context)
