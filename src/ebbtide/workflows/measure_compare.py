"""`ebbtide measure compare`: two Targets measured by turns, and the ratio of what they hold (§M.9)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ebbtide.adapters.documents.files import MARK, Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.target import TargetDocument, read_target
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.evidence import RunFolder, parquet
from ebbtide.adapters.load.messages import Setup
from ebbtide.capacity.compare import Pair, Ratio, compared, next_turn, resolved, side_wish
from ebbtide.capacity.search import Found, outcome
from ebbtide.capacity.steps import SearchState
from ebbtide.errors import InputError, Place
from ebbtide.workflows.measure import MOST_PROCESSES, silent, unspoken
from ebbtide.workflows.measure_differences import cautions, changed, sides_named
from ebbtide.workflows.measure_job import Job, prepared, wish_of
from ebbtide.workflows.measure_start import anew
from ebbtide.workflows.measure_steps import Measuring, Run, Watch, replay

Told = Callable[[str], None]
SIDES = ("first", "second")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredSide:
    """One setting: its name, what its search found, and its steps."""

    name: str
    document: TargetDocument
    found: Found
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """The first setting's sustained rate over the second's, of a replica each; None: a side has no interval yet.

    ``changed`` are the settings and hardware that are known to differ; ``warnings`` what makes the ratio one of unlike
    things.
    """

    sides: tuple[MeasuredSide, MeasuredSide]
    ratio: Ratio | None
    resolved: bool
    tolerance: float
    confidence: float
    changed: tuple[str, ...]
    warnings: tuple[str, ...]
    written: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Side:
    """One setting while it is measured."""

    name: str
    job: Job
    folder: RunFolder
    crew: Crew


def compare(
    first: Path,
    second: Path,
    output: Path,
    *,
    answer: Callable[[Compared], dict[str, Any]],
    processes: int = 1,
    resume: bool = False,
    watch: Watch = silent,
    told: Told = unspoken,
) -> Compared:
    """Measure both Targets by turns; writes ``answer`` (JSON) and both sides' raw steps (.parquet) beside it.

    What may be spent on each side, the tolerance of the ratio, confidence and seed are the first Target's. Finished
    steps are kept in ``<output>.first.steps`` and ``.second.steps`` until then, and ``resume`` goes on from there.
    Raises ``InputError`` for a wrong Target, ``WorldError`` for an endpoint that does not answer or a rate that can't
    be offered from here.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise InputError(f"--processes is {processes}; from 1 to {MOST_PROCESSES}", kind="out_of_range")
    given = read_target(first), read_target(second)
    refuse_foreign(output)
    names = sides_named(given)
    with ExitStack() as stack:
        sides = [
            _side(document, name, RunFolder(output.with_suffix(f".{place}.steps")), stack, processes, told)
            for document, name, place in zip(_searched_alike(given), names, SIDES, strict=True)
        ]
        runs = _begun(sides, resume=resume, told=told)
        _by_turns(sides, runs, watch)
    return _written(given, sides, runs, output, answer)


def _searched_alike(given: tuple[TargetDocument, TargetDocument]) -> tuple[TargetDocument, TargetDocument]:
    """The second with the first's search, all but where it starts."""
    first, second = given
    search = first.spec.search.model_copy(update={"start": second.spec.search.start})
    return first, replace(second, spec=second.spec.model_copy(update={"search": search}))


def _side(
    document: TargetDocument, name: str, folder: RunFolder, stack: ExitStack, processes: int, told: Told
) -> _Side:
    job = prepared(document, lambda text: told(f"{name}, {text}"))
    if job.quality is not None:
        stack.callback(job.quality.check.close)
    setup = Setup(endpoint=job.endpoint, items=job.items, law=job.law, keep_texts=job.quality is not None)
    return _Side(name=name, job=job, folder=folder, crew=stack.enter_context(Crew(setup, processes=processes)))


