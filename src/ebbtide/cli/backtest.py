"""`ebbtide backtest`: the past replayed, or the record of a controller in Shadow scored."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json, say
from ebbtide.cli.columns import terminal_width
from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.cli.progress import Talk


def backtest(
    fleet: Annotated[Path, typer.Argument(metavar="FLEET", help="The Fleet document (YAML).")],
    against: Annotated[
        str, typer.Option(metavar="POLICIES", help="Rivals, with commas: static, reactive, cron, hindsight.")
    ] = "static,reactive,cron,hindsight",
    seed: Annotated[int, typer.Option(min=0, help="Of arrivals and services: the same seed, the same run.")] = 1,
    days: Annotated[
        int | None,
        typer.Option(min=1, help="Replay the last so many days only; default: all, or few where requests are many."),
    ] = None,
    troubles: Annotated[
        str, typer.Option(metavar="HOW", help="What goes wrong with nodes, pods and writes: none, usual or wild.")
    ] = "none",
    workloads: Annotated[bool, typer.Option("--workloads", help="Also a table for each workload.")] = False,
    shadow: Annotated[
        list[Path] | None,
        typer.Option(metavar="RECORD", help="Instead: the schedule against what really ran, as `run --record` saw it."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write backtest.html there.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")] = False,
) -> int:
    """Replay past demand under ebbtide and other policies; each plans on what came before.

    With two weeks and more of demand, weeks are replayed; with less, days. Nodes move, and fail, in a simulated world
    that ebbtide's controller runs.
    """
    if shadow:
        return _shadow(fleet, shadow, as_json=json)
    ensure_kernel_cache()
    from ebbtide.cli.render_backtest import backtest_json, render_backtest
    from ebbtide.workflows.backtest import backtest as workflow

    rivals = tuple(name.strip() for name in against.split(",") if name.strip())
    with Talk(quiet=json) as talk:
        found = workflow(fleet, output, against=rivals, seed=seed, days=days, troubles=troubles, stage=talk.stage)
    if json:
        put_json(backtest_json(found))
        return Exit.DONE
    for line in found.talk:
        say(line)
    put(
        render_backtest(
            found,
            workloads=workloads,
            colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ,
            width=terminal_width(),
        )
    )
    if found.written:
        say("wrote " + ", ".join(str(path) for path in found.written))
    return Exit.DONE


def _shadow(fleet: Path, records: list[Path], *, as_json: bool) -> int:
    from ebbtide.cli.render_shadow import shadow_json, shadow_text
    from ebbtide.workflows.shadow import shadow

    found, others = shadow(fleet, records)
    if others:
        say(f"{others:,} lines were recorded with another Fleet and are left out")
    put_json(shadow_json(found)) if as_json else put(shadow_text(found))
    return Exit.DONE
