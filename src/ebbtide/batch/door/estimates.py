"""From Workloads to jobs: what is planned for, how long it is taken to run, and why others cannot be planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ebbtide.batch.door.ledger import Ledger
from ebbtide.batch.door.work import Stage, Work
from ebbtide.batch.durations import Duration
from ebbtide.batch.job import Job
from ebbtide.units import DAY_S

MOST_AHEAD_S = 60 * DAY_S
ASSUMED = Duration.usual(3600.0)  # of preemptible work that nobody says the length of: ended at any time, it goes on

Known = tuple[object, Job]  # what its owner said, and the job that was made of it


def jobs_of(
    before: Mapping[str, Known], works: Sequence[Work], ledger: Ledger, at_s: float
) -> tuple[dict[str, Known], dict[str, str]]:
    """The jobs to plan by name, and why others cannot be. A job keeps its estimate while its owner says nothing new."""
    jobs: dict[str, Known] = {}
    problems: dict[str, str] = {}
    for work in works:
        if work.gpus == 0 or not (work.stage in (Stage.HELD, Stage.RUNNING) or work.released):
            continue
        said = (work.wishes, work.pods, work.gpus_per_pod, work.flavors, work.stage is Stage.RUNNING)
        known = before.get(work.name)
        if known is not None and known[0] == said:
            jobs[work.name] = known
            continue
        problem = _problem(work, ledger)
        if problem and work.stage is not Stage.RUNNING:
            problems[work.name] = problem
        else:
            jobs[work.name] = (said, _job(work, ledger, at_s))
    return jobs, problems


def _problem(work: Work, ledger: Ledger) -> str:
    """Why a Workload cannot be planned; "" where it can."""
    if work.wishes is None:
        return work.problem
    if not work.flavors:
        return "no flavor of the Fleet takes it: see its node selector, its tolerations and its queue's flavors"
    wishes = work.wishes
    if wishes.duration is None and wishes.checkpoint_interval_s is None and ledger.usual(work.team) is None:
        return "nobody says how long it runs: give ebbtide.dev/duration, or ebbtide.dev/preemptible"
    return ""


def _job(work: Work, ledger: Ledger, at_s: float) -> Job:
    wishes = work.wishes
    running = work.stage is Stage.RUNNING
    said = wishes.duration if wishes is not None else None
    # Of what runs and says no length nothing is known but that it holds its GPUs until it is seen to end.
    unsaid = Duration(expected_s=MOST_AHEAD_S, p90_s=MOST_AHEAD_S) if running else ASSUMED
    duration = (ledger.usual(work.team) or unsaid) if said is None else ledger.corrected(work.team, said)
    earliest_s = wishes.earliest_start_s if wishes is not None else None
    return Job(
        name=work.name,
        pods=max(work.pods, 1),
        gpus_per_pod=work.gpus_per_pod,
        duration=duration,
        earliest_start_s=min(work.created_s, at_s) if earliest_s is None or running else earliest_s,
        deadline_s=None if wishes is None else wishes.deadline_s,
        value_usd=0.0 if wishes is None else wishes.value_usd,
        checkpoint_interval_s=None if wishes is None else wishes.checkpoint_interval_s,
        pools=(work.flavor,) if work.flavor else work.flavors,
    )
