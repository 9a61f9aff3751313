"""What no policy can exceed, though it knew all jobs and their true durations: a linear relaxation by energies.

As ``ebbtide.batch.bound``, weaker and for more: one heap of GPUs without nodes, and every job may be stopped and go on
anywhere without loss. So a job that is in time has done, in an interval [a, b], at least its length less the time that
its window has outside (Baptiste, Le Pape & Nuijten 2001, ch. 3, preemptive energies). Stated is the dual sum (weak
duality), not the solver's word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from ebbtide.batch.hollows import Hollow
from ebbtide.simulate.jobs import Real

MARKS = 48


def clairvoyant_usd(real: Sequence[Real], hollows: Sequence[Hollow]) -> float:
    """An upper bound on the value of jobs in time."""
    until_s = max(one.edges_s[-1] for one in hollows)
    release = np.array([one.job.earliest_start_s for one in real])
    latest = np.array([min(one.job.deadline_s or until_s, until_s) for one in real])
    length, gpus = np.array([one.lasts_s for one in real]), np.array([one.job.gpus for one in real])
    worth = np.where(release + length <= latest, [one.job.value_usd for one in real], 0.0)
    edges = {edge for one in hollows for edge in one.edges_s}
    instants = np.concatenate([release, latest])
    marks = np.unique([*np.quantile(instants, np.linspace(0, 1, MARKS), method="nearest"), *edges])
    first, last = (marks[index][:, None] for index in np.triu_indices(len(marks), k=1))
    outside = np.maximum(np.minimum(first, latest) - release, 0) + np.maximum(latest - np.maximum(last, release), 0)
    energy = np.maximum(length - outside, 0.0) * gpus
    held = np.array([_gpu_s(hollows, float(a), float(b)) for a, b in zip(first[:, 0], last[:, 0], strict=True)])
    scale = np.maximum(held, 1.0)
    rows, limits = energy / scale[:, None], held / scale
    found = linprog(-worth, A_ub=rows, b_ub=limits, bounds=(0.0, 1.0), method="highs")
    if found.x is None:
        return float(worth.sum())
    weights = np.maximum(-found.ineqlin.marginals, 0.0)
    return float(weights @ limits + np.maximum(worth - weights @ rows, 0.0).sum())


def _gpu_s(hollows: Sequence[Hollow], from_s: float, until_s: float) -> float:
    return sum(
        max(min(end, until_s) - max(start, from_s), 0.0) * nodes * one.gpus_per_node
        for one in hollows
        for start, end, nodes in zip(one.edges_s, one.edges_s[1:], one.nodes, strict=False)
    )
