"""Samples that repeat: overlapping windows ask of the same past interval again and again; each is worked out once.

What belongs here: finding the distinct samples of a batch, and adding their curves up into the groups'. What doesn't:
what a sample does (``curve_kernels``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints

LEAST_SAMPLES = 2_000  # below, a batch is done sooner than its repeats are found
LEAST_REPEATS = 4  # a curve that is used less often is not worth keeping


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeats:
    """Sample ``i`` of a batch is like distinct sample ``number[i]``; the other arrays say what the distinct ones are.

    ``bound_s`` is what else must be alike for two samples to be one: the horizon of a waiting curve, else 0.
    """

    number: Ints
    rates_rps: Floats
    scv: Floats
    service_time_s: Floats
    service_scv: Floats
    bound_s: Floats

    def ranges(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The counts of replicas that each distinct sample is asked for, given every sample's own; none: (1, 0)."""
        least = np.full(len(self.rates_rps), np.iinfo(np.int64).max)
        most = np.zeros(len(self.rates_rps), dtype=np.int64)
        np.minimum.at(least, self.number, low)
        np.maximum.at(most, self.number, high)
        return np.where(most > 0, least, 1), most

    def kept(self, is_kept: NDArray[np.bool_]) -> Repeats:
        """The numbers of some samples only; the distinct samples stay."""
        return replace(self, number=self.number[is_kept])


def find_repeats(
    rates_rps: Floats, scv: Floats, service_time_s: Floats, service_scv: Floats, bound_s: Floats, group: Ints
) -> Repeats | None:
    """The distinct samples of a batch; None where few repeat. The last three values are by group, ``group`` by sample.

    >>> rates, one = np.tile([1.0, 2.0], 2000), np.ones(1)
    >>> found = find_repeats(rates, np.ones(4000), one, one, one, np.zeros(4000, np.int64))
    >>> found is not None and found.rates_rps.tolist()
    [1.0, 2.0]
    >>> find_repeats(rates[:100], np.ones(100), one, one, one, np.zeros(100, np.int64)) is None
    True
    """
    if len(rates_rps) < LEAST_SAMPLES:
        return None
    label, _ = _alike(service_time_s.view(np.int64), service_scv.view(np.int64), bound_s.view(np.int64))
    number, first = _alike(rates_rps.view(np.int64), scv.view(np.int64), label[group])
    if len(first) * LEAST_REPEATS > len(number):
        return None
    of = group[first]
    return Repeats(
        number=number,
        rates_rps=rates_rps[first],
        scv=scv[first],
        service_time_s=service_time_s[of],
        service_scv=service_scv[of],
        bound_s=bound_s[of],
    )


def _alike(one: Ints, two: Ints, three: Ints) -> tuple[Ints, Ints]:
    """Equal numbers for equal triples, and where each number first stands."""
    number, first = np.empty(len(one), np.int64), np.empty(len(one), np.int64)
    distinct = number_alike(one, two, three, number, first)
    return number, first[:distinct]


@njit(cache=True, nogil=True)
def number_alike(one: Ints, two: Ints, three: Ints, number: Ints, first: Ints) -> int:
    """Number equal triples alike, in the order of their first place; how many there are. Open addressing by hash."""
    size = 8
    while size < 2 * one.size:
        size *= 2
    mask = size - 1
    table = np.full(size, -1)
    distinct = 0
    for i in range(one.size):
        mixed = one[i] * 31 + two[i] * 1_000_003 + three[i] * 7_368_787
        place = ((mixed ^ (mixed >> 29)) * 668_265_263 >> 7) & mask
        while True:
            known = table[place]
            if known < 0:
                table[place], first[distinct], number[i] = distinct, i, distinct
                distinct += 1
                break
            j = first[known]
            if one[j] == one[i] and two[j] == two[i] and three[j] == three[i]:
                number[i] = known
                break
            place = (place + 1) & mask
    return distinct


@njit(cache=True, nogil=True)
def add_curves(
    values: Floats,
    begin: Ints,
    least: Ints,
    number: Ints,
    offsets: Ints,
    low: Ints,
    high: Ints,
    starts: Ints,
    out: Floats,
) -> None:
    """Each group's sum at low … high of its samples' curves; distinct sample u's value at n is ``values[begin[u] + n −
    least[u]]``."""
    for g in range(low.size):
        for i in range(offsets[g], offsets[g + 1]):
            u = number[i]
            source = begin[u] + low[g] - least[u]
            for j in range(high[g] - low[g] + 1):
                out[starts[g] + j] += values[source + j]


@njit(cache=True, nogil=True)
def first_reached(values: Floats, starts: Ints, low: Ints, share: float, out: Ints) -> None:
    """Per curve the least n whose value is at least ``share``; −1 where none is."""
    for g in range(low.size):
        out[g] = -1
        for j in range(starts[g + 1] - starts[g]):
            if values[starts[g] + j] >= share:
                out[g] = low[g] + j
                break
