"""`ebbtide claims`: what was measured, held against what is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json

claims = typer.Typer(
    name="claims",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Capacity claims, held against what is.",
)


@claims.callback()
def _root() -> None:
    """Capacity claims, held against what is."""


@claims.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="CLAIM...", help="Claims; without: all that the Fleet names.")
    ] = None,
    fleet: Annotated[
        Path | None, typer.Option("--fleet", metavar="FLEET", help="The Fleet that plans on them: what it expects.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="The cluster where its workloads run; default: the Fleet's.")
    ] = None,
    kubeconfig: Annotated[str | None, typer.Option("--kubeconfig", metavar="FILE", help="Another one.")] = None,
    days: Annotated[int, typer.Option("--days", min=3, max=366, help="How many days back to look.")] = 28,
    rate: Annotated[str | None, typer.Option("--rate", metavar="PROMQL", help="Requests a second.")] = None,
    replicas: Annotated[str | None, typer.Option("--replicas", metavar="PROMQL", help="Replicas that serve.")] = None,
    within: Annotated[
        list[str] | None,
        typer.Option("--within", metavar="PROMQL", help="Share of requests within a target; once for each."),
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step-s", min=15, max=86_400, help="Seconds between two looks of the queries.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask neither cluster nor Prometheus.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")] = False,
) -> int:
    """Is a claim still true: its date, what the Fleet expects, what runs, what users saw (EBBTIDE_PROMETHEUS_URL).

    Exit code 1: a check said no.
    """
    from whenever import Instant

    from ebbtide.cli.columns import terminal_width
    from ebbtide.cli.render_claims import checked_json, checked_text
    from ebbtide.settings import read_settings
    from ebbtide.workflows.claims_check import Asked, check_claims

    asked = Asked(
        fleet=fleet,
        context=context,
        kubeconfig=kubeconfig,
        offline=offline,
        days=days,
        rate=rate,
        replicas=replicas,
        within=tuple(within or ()),
        step_s=step,
    )
    found = check_claims(files or (), asked, read_settings(), at=Instant.now().round("second").to_fixed_offset())
    put_json(checked_json(found)) if json else put(checked_text(found, width=terminal_width()))
    return Exit.DONE if all(one.stands for one in found) else Exit.CHECK_SAID_NO


@claims.command("import")
def import_results(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Results of one tool; several files are several loads.")
    ],
    target: Annotated[
        Path, typer.Option("--target", metavar="TARGET", help="The Target document: what had to hold, and on what.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="CLAIM", help="The claim to write.")] = Path(
        "claim.yaml"
    ),
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")] = False,
) -> int:
    """Make a claim of what guidellm, AIPerf or inference-perf measured, and warn of how they measured it.

    Nothing is sent. Exit code 3: the lowest load misses a target already; nothing is written.
    """
    from ebbtide.cli.answers import say
    from ebbtide.cli.render_import import imported_json, imported_text
    from ebbtide.errors import one_line
    from ebbtide.workflows.claims_import import import_claim

    found = import_claim(files, target, output)
    if json:
        put_json(imported_json(found))
    else:
        for line in found.claim.warnings if found.claim is not None else ():
            say(line)
        put(imported_text(found))
        if found.written:
            say("wrote " + ", ".join(one_line(str(path)) for path in found.written))
    return Exit.DONE if found.claim is not None else Exit.INFEASIBLE
