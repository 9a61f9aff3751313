"""`ebbtide allocate`: a Fleet and its demand become a schedule, the reasons for it, and a report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from whenever import Instant, OffsetDateTime

from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.fleet import FleetDocument, read_fleet
from ebbtide.adapters.documents.schedule import forget_columns, schedule_outputs
from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.profiles import demand_profiles
from ebbtide.adapters.report.render import render_report
from ebbtide.allocate.least_gpus import LeastPool
from ebbtide.allocate.least_gpus import least_gpus as fewest_nodes
from ebbtide.allocate.plan import plan
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import Window
from ebbtide.fleet.schedule import Explanation, Provenance, Schedule, facts_of
from ebbtide.forecast.margin import supported_confidence
from ebbtide.settings import read_settings
from ebbtide.workflows.claims import Claims, with_claims
from ebbtide.workflows.demand import Stage, read_demand, source_talk
from ebbtide.workflows.lifetime import lifetime_warnings
from ebbtide.workflows.planning import DaysSeen, Planned, tuned
from ebbtide.workflows.reach import out_of_reach, refuse_latency_below_service

VALID_DAYS = 14  # two weeks on, newer demand could have been planned from twice over


def silent(name: str, done: int, total: int) -> None:
    """The stage callback of a caller that does not want to be told."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocated:
    """What `allocate` made and wrote; ``talk`` is what a person is told about the demand."""

    fleet: Fleet
    schedule: Schedule
    explanation: Explanation
    talk: tuple[str, ...]
    written: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fewest:
    """What `--least-gpus` answers: per pool the fewest nodes, and the windows that they were counted in."""

    windows: tuple[Window, ...]
    pools: tuple[LeastPool, ...]


def allocate(
    fleet_file: Path, folder: Path, *, accept_claims: Collection[str] = (), stage: Stage = silent
) -> Allocated:
    """Plan the fleet in ``fleet_file`` and write ``schedule.yaml`` and ``report.html`` to ``folder``, both or none.
    The folder is made where there is none. ``accept_claims``: claims that are planned on
    all the same.

    Raises ``InputError`` for a wrong document, a claim that is no ground for a plan, demand that cannot be read, or an
    output there that ebbtide did not write. Targets that cannot be met are no error: ``explanation.shortages`` names
    them.
    """
    claims = with_claims(read_fleet(fleet_file), at=_now(), accept=accept_claims)
    document = claims.document
    page = folder / "report.html"
    refuse_foreign(page)
    refuse_foreign(folder / "schedule.yaml")
    planned, talk = _planned(document, stage)
    schedule, explanation = _plan(claims, planned, stage)
    report = ReportInput(
        fleet=document.fleet,
        schedule=schedule,
        explanation=explanation,
        profiles=demand_profiles(document.fleet, planned.demand.series),
    )
    stage("writing", 0, 1)
    make_folder(folder)
    outputs = schedule_outputs(folder / "schedule.yaml", schedule, explanation)
    write_together([*outputs, Output(path=page, content=render_report(report).encode())])
    forget_columns(outputs)
    return Allocated(
        fleet=document.fleet,
        schedule=schedule,
        explanation=explanation,
        talk=(*talk, *claims.talk),
        written=(*(output.path for output in outputs), page),
    )


def least_gpus(fleet_file: Path, *, accept_claims: Collection[str] = (), stage: Stage = silent) -> Fewest:
    """The fewest nodes per pool that meet all targets of the fleet in ``fleet_file``; nothing is written."""
    document = with_claims(read_fleet(fleet_file), at=_now(), accept=accept_claims).document
    planned, _ = _planned(document, stage)
    windows, pools = fewest_nodes(document.fleet, planned, progress=stage)
    return Fewest(windows=windows, pools=pools)


def _planned(document: FleetDocument, stage: Stage) -> tuple[Planned, tuple[str, ...]]:
    demand = read_demand(document, sql_url=read_settings().sql_url, stage=stage)
    refuse_latency_below_service(document, demand.series)
    stage("tuning margins on past days", 0, 1)
    planned = Planned(fleet=document.fleet, demand=demand, tuning=tuned(document.fleet, demand))
    return planned, tuple(line for record in demand.records for line in source_talk(record))


def _now() -> OffsetDateTime:
    return Instant.now().round("second").to_fixed_offset()


def _plan(claims: Claims, planned: Planned, stage: Stage) -> tuple[Schedule, Explanation]:
    fleet = claims.document.fleet
    end = Instant.from_timestamp(planned.demand.end_s).to_tz(fleet.time_zone)
    valid_until = end.add(days=VALID_DAYS).to_fixed_offset()
    schedule, explanation = plan(
        fleet,
        planned,
        at=end.to_fixed_offset(),
        valid_until=valid_until,
        provenance=_provenance(fleet, planned, days=0),
        progress=stage,
    )
    fewest = planned.fewest(schedule.windows)
    # Once more: only now its windows are known.
    provenance = replace(_provenance(fleet, planned, days=fewest.days), claims=claims.records)
    return schedule, replace(
        explanation,
        provenance=provenance,
        facts=facts_of(fleet),
        warnings=(
            *explanation.warnings,
            *claims.warnings,
            *claims.ending_before(valid_until),
            *_assumed(fleet, fewest),
            *out_of_reach(fleet, planned.demand.series),
            *lifetime_warnings(fleet, made_at=provenance.at, valid_until=valid_until),
        ),
    )


def _provenance(fleet: Fleet, planned: Planned, *, days: int) -> Provenance:
    return Provenance(
        version=version("ebbtide"),
        at=Instant.now().round("second").to_tz(fleet.time_zone).to_fixed_offset(),
        forecaster="seasonal quantiles of past days",
        confidence=fleet.confidence,
        supported_confidence=supported_confidence(days),
        margin=str(planned.tuning),
        demand=planned.demand.records,
    )


def _assumed(fleet: Fleet, fewest: DaysSeen) -> tuple[str, ...]:
    """What §5.3 asks to be said: m past days support at most m/(m+1)."""
    supported = supported_confidence(fewest.days)
    if fleet.confidence <= supported:
        return ()
    asked, held = (f"{100 * share:.3g} %" for share in (fleet.confidence, supported))
    verb = "support" if fewest.days != 1 else "supports"
    return (f"confidence {asked} is asked; {fewest}, which {verb} {held}: beyond that the margin is assumed",)
