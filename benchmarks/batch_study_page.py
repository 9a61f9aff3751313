"""The page of the batch study, Markdown: tables from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from benchmarks.batch_study import Draw, Result

EBBTIDE = "ebbtide"

HEAD = """\
# Batch jobs under Kueue's orders, list rules and ebbtide

Written by `uv run python -m benchmarks.batch_study`; do not edit. Jobs: **Microsoft Philly, CC-BY-4.0**, by **Muri,
Apache-2.0** and **ChronusArtifact, MIT**; see `benchmarks/data/README.md`.

{jobs} jobs a draw, {draws} draws (seeds {seeds}; the search was tuned on seed 1 of `benchmarks.batch`). Gang sizes,
durations and the ratios of deadline to duration are the traces', values and submissions are drawn, half of the jobs may
be interrupted. Capacity is one week of whole nodes of eight GPUs: two fifths reserved, the rest a nightly tide, sized
for the load; whole nodes are rounded, so what a draw really asks for is in the table. A job really runs as
long as in the trace; policies know it from its submission on, by an estimate that is off by the assumed law (90th
percentile 1.3 times the median). Nothing running is stopped for another job; what stands on nodes when they leave is:
it goes on from its last half-hourly checkpoint, or begins again where it has none.

*StrictFIFO*, *BestEffortFIFO*: Kueue's, where every job may start on ephemeral nodes; *taint*: only those that may be
interrupted. *EDF* and *least slack* start whatever fits in their order, behind all others what can hardly be in time
any more; on ephemeral nodes also what ends, by its 90th percentile, before they leave. *ebbtide* is the code behind
Kueue's door, planning again at every event, and after an hour without one (the controller looks every ten minutes).
"""

TAIL = """\

*Value*, *missed*: shares of the value, and of the number, of all jobs. *Against ebbtide*: value of ebbtide less that of
the policy, on the same draws: mean and 95 % confidence interval (Student's t of the paired differences). *Wasted*:
GPU-hours of work that was stopped and lost, a draw. *Stopped*: how often jobs without checkpoints were started to be
stopped, a draw. *Bound*: no policy can have more of the value, though it knew all jobs and their true durations
beforehand (a linear relaxation on one heap of GPUs; it knows nothing of nodes); the *gap* is (bound − value) / bound.
A promise is kept if the job was started no later than it was first told, but for a minute.
"""


def page(results: Mapping[float, Mapping[int, Draw]], *, jobs: int) -> str:
    """The whole page."""
    seeds = next(iter(results.values()))
    text = HEAD.format(jobs=jobs, draws=len(seeds), seeds=", ".join(str(seed) for seed in seeds))
    return text + "".join(_at_load(load, list(draws.values())) for load, draws in results.items()) + TAIL


def _at_load(load: float, draws: Sequence[Draw]) -> str:
    asked = f"{min(one.load for one in draws):.2f} to {max(one.load for one in draws):.2f}"
    bound = _mean(draws, lambda one: one.bound)
    gap = _mean(draws, lambda one: 1 - one.results[EBBTIDE].value / one.bound)
    kept = _mean(draws, lambda one: one.results[EBBTIDE].kept or 0.0)
    head = "| policy | value | missed | against ebbtide | wasted GPU-h | stopped |\n|---|---|---|---|---|---|\n"
    rows = "".join(_row(name, draws) for name in draws[0].results)
    return (
        f"\n## Load {load} (asked for: {asked})\n{head}{rows}\n"
        f"Bound {bound:.3f} of all value, gap of ebbtide {100 * gap:.1f} %; {100 * kept:.1f} % of promises kept.\n"
    )


def _row(name: str, draws: Sequence[Draw]) -> str:
    def mean(of: Callable[[Result], float]) -> float:
        return _mean(draws, lambda one: of(one.results[name]))

    lead = "–" if name == EBBTIDE else _paired([one.results[EBBTIDE].value - one.results[name].value for one in draws])
    shares = f"{mean(lambda one: one.value):.3f} | {100 * mean(lambda one: one.missed):.1f} %"
    lost = f"{mean(lambda one: one.wasted_gpu_h):.1f} | {mean(lambda one: one.stopped):.1f}"
    return f"| {name} | {shares} | {lead} | {lost} |\n"


def _paired(differences: Sequence[float]) -> str:
    """Mean and 95 % confidence interval."""
    mean = float(np.mean(differences))
    if len(differences) < 2:
        return f"{mean:+.3f}"
    half = student.ppf(0.975, len(differences) - 1) * float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def _mean(draws: Sequence[Draw], of: Callable[[Draw], float]) -> float:
    return float(np.mean([of(one) for one in draws]))
