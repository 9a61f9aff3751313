"""`ebbtide measure` and the server to try it on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.answers import Exit, put, put_json, say
from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.errors import one_line

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for scripts.")]


def measure(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The Target document (YAML).")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="CLAIM", help="The claim to write; evidence and page beside it.")
    ] = Path("claim.yaml"),
    processes: Annotated[int, typer.Option(min=1, help="Processes that send; one does 5,000 requests a second.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the steps of a run that was stopped.")] = False,
    json: Json = False,
) -> int:
    """Find the highest rate that a service holds, and write it down as a claim with its evidence.

    `ebbtide measure compare FIRST SECOND` sets two against each other. Exit code 3: the budget ended before the
    tolerance; what was reached is written.
    """
    ensure_kernel_cache()
    from ebbtide.cli.measure_talk import MeasureTalk
    from ebbtide.cli.render_measure import measured_json, measured_text
    from ebbtide.workflows.measure import measure as workflow

    with MeasureTalk(quiet=json) as talk:
        try:
            found = workflow(target, output, processes=processes, resume=resume, watch=talk.watch, told=talk.told)
        except KeyboardInterrupt:
            talk.stopped(output.with_suffix(".steps"))
            raise
    if json:
        put_json(measured_json(found))
    else:
        for line in found.warnings:
            say(line)
        put(measured_text(found))
        if found.written:
            say("wrote " + ", ".join(one_line(str(path)) for path in found.written))
    return Exit.DONE if found.found.resolved else Exit.INFEASIBLE


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="The Target of one setting (YAML).")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="The Target of the other.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The answer to write (JSON); evidence beside it.")
    ] = Path("comparison.json"),
    processes: Annotated[int, typer.Option(min=1, help="Processes that send, for each of the two.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the steps of a run that was stopped.")] = False,
    json: Json = False,
) -> int:
    """Measure two settings by turns, with the same arrivals, and find how many times the second's rate the first holds.

    Both must be up all the while. Budget (of each), tolerance (of the ratio) and seed are the first Target's. Exit code
    3: the budget ended before the tolerance; what was reached is written.
    """
    ensure_kernel_cache()
    from ebbtide.cli.measure_talk import MeasureTalk
    from ebbtide.cli.render_compare import compared_json, compared_text
    from ebbtide.workflows.measure_compare import compare as workflow

    with MeasureTalk(quiet=json) as talk:
        try:
            found = workflow(
                first,
                second,
                output,
                answer=compared_json,
                processes=processes,
                resume=resume,
                watch=talk.watch,
                told=talk.told,
            )
        except KeyboardInterrupt:
            talk.stopped(output.with_suffix(".first.steps"), output.with_suffix(".second.steps"))
            raise
    if json:
        put_json(compared_json(found))
    else:
        for line in found.warnings:
            say(line)
        put(compared_text(found))
        say("wrote " + ", ".join(one_line(str(path)) for path in found.written))
    return Exit.DONE if found.resolved else Exit.INFEASIBLE


def simulate_server(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    slots: Annotated[int, typer.Option(min=1, help="Requests served at once.")] = 4,
    queue: Annotated[int | None, typer.Option(min=0, help="Requests that may wait; default: any number.")] = None,
    time_s: Annotated[float, typer.Option(min=0.0001, help="Mean time of a request.")] = 0.2,
    scv: Annotated[
        float, typer.Option(min=0.0, help="Its squared coefficient of variation; 0: always the same.")
    ] = 1.0,
    first_share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the time, before the first token.")] = 0.2,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer.")] = 16,
    wrong: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of wrong answers when empty.")] = 0.0,
    wrong_slope: Annotated[float, typer.Option(min=0.0, help="Times (present / slots)² more of them.")] = 0.0,
    failing: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of requests that end in a 500.")] = 0.0,
    token_env: Annotated[str | None, typer.Option(help="The variable that holds the token it asks for.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of its times and errors.")] = 1,
) -> int:
    """Serve a simulated model with OpenAI's interface, to try `measure` on; Ctrl-C ends it.

    Its queue is exact: with SCV 1 it is M/M/c, whose sustained rate is known.
    """
    from ebbtide.adapters.simserver.serve import serve
    from ebbtide.adapters.simserver.slots import Shape

    shape = Shape(
        slots=slots,
        queue=queue,
        time_s=time_s,
        scv=scv,
        first_share=first_share,
        tokens=tokens,
        wrong_base=wrong,
        wrong_slope=wrong_slope,
        failing=failing,
        seed=seed,
    )
    serve(shape, host=host, port=port, token_env=token_env, up=put)
    return Exit.DONE
