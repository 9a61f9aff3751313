"""The commands: each parses, calls one workflow, renders, and answers with an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ebbtide.cli import people
from ebbtide.cli.answers import Exit, finish, open_streams, put, put_json, say
from ebbtide.cli.backtest import backtest
from ebbtide.cli.claims import claims
from ebbtide.cli.columns import terminal_width
from ebbtide.cli.jobs import jobs
from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.cli.measure import compare, measure, simulate_server
from ebbtide.cli.progress import Talk
from ebbtide.cli.run import run as run_controller
from ebbtide.cli.size import size
from ebbtide.errors import one_line


class _Commands(TyperGroup):
    """Knows commands of two words (`measure compare`) beside one of their first word that takes arguments itself."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # Typer's own click has no public types
        pair = " ".join(args[:2])
        if pair in self.commands:
            return pair, self.commands[pair], args[2:]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="ebbtide",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts in half the time: rich alone would take 0.3 s
    help="Plan which GPUs serve production and which go to research, window by window.",
    epilog="Exit: 0 done, 1 a check said no, 2 input wrong, 3 infeasible (answer written), 4 network or "
    "permission, 70 a bug.",
)

app.add_typer(jobs)
app.add_typer(claims)
app.command(name="run")(run_controller)
people.register(app)

FleetFile = Annotated[Path, typer.Argument(metavar="FLEET", help="The Fleet document (YAML).")]
ScheduleFile = Annotated[Path, typer.Argument(metavar="SCHEDULE", help="A schedule that `allocate` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")]


def run() -> None:
    """The entry point of the `ebbtide` command."""
    open_streams()
    if not sys.warnoptions:  # what a library warns of is for those who build ebbtide (`python -W`), not for its users
        warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    sys.exit(finish(lambda: app(arguments, standalone_mode=False) or Exit.DONE, as_json="--json" in arguments))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        put(f"ebbtide {version('ebbtide')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def allocate(
    fleet: FleetFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")] = Path(),
    least_gpus: Annotated[
        bool, typer.Option("--least-gpus", help="Answer the fewest nodes that meet all targets; write nothing.")
    ] = False,
    accept_claim: Annotated[
        list[str] | None,
        typer.Option("--accept-claim", metavar="CLAIM", help="Plan on this claim though it expired or differs."),
    ] = None,
    json: Json = False,
) -> int:
    """Make the schedule: writes schedule.yaml and report.html, prints the windows.

    Exit code 3: a target cannot be met; the schedule is written and says who goes short.
    """
    ensure_kernel_cache()
    from ebbtide.workflows import allocate as workflow

    with Talk(quiet=json) as talk:
        if least_gpus:
            fewest = workflow.least_gpus(fleet, accept_claims=accept_claim or (), stage=talk.stage)
        else:
            done = workflow.allocate(fleet, output, accept_claims=accept_claim or (), stage=talk.stage)
    if least_gpus:
        from ebbtide.cli.json_allocate import fewest_json
        from ebbtide.cli.render_least import least_text

        put_json(fewest_json(fewest)) if json else put(least_text(fewest, width=terminal_width()))
        return Exit.INFEASIBLE if any(pool.unreachable for pool in fewest.pools) else Exit.DONE
    if json:
        from ebbtide.cli.json_allocate import allocated_json

        put_json(allocated_json(done))
    else:
        from ebbtide.cli.render_allocate import render_allocate

        for line in (*done.talk, *done.explanation.warnings):
            say(line)
        put(render_allocate(done.schedule, done.explanation, done.fleet, colour=_colour(), width=terminal_width()))
        say("wrote " + ", ".join(one_line(str(path)) for path in done.written))
    return Exit.INFEASIBLE if done.explanation.shortages else Exit.DONE


@app.command()
def explain(
    schedule: ScheduleFile,
    window: Annotated[str | None, typer.Option(help='A time inside the window: "09:00", or "Mon 09:00".')] = None,
    workload: Annotated[str | None, typer.Option(help="The workload's name; without: all.")] = None,
    json: Json = False,
) -> int:
    """Why a workload has this many replicas in a window: floor, last given, first refused."""
    from ebbtide.cli.render_explain import explain_text
    from ebbtide.workflows.explain import explain as workflow

    answers = workflow(schedule, window=window, workload=workload)
    put_json(answers.as_json()) if json else put(explain_text(answers, width=terminal_width()))
    return Exit.DONE


@app.command()
def diff(
    old: ScheduleFile,
    new: ScheduleFile,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where the schedules differ.")] = False,
    json: Json = False,
) -> int:
    """What changed between two schedules, window by window."""
    from ebbtide.cli.render_diff import diff_text
    from ebbtide.workflows.diff import diff as workflow

    changes = workflow(old, new)
    put_json(changes.as_json()) if json else put(diff_text(changes, width=terminal_width()))
    return Exit.CHECK_SAID_NO if exit_code and changes.differ else Exit.DONE


@app.command()
def init(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Demand files (CSV, .csv.gz, Parquet).")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FLEET", help="The Fleet to write.")] = Path(
        "fleet.yaml"
    ),
    json: Json = False,
) -> int:
    """Look at demand and write a Fleet to fill in."""
    from ebbtide.workflows.init import init as workflow

    written = workflow(files, output)
    put_json(written.as_json()) if json else put(written.text())
    return Exit.DONE


@app.command()
def validate(fleet: FleetFile, json: Json = False) -> int:
    """Check a Fleet or Schedule document without planning."""
    from ebbtide.workflows.validate import validate as workflow

    checked = workflow(fleet)
    put_json(checked.as_json()) if json else put(checked.text())
    return Exit.DONE


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="Fleet, Schedule, BatchJobs or BatchPlan.")] = "Fleet",
    json: Annotated[bool, typer.Option("--json", help="As ever here: the schema is JSON.")] = True,
) -> int:
    """Print a document's JSON Schema, for editors."""
    from ebbtide.adapters.documents.schema import json_schema

    del json
    put_json(json_schema(kind))
    return Exit.DONE


@app.command()
def crds(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write a file for each there.")
    ] = None,
    json: Json = False,
) -> int:
    """Print the custom resources Fleet and Schedule, to be applied to the production cluster."""
    from ebbtide.adapters.documents.crds import COLUMNS, crd, crd_text, write_crds

    if output is not None:
        written = write_crds(output)
        put_json({"written": [str(path) for path in written]}) if json else say(
            "wrote " + ", ".join(one_line(str(path)) for path in written)
        )
    elif json:
        put_json({"apiVersion": "v1", "kind": "List", "items": [crd(kind) for kind in COLUMNS]})
    else:
        put("---\n".join(crd_text(kind) for kind in COLUMNS))
    return Exit.DONE


app.command()(backtest)
app.command()(measure)
app.command("measure compare")(compare)
app.command()(size)
app.command("simulate-server")(simulate_server)


def _colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


if __name__ == "__main__":
    run()
