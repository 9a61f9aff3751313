"""What people say to the controller, and ask of it: status, pause, resume, override, history, release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json, say
from ebbtide.cli.columns import terminal_width

if TYPE_CHECKING:
    from ebbtide.workflows.people import Desk

FleetFile = Annotated[
    Path | None, typer.Option("--fleet", metavar="FILE", help="The Fleet's file, if it runs from files.")
]
ScheduleFile = Annotated[Path | None, typer.Option("--schedule", metavar="FILE", help="Its Schedule's file.")]
FleetName = Annotated[str, typer.Option("--fleet-name", metavar="NAME", help="The Fleet, where there are several.")]
Namespace = Annotated[str, typer.Option("-n", "--namespace", help="Where Fleet and Schedule live.")]
Kubeconfig = Annotated[str | None, typer.Option(metavar="FILE", help="In place of $KUBECONFIG.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")]
Reason = Annotated[str, typer.Option(help="Why: others will read it.")]


def register(app: typer.Typer) -> None:
    """All of them."""
    for command in (status, pause, resume, override, history, release):
        app.command()(command)


@contextmanager
def _desk(
    fleet: Path | None, name: str, namespace: str, kubeconfig: str | None, schedule: Path | None = None
) -> Iterator[Desk]:
    from ebbtide.settings import read_settings
    from ebbtide.workflows.people import Where, open_desk

    where = Where(fleet=fleet, schedule=schedule, fleet_name=name, namespace=namespace, kubeconfig=kubeconfig)
    with open_desk(where, read_settings()) as desk:
        yield desk


def status(
    fleet: FleetFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    watch: Annotated[bool, typer.Option("--watch", help="Again every two seconds, until Ctrl-C.")] = False,
    json: Json = False,
) -> int:
    """Where the schedule stands: phase, nodes on their way, shortages.

    Exit code 1: no controller renewed its Lease lately.
    """
    from ebbtide.cli.render_status import status_json, status_text
    from ebbtide.workflows.people import status as ask

    with _desk(fleet, fleet_name, namespace, kubeconfig) as desk:
        last = ""
        while True:
            found = ask(desk, time.time())
            if json:
                put_json(status_json(found))
            elif (text := status_text(found, width=terminal_width())) != last:
                put(text if not last else f"\n{text}")
                last = text
            if not watch:
                return Exit.DONE if found.alive else Exit.CHECK_SAID_NO
            time.sleep(2.0)


def pause(
    reason: Reason = "",
    fleet: FleetFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    json: Json = False,
) -> int:
    """Begin nothing until `resume`: what is in motion stays where it is."""
    from ebbtide.workflows.people import pause as ask

    with _desk(fleet, fleet_name, namespace, kubeconfig) as desk:
        ask(desk, reason)
        put_json({"paused": True, "reason": reason}) if json else say(f"{desk.fleet.name} is paused")
    return Exit.DONE


def resume(
    fleet: FleetFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    json: Json = False,
) -> int:
    """End a pause."""
    from ebbtide.workflows.people import resume as ask

    with _desk(fleet, fleet_name, namespace, kubeconfig) as desk:
        was = ask(desk)
        text = f"{desk.fleet.name} goes on" if was else f"{desk.fleet.name} was not paused"
        put_json({"paused": False, "was_paused": was}) if json else say(text)
    return Exit.DONE


def override(
    name: Annotated[str, typer.Argument(help="The override's name.")],
    hold: Annotated[bool, typer.Option("--hold", help="Nothing moves.")] = False,
    window: Annotated[str, typer.Option(metavar="WINDOW", help="This window's plan holds.")] = "",
    workload: Annotated[str, typer.Option("--release", metavar="WORKLOAD", help="Leave this workload alone.")] = "",
    until: Annotated[str, typer.Option(metavar="WHEN", help="Its end: 2026-09-10T18:00 in the Fleet's zone.")] = "",
    reason: Reason = "",
    lift: Annotated[bool, typer.Option("--lift", help="Take it away before its end.")] = False,
    fleet: FleetFile = None,
    schedule: ScheduleFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    json: Json = False,
) -> int:
    """Ask for something other than the plan, until an instant: it survives planning again."""
    from ebbtide.errors import InputError, Place
    from ebbtide.workflows import people

    with _desk(fleet, fleet_name, namespace, kubeconfig, schedule) as desk:
        if lift:
            was = people.lift(desk, name)
            text = f"{name} is lifted" if was else f"there is no override {name}"
            put_json({"lifted": was}) if json else say(text)
            return Exit.DONE
        for field, value in (("--until", until), ("--reason", reason)):
            if not value:
                raise InputError("is missing", kind="bad_override", place=Place(field=field))
        made = people.override(
            desk, name, hold=hold, window=window, release=workload, until=until, reason=reason, now_s=time.time()
        )
        if json:
            put_json({"name": made.name, "kind": str(made.kind), "what": made.what, "until": until})
        else:
            say(f"{made.name}: {made.kind} {made.what}".rstrip() + f" until {until}")
    return Exit.DONE


def history(
    last: Annotated[int, typer.Option(min=1, max=500, help="How many decisions.")] = 30,
    fleet: FleetFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    json: Json = False,
) -> int:
    """What was decided lately, and why: acts, and what was withheld."""
    from ebbtide.cli.render_status import history_text
    from ebbtide.workflows.people import history as ask

    with _desk(fleet, fleet_name, namespace, kubeconfig) as desk:
        found = ask(desk, last)
        put_json({"decisions": found}) if json else put(history_text(found, width=terminal_width()))
    return Exit.DONE


def release(
    force: Annotated[bool, typer.Option("--force", help="Though a controller acts.")] = False,
    fleet: FleetFile = None,
    fleet_name: FleetName = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    json: Json = False,
) -> int:
    """Give everything back: bounds, quota, cordons, marks, parked work. Works without a controller."""
    from ebbtide.workflows.release import release as give

    with _desk(fleet, fleet_name, namespace, kubeconfig) as desk:
        found = give(desk, time.time(), force=force)
    if json:
        put_json({"released": found.done, "failed": found.failed, "away": found.away})
    else:
        put(
            "\n".join([*found.done, *(f"on its way, and will come: {one}" for one in found.away)]) or "nothing was ours"
        )
        for one in found.failed:
            say(f"not given back: {one}")
    return Exit.WORLD if found.failed else Exit.DONE