def _begun(sides: Sequence[_Side], *, resume: bool, told: Told) -> list[Run]:
    if resume:
        return _resumed(sides)
    runs = []
    for side in sides:
        run, _ = anew(side.job, side.folder, side.crew, lambda text, name=side.name: told(f"{name}, {text}"))  # type: ignore[misc] # mypy knows no defaults of a lambda's
        if run.state.done is not None:
            raise InputError(f"{side.name}: {run.state.done}", kind="infeasible_quality")
        run.state = replace(run.state, wish=side_wish(run.state.wish))
        runs.append(run)
    return runs


def _resumed(sides: Sequence[_Side]) -> list[Run]:
    """Both runs from their kept steps, in the order in which they were made."""
    runs, kept = [], []
    for side in sides:
        about, place = side.folder.about(), Place(file=str(side.folder.path))
        if about is None:
            raise InputError("there is no comparison to go on with", kind="no_run", place=place)
        if about["digest"] != side.job.document.digest:
            message = f"was begun with another {side.job.document.path.name}; what is kept is of the old one"
            raise InputError(message, kind="other_target", place=place, hint="begin without --resume")
        run = Run(SearchState(wish=side_wish(wish_of(side.job, about["start_rps"]))))
        run.sent = about["sent"]
        runs.append(run)
        kept.append(side.folder.steps())
    tolerance = _tolerance(sides)
    while (turn := next_turn(_states(runs), tolerance)) is not None:
        made, run = kept[turn.side], runs[turn.side]
        if len(run.steps) == len(made):
            break
        replay(run, made[len(run.steps)], turn.plan)
    return runs


def _by_turns(sides: Sequence[_Side], runs: Sequence[Run], watch: Watch) -> None:
    tolerance, seed = _tolerance(sides), sides[0].job.document.spec.search.seed
    both = [
        Measuring(
            side.crew,
            side.folder,
            run,
            items=side.job.items,
            quality=side.job.quality,
            seed=seed,
            watch=watch,
            side=side.name,
        )
        for side, run in zip(sides, runs, strict=True)
    ]
    while (turn := next_turn(_states(runs), tolerance)) is not None:
        both[1 - turn.side].pause()
        both[turn.side].step(turn.plan, (seed, *turn.arrivals))
    for one in both:
        one.pause()


def _written(
    given: tuple[TargetDocument, TargetDocument],
    sides: Sequence[_Side],
    runs: Sequence[Run],
    output: Path,
    answer: Callable[[Compared], dict[str, Any]],
) -> Compared:
    pair, search = _states(runs), given[0].spec.search
    evidence = [output.with_suffix(f".{place}.parquet") for place in SIDES]
    first, second = (
        MeasuredSide(name=side.name, document=document, found=outcome(run.state), run=run)
        for side, document, run in zip(sides, given, runs, strict=True)
    )
    found = Compared(
        sides=(first, second),
        ratio=_of_a_replica(compared(pair), given),
        resolved=resolved(pair, search.tolerance),
        tolerance=search.tolerance,
        confidence=search.confidence,
        changed=changed(sides[0].job, sides[1].job),
        warnings=cautions(given, sides[0].job, sides[1].job),
        written=(output, *evidence),
    )
    content = json.dumps({"mark": MARK.decode(), **answer(found)}, indent=2) + "\n"
    make_folder(output.parent)
    steps = [Output(path=path, content=parquet(run.steps)) for path, run in zip(evidence, runs, strict=True)]
    write_together([Output(path=output, content=content.encode()), *steps])
    for side in sides:
        side.folder.forget()
    return found


def _of_a_replica(found: Ratio | None, given: tuple[TargetDocument, TargetDocument]) -> Ratio | None:
    """The ratio of what one replica of each holds."""
    if found is None:
        return None
    each = given[1].spec.replicas / given[0].spec.replicas
    return Ratio(ratio=each * found.ratio, low=each * found.low, high=each * found.high)


def _states(runs: Sequence[Run]) -> Pair:
    return runs[0].state, runs[1].state


def _tolerance(sides: Sequence[_Side]) -> float:
    return sides[0].job.document.spec.search.tolerance
