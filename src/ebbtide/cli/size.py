"""`ebbtide size`: the calculator, by a service time or by a claim."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json
from ebbtide.cli.columns import terminal_width
from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.cli.options import errors_by_option
from ebbtide.errors import InputError, Place


def size(
    context: typer.Context,
    arrival_rate_rps: Annotated[float, typer.Option(help="Requests a second that arrive.")],
    service_time_s: Annotated[
        float | None, typer.Option(help="Mean service time of a request; this or --claim.")
    ] = None,
    claim: Annotated[
        Path | None, typer.Option(metavar="CLAIM", help="What a replica holds; then servers are replicas.")
    ] = None,
    servers: Annotated[int | None, typer.Option(help="Servers to judge; or give a target instead.")] = None,
    target_wait_s: Annotated[float | None, typer.Option(help="The wait to stay within.")] = None,
    target_percentile: Annotated[float | None, typer.Option(help="The share of requests that is to.")] = None,
    scv_arrival: Annotated[float, typer.Option(help="Squared coefficient of variation between arrivals.")] = 1.0,
    scv_service: Annotated[float, typer.Option(help="The same of service times.")] = 1.0,
    patience_s: Annotated[float, typer.Option(help="Mean patience of users; inf: nobody gives up.")] = math.inf,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")] = False,
) -> int:
    """The calculator: what n servers do, or the least servers for a target; by a claim, what n replicas hold."""
    ensure_kernel_cache()
    from ebbtide.cli.render_size import held_json, held_text, size_json, size_text

    if claim is not None:
        _refuse_with_claim(context)
        from ebbtide.workflows.claims_size import held

        with errors_by_option(context, also={}):
            held_by = held(claim, arrival_rate_rps=arrival_rate_rps, replicas=servers)
        put_json(held_json(held_by)) if json else put(held_text(held_by))
        return Exit.DONE
    if service_time_s is None:
        raise InputError(
            "is missing", kind="missing_field", place=Place(field="--service-time-s"), hint="or give --claim"
        )
    from ebbtide.queueing.calculator import size as answer

    with errors_by_option(context, also={"offered_load": "arrival_rate_rps"}):
        found = answer(
            arrival_rate_rps=arrival_rate_rps,
            service_time_s=service_time_s,
            servers=servers,
            target_wait_s=target_wait_s,
            target_percentile=target_percentile,
            scv_arrival=scv_arrival,
            scv_service=scv_service,
            patience_s=patience_s,
        )
    put_json(size_json(found)) if json else put(size_text(found, width=terminal_width()))
    return Exit.DONE


def _refuse_with_claim(context: typer.Context) -> None:
    """A claim holds its own targets, however long a request takes: nothing else may be asked beside it."""
    taken = {"arrival_rate_rps", "claim", "servers", "json"}
    for one in context.command.params:
        given = context.get_parameter_source(str(one.name))
        if one.name not in taken and given is not None and given.name == "COMMANDLINE":
            raise InputError(
                "has no meaning beside --claim, which holds its own targets",
                kind="conflicting_fields",
                place=Place(field=one.opts[0]),
            )
