"""`ebbtide run`: the controller. Ends by SIGTERM or SIGINT after the act that is under way."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json


def run(
    fleet: Annotated[Path | None, typer.Option("--fleet", metavar="FILE", help="The Fleet document.")] = None,
    schedule: Annotated[Path | None, typer.Option("--schedule", metavar="FILE", help="Its Schedule.")] = None,
    fleet_name: Annotated[
        str, typer.Option("--fleet-name", metavar="NAME", help="Instead: the Fleet in the production cluster.")
    ] = "",
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Where Fleet, Schedule, Lease and memory live; default: default.")
    ] = "",
    kubeconfig: Annotated[str | None, typer.Option(metavar="FILE", help="In place of $KUBECONFIG.")] = None,
    every_s: Annotated[float, typer.Option("--every-s", min=0.1, max=60.0, help="Seconds between two ticks.")] = 5.0,
    lease_s: Annotated[float, typer.Option("--lease-s", min=1.0, max=300.0, help="How long the Lease holds.")] = 30.0,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve /metrics, /healthz and /readyz there; default: nowhere.")
    ] = "",
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append what is seen and decided, a line of JSON for each tick.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One tick, then end.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="One look; print the plan as the API servers would take it; write nothing."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: one JSON object. Else: the log as JSON.")
    ] = False,
) -> int:
    """Carry the schedule out: replicas, nodes and research's quota.

    In Shadow (the Fleet's default mode) everything is decided and recorded and nothing is written to workloads, nodes
    or quota. Two of them may run: one holds the Lease and acts.
    """
    from ebbtide.adapters.telemetry.log import open_log
    from ebbtide.settings import read_settings
    from ebbtide.workflows.run import run as workflow
    from ebbtide.workflows.run_places import RunOptions

    options = RunOptions(
        fleet=fleet,
        schedule=schedule,
        fleet_name=fleet_name,
        namespace=namespace,
        kubeconfig=kubeconfig,
        every_s=every_s,
        lease_s=lease_s,
        listen=listen,
        record=record,
        once=once,
    )
    log = open_log(json=json or None)
    if dry_run:
        from ebbtide.cli.render_dry_run import dry_run_json, dry_run_text
        from ebbtide.workflows.dry_run import dry_run as look

        found = look(options, read_settings(), log)
        put_json(dry_run_json(found)) if json else put(dry_run_text(found))
        return Exit.DONE
    stop = _stop_on_signal()
    workflow(options, read_settings(), log, stop)
    return Exit.DONE


def _stop_on_signal() -> threading.Event:
    """Set by the first SIGTERM or SIGINT; a second one ends the process at once, as without us."""
    stop = threading.Event()

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, ask)
    return stop
