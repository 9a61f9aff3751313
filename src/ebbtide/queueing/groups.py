"""Groups of rate samples: each question goes to the kernel, for every sample or for every distinct one.

What belongs here: sums over a group's samples at given counts of replicas. What doesn't: the search for a count
(``searches``), the end of a waiting curve (``waiting``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing, TargetKind
from ebbtide.queueing import curve_kernels, elementwise
from ebbtide.queueing.repeats import Repeats, add_curves, find_repeats
from ebbtide.queueing.replicas import Terms
from ebbtide.queueing.sample_laws import MOST_STEPS
from ebbtide.queueing.station import CODES


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """A ragged batch (see ``curves``) with the workload's shape; arrays are contiguous float64 and int64."""

    slots: int
    balancing: Balancing
    patience_s: float
    rates_rps: Floats
    scv: Floats
    service_time_s: Floats
    service_scv: Floats
    offsets: Ints
    repeats: Repeats | None = None

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.service_time_s)

    @property
    def group(self) -> Ints:
        """Each sample's group."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    @property
    def total_rps(self) -> Floats:
        """Sum of each group's rates."""
        totals: Floats = np.bincount(self.group, self.rates_rps, self.size).astype(np.float64)
        return totals

    @property
    def is_patient(self) -> bool:
        """Whether users give up."""
        return self.patience_s < np.inf

    @property
    def is_stepwise(self) -> bool:
        """Whether a recursion leads cheaply from n to n + 1 replicas, up from where capacity allows."""
        is_plain = self.balancing is not Balancing.RANDOM and self.slots <= MOST_STEPS and not self.is_patient
        return bool(is_plain and np.all(self.scv == 1.0))

    def sharing(self, bound_s: Floats) -> Groups:
        """The same batch, its repeating samples (alike in ``bound_s`` of their group too) found where that pays."""
        if self.is_stepwise and self.balancing is Balancing.POOLED:
            return self  # done sooner than repeats are found
        columns = (self.rates_rps, self.scv, self.service_time_s, self.service_scv, bound_s)
        return replace(self, repeats=find_repeats(*columns, self.group))

    def terms(self, *, is_latency: bool, bound_s: float) -> Terms:
        """What the kernels need to know of the station."""
        return Terms(CODES[self.balancing], self.slots, 1.0, 1.0, self.patience_s, is_latency, bound_s)

    def laws(self, replicas: Ints) -> tuple[Floats, Floats]:
        """(ln P(W > 0), θ) of every sample with its group's replicas, as if nobody gave up."""
        group = self.group
        count = len(group)
        log_p, decay = np.empty(count), np.empty(count)
        elementwise.fill_laws(
            np.full(count, CODES[self.balancing]),
            np.full(count, self.slots),
            replicas[group],
            self.rates_rps,
            self.service_time_s[group],
            self.scv,
            self.service_scv[group],
            log_p,
            decay,
        )
        return log_p, decay

    def attainment(self, kind: TargetKind, bound_s: float, low: Ints, high: Ints) -> tuple[Floats, Ints]:
        """``curves.attainment_curves``."""
        least = curve_kernels.NEGLIGIBLE_SHARE
        sums, starts = self.sums(False, least, kind, np.full(self.size, bound_s), low, high)
        totals = np.repeat(self.total_rps, np.diff(starts))
        values = np.ones(sums.size)
        np.divide(sums, totals, out=values, where=totals > 0.0)
        return np.clip(values, 0.0, 1.0), starts

    def sums(
        self, is_mean: bool, least: float, kind: TargetKind, bound_s: Floats, low: Ints, high: Ints
    ) -> tuple[Floats, Ints]:
        """Σ rate × attained share, or Σ rate × E[min(W, bound)], of each group at low … high."""
        if self.repeats is not None:
            starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.maximum(0, high - low + 1))))
            sums = np.zeros(starts[-1])
            self._add_shared(self.repeats, is_mean, least, kind, bound_s, low, high, starts, sums)
            return sums, starts
        never = np.full(self.size, np.inf)
        return self.walk(is_mean, least, -np.inf, never, kind, bound_s, low, high)

    def walk(
        self,
        is_mean: bool,
        least: float,
        stop_saving: float,
        enough: Floats,
        kind: TargetKind,
        bound_s: Floats,
        low: Ints,
        high: Ints,
    ) -> tuple[Floats, Ints]:
        """``curve_kernels.walk`` over all groups."""
        terms = self.terms(is_latency=kind is TargetKind.LATENCY and not is_mean, bound_s=0.0)
        batch = (self.rates_rps, self.scv, self.service_time_s, self.service_scv, bound_s, self.offsets)
        return curve_kernels.walk(terms, is_mean, least, stop_saving, enough, *batch, low, high)

    def _add_shared(
        self,
        repeats: Repeats,
        is_mean: bool,
        least: float,
        kind: TargetKind,
        bound_s: Floats,
        low: Ints,
        high: Ints,
        starts: Ints,
        sums: Floats,
    ) -> None:
        """Every distinct sample's curve once, over all counts that any of its groups asks for; then additions."""
        group, count = self.group, len(repeats.rates_rps)
        first, last = repeats.ranges(low[group], high[group])
        distinct = Groups(
            slots=self.slots,
            balancing=self.balancing,
            patience_s=self.patience_s,
            rates_rps=repeats.rates_rps,
            scv=repeats.scv,
            service_time_s=repeats.service_time_s,
            service_scv=repeats.service_scv,
            offsets=np.arange(count + 1),
        )
        bounds = repeats.bound_s if is_mean else np.full(count, bound_s[0])
        values, begin = distinct.sums(is_mean, least, kind, bounds, first, last)
        add_curves(values, begin, first, repeats.number, self.offsets, low, high, starts, sums)

    def only(self, is_kept: np.ndarray) -> Groups:
        """The same batch without the groups that are not kept."""
        kept = is_kept[self.group]
        sizes = np.diff(self.offsets)[is_kept]
        return Groups(
            slots=self.slots,
            balancing=self.balancing,
            patience_s=self.patience_s,
            rates_rps=self.rates_rps[kept],
            scv=self.scv[kept],
            service_time_s=self.service_time_s[is_kept],
            service_scv=self.service_scv[is_kept],
            offsets=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes))),
            repeats=None if self.repeats is None else self.repeats.kept(kept),
        )
