"""A Fleet's claims: found, read, held against what the Fleet expects, and put into what is planned from (§M.8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from whenever import OffsetDateTime

from ebbtide.adapters.documents.claim import ClaimDocument, read_claim
from ebbtide.adapters.documents.claim_values import claim_field, document_field
from ebbtide.adapters.documents.fleet import FleetDocument
from ebbtide.adapters.documents.problems import nearest, raise_errors
from ebbtide.adapters.documents.quantities import shown
from ebbtide.capacity.claim import CapacityClaim
from ebbtide.errors import DocumentError, InputError, Place
from ebbtide.fleet.schedule import ClaimRecord
from ebbtide.fleet.workload import Claimed, Target, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A Fleet whose claims were read (``document.fleet`` holds their rates), and what is to be said of them."""

    document: FleetDocument
    records: tuple[ClaimRecord, ...]
    talk: tuple[str, ...]
    warnings: tuple[str, ...]

    def ending_before(self, valid_until: OffsetDateTime) -> tuple[str, ...]:
        """A sentence for each claim that ends while the schedule still holds."""
        zone = self.document.fleet.time_zone
        return tuple(
            f"{one.workload}: its claim ends on {one.valid_until.to_tz(zone).date()}, the schedule on "
            f"{valid_until.to_tz(zone).date()}: measure again by then"
            for one in self.records
            if not one.accepted and one.valid_until < valid_until
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why a claim is no ground for a plan: what to say where, and that it may be accepted all the same."""

    kind: str
    place: Place
    message: str

    def error(self, claim: str) -> DocumentError:
        """As a refusal, with the two ways out."""
        hint = f"measure again with `ebbtide measure`, or plan on it all the same with --accept-claim {claim}"
        return DocumentError(self.message, kind=self.kind, place=self.place, hint=hint)

    def __str__(self) -> str:
        return f"{self.place.field} {self.message}"


def with_claims(document: FleetDocument, *, at: OffsetDateTime, accept: Collection[str] = ()) -> Claims:
    """The Fleet with the rates of its claims; one without claims comes back as it is.

    ``accept``: claims, as the Fleet names them, that are planned on although they have expired or differ. Raises
    ``DocumentError`` (several as one) for a claim that is wrong, has expired, is not what the Fleet ``expects`` or
    does not hold a target; ``InputError`` where there is no such claim.
    """
    named = {one.name: one.service.claim for one in document.fleet.workloads if one.service.claim is not None}
    _refuse_unknown(accept, [claim.name for claim in named.values()])
    read = {name: claim_of(document, name) for name in dict.fromkeys(claim.name for claim in named.values())}
    errors: list[DocumentError] = []
    records, warnings, workloads = [], [], []
    for workload in document.fleet.workloads:
        claimed = workload.service.claim
        if claimed is None:
            workloads.append(workload)
            continue
        claim, name = read[claimed.name], claimed.name
        objections = list(objections_to(document, workload, claim, at))
        errors += [*_uncovered(document, workload, claim)]
        errors += [] if name in accept else [one.error(name) for one in objections]
        records.append(_record(workload, claim, name, objections))
        warnings += [f"{workload.name}: planned on claim {name} all the same: {one}" for one in objections]
        warnings += [f"{workload.name}: of claim {name}: {line}" for line in claim.claim.warnings]
        workloads.append(_planned(workload, claim.claim))
    raise_errors(errors)
    fleet = replace(document.fleet, workloads=tuple(workloads))
    return Claims(
        document=replace(document, fleet=fleet) if records else document,
        records=tuple(records),
        talk=tuple(_talk(record) for record in records),
        warnings=tuple(warnings),
    )


def refuse_claims(document: FleetDocument) -> None:
    """``InputError`` for the first workload that is planned on a claim: what replays requests needs their times."""
    for workload in document.fleet.workloads:
        if workload.service.claim is not None:
            raise InputError(
                "says what a replica holds, not how long a request takes, and a backtest serves every request",
                kind="claim_without_times",
                place=document.place(f"workloads[{workload.name}].service.claim"),
                hint="give service.time in a copy of the Fleet to replay it",
            )


def claim_path(document: FleetDocument, name: str) -> Path:
    """Where a claim lies: its file relative to the Fleet's folder, or claims/NAME.yaml there."""
    is_file = "/" in name or name.endswith((".yaml", ".yml"))
    return document.path.parent / (name if is_file else f"claims/{name}.yaml")


def claim_of(document: FleetDocument, name: str) -> ClaimDocument:
    """The claim that a Fleet names; ``InputError`` at the Fleet's line where there is no such file."""
    path = claim_path(document, name)
    try:
        return read_claim(path)
    except InputError as error:
        if error.kind != "no_file":
            raise
        first = next(one for one in document.fleet.workloads if one.service.claim and one.service.claim.name == name)
        raise InputError(
            f"is {name}, and there is no file {path}",
            kind="no_claim",
            place=document.place(f"workloads[{first.name}].service.claim"),
            hint=f"measure it: `ebbtide measure target.yaml -o {path}`",
        ) from error


def objections_to(
    document: FleetDocument, workload: Workload, claim: ClaimDocument, at: OffsetDateTime
) -> Iterator[Objection]:
    """Why the claim is none of that workload's now: it has expired, or was measured on or with something else."""
    found, here = claim.claim, f"workloads[{workload.name}]"
    if found.expired(at):
        now = at.to_instant().to_fixed_offset(found.valid_until.offset)
        message = f"is {found.valid_until}, and it is {now} now"
        yield Objection(kind="claim_expired", place=claim.place("validUntil"), message=message)
    for one in found.fingerprint.differences(workload.expects):
        place = document.place(f"{here}.expects.{document_field(one.field)}")
        seen = "is not known" if one.found is None else f"is {shown(one.found)}"
        message = f"{seen}, but {place.field} ({place.file}:{place.line}) is {shown(one.expected)}"
        yield Objection(kind="claim_differs", place=claim.place(claim_field(one.field)), message=message)
    gpus, replicas = found.fingerprint.gpus, found.sustained.replicas
    if gpus is not None and gpus != workload.gpus_per_replica * replicas:
        message = (
            f"is {gpus} for {_many(replicas, 'replica')}, but {here}.gpusPerReplica is {workload.gpus_per_replica}"
        )
        yield Objection(kind="claim_differs", place=claim.place("hardware.gpus"), message=message)


def _uncovered(document: FleetDocument, workload: Workload, claim: ClaimDocument) -> Iterator[DocumentError]:
    for index, target in enumerate(workload.targets):
        if not claim.claim.covers(target):
            held = f"{claim.path} holds {_held(claim.claim)}"
            yield DocumentError(
                f"is {_target(target)}, and {held}: whether its rate keeps this target is not known",
                kind="claim_without_target",
                place=document.place(f"workloads[{workload.name}].targets[{index}].{target.kind}"),
                hint="ask for what the claim holds, or measure with this target",
            )


def _target(target: Target) -> str:
    return f"P{100 * target.percentile:.6g} {target.kind} {target.bound_s:.6g}s"


def _held(claim: CapacityClaim) -> str:
    return ", ".join(
        f"P{100 * (1.0 - one.bad_share):.6g} {one.metric} {one.bound_s:.6g}s"
        for one in claim.limits
        if one.bound_s is not None
    )


def _planned(workload: Workload, claim: CapacityClaim) -> Workload:
    assert workload.service.claim is not None
    held = Claimed(name=workload.service.claim.name, holds_rps=claim.sustained.low_rps)
    return replace(workload, service=replace(workload.service, claim=held))


def _record(workload: Workload, claim: ClaimDocument, name: str, objections: list[Objection]) -> ClaimRecord:
    found = claim.claim
    return ClaimRecord(
        workload=workload.name,
        claim=name,
        sha256=claim.sha256,
        measured_at=found.measured_at,
        valid_until=found.valid_until,
        low_rps=found.sustained.low_rps,
        accepted=tuple(str(one) for one in objections),
    )


def _talk(record: ClaimRecord) -> str:
    return (
        f"{record.workload}: by claim {record.claim} a replica holds {record.low_rps:g} rps "
        f"(measured {record.measured_at.date()}, until {record.valid_until.date()})"
    )


def _refuse_unknown(accept: Collection[str], known: list[str]) -> None:
    for name in accept:
        if name not in known:
            near = nearest(name, known)
            listed = f"the Fleet names {', '.join(dict.fromkeys(known))}" if known else "the Fleet names none"
            raise InputError(
                f'--accept-claim is "{name}", which no workload names',
                kind="unknown_claim",
                nearest=near,
                hint=None if near else listed,
            )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
