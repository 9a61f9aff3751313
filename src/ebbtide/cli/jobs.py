"""`ebbtide jobs`: batch jobs with deadlines in the research capacity of a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json, say
from ebbtide.cli.columns import terminal_width
from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.cli.progress import Talk
from ebbtide.errors import one_line

jobs = typer.Typer(
    name="jobs",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Batch jobs with deadlines in what production leaves free.",
)

ScheduleOption = Annotated[
    Path, typer.Option("--schedule", metavar="SCHEDULE", help="The schedule that `allocate` wrote.")
]
FleetOption = Annotated[
    Path | None, typer.Option("--fleet", metavar="FLEET", help="Its Fleet; default: fleet.yaml beside the schedule.")
]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="WHEN", help="Plan from then on: 2026-09-07T18:00, tomorrow-08:00; now.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")]


@jobs.command()
def plan(
    jobs_file: Annotated[
        Path, typer.Argument(metavar="JOBS", help="A BatchJobs document, or an export of Slurm's sacct or squeue.")
    ],
    schedule: ScheduleOption = Path("schedule.yaml"),
    fleet: FleetOption = None,
    at: AtOption = None,
    days: Annotated[int, typer.Option(min=1, max=60, help="How far to look ahead, unless a deadline is later.")] = 7,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Share of a job's runs that its planned length covers.")
    ] = 0.9,
    seconds: Annotated[float, typer.Option(min=0.0, help="How long to search for better plans at most.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed, the same plan.")] = 1,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="PLAN", help="A plan.yaml whose promised starts are kept.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write plan.yaml there.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Write jobs.html too: timeline, capacity, reasons.")] = False,
    json: Json = False,
) -> int:
    """When and where each job runs so that deadlines hold, and why it waits.

    Exit code 3: a deadline cannot hold; the answer says which, and what would make it hold.
    """
    ensure_kernel_cache()
    from ebbtide.workflows.jobs import plan_jobs

    with Talk(quiet=json):
        done = plan_jobs(
            jobs_file,
            schedule,
            fleet_file=fleet,
            at=at,
            folder=output,
            days=days,
            confidence=confidence,
            seed=seed,
            seconds=seconds,
            keep=keep,
            report=report,
        )
    if json:
        from ebbtide.cli.json_jobs import planned_json

        put_json(planned_json(done))
    else:
        from ebbtide.cli.render_jobs import planned_text

        for line in done.talk:
            say(line)
        put(planned_text(done, width=terminal_width()))
        if done.written:
            say("wrote " + ", ".join(one_line(str(path)) for path in done.written))
    return Exit.INFEASIBLE if done.document.plan.missed else Exit.DONE


@jobs.command()
def when(
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of the whole job.")],
    hours: Annotated[float, typer.Option(min=0.001, help="Half of its runs end within so many hours.")],
    schedule: ScheduleOption = Path("schedule.yaml"),
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="PLAN", help="The plan.yaml that stands; else nothing is planned.")
    ] = None,
    fleet: FleetOption = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="WHEN", help="To be done by: tomorrow-08:00, 12h, 2026-09-29T08:00.")
    ] = None,
    p90_hours: Annotated[float | None, typer.Option(help="Nine of ten runs end within; 1.3 times --hours.")] = None,
    gpus_per_pod: Annotated[int | None, typer.Option(min=1, help="GPUs of a pod; at most a node's.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DURATION", help="It may be interrupted and checkpoints so often: 30m.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="The pool; any.")] = None,
    at: AtOption = None,
    json: Json = False,
) -> int:
    """When a job could start and be done, how sure that is, what blocks it, and the cheapest change that would help.

    Exit code 3: not by its deadline.
    """
    ensure_kernel_cache()
    from ebbtide.workflows.job_offer import Wish, checkpoint_s
    from ebbtide.workflows.job_offer import when as workflow

    wish = Wish(
        gpus=gpus,
        hours=hours,
        p90_hours=p90_hours,
        gpus_per_pod=gpus_per_pod,
        deadline=deadline,
        checkpoint_interval_s=checkpoint_s(checkpoint),
        pool=pool,
    )
    with Talk(quiet=json):
        found = workflow(wish, schedule, plan_file=plan, fleet_file=fleet, at=at)
    if json:
        from ebbtide.cli.json_jobs import offered_json

        put_json(offered_json(found))
    else:
        from ebbtide.cli.render_offer import offered_text

        for line in found.talk:
            say(line)
        put(offered_text(found, width=terminal_width()))
    return Exit.DONE if found.offer.planned.in_time else Exit.INFEASIBLE
