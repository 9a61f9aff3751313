"""Numba kernels for where a curve may begin and end: capacity's floor, and the point where savings stay small."""

from __future__ import annotations

from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


@njit(cache=True, nogil=True)
def fill_floors(
    slots: int,
    is_patient: bool,
    share: float,
    rates_rps: Floats,
    service_time_s: Floats,
    offsets: Ints,
    at_most: int,
    out: Ints,
) -> None:
    """A number of replicas per group below which capacity alone keeps the share out of reach, at least 1.

    Without patience a sample counts whole below capacity and not at all above; with patience it is served up to it.
    """
    for g in range(out.size):
        total = 0.0
        for i in range(offsets[g], offsets[g + 1]):
            total += rates_rps[i]
        below, n = 0, at_most + 1
        while n - below > 1:
            middle = (n + below) // 2
            capacity_rps = middle * slots / service_time_s[g]
            served = 0.0
            for i in range(offsets[g], offsets[g + 1]):
                if is_patient:
                    served += min(rates_rps[i], capacity_rps)
                elif rates_rps[i] < capacity_rps * (1.0 + 1e-12):
                    served += rates_rps[i]
            if served < share * total * (1.0 - 1e-9):
                below = middle
            else:
                n = middle
        out[g] = n


@njit(cache=True, nogil=True)
def fill_lengths(values: Floats, starts: Ints, low: Ints, settled: Ints, stop_saving: float, lengths: Ints) -> None:
    """Where each curve may end: at the first point after its start whose saving over the one before is below
    ``stop_saving`` and stays so: all samples are below capacity (n > settled), where savings shrink with n, or less
    than that waits at all. The curve's whole length + 1 where none does."""
    for g in range(lengths.size):
        size = starts[g + 1] - starts[g]
        lengths[g] = size + 1
        for j in range(1, size):
            value = values[starts[g] + j]
            saving = values[starts[g] + j - 1] - value
            if value < stop_saving or (low[g] + j > settled[g] and saving < stop_saving):
                lengths[g] = j + 1
                break
