"""Groups of rate samples: each question goes to the recursion, the direct kernel or, with patience, plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.fleet.workload import Balancing, TargetKind
from ebbtide.queueing import curve_kernels, curve_limits, elementwise
from ebbtide.queueing.replicas import LATE, MEAN_WAIT, Terms
from ebbtide.queueing.station import CODES

# Points of an array answer held in memory at once: 16 bytes of each of ten columns.
_CHUNK = 200_000
# Points of a waiting curve to begin with; most end within.
_STRETCH = 16


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
    def _is_patient(self) -> bool:
        return self.patience_s < np.inf

    def _terms(self, *, is_latency: bool, bound_s: float) -> Terms:
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
        sums, starts = self._sums(False, least, kind, np.full(self.size, bound_s), low, high)
        totals = np.repeat(self.total_rps, np.diff(starts))
        values = np.ones(sums.size)
        np.divide(sums, totals, out=values, where=totals > 0.0)
        return np.clip(values, 0.0, 1.0), starts

    def _sums(
        self, is_mean: bool, least: float, kind: TargetKind, bound_s: Floats, low: Ints, high: Ints
    ) -> tuple[Floats, Ints]:
        """Σ rate × attained share, or Σ rate × E[min(W, bound)], of each group at low … high."""
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.maximum(0, high - low + 1))))
        sums = np.zeros(starts[-1])
        if self._is_patient:
            self._add_patient(is_mean, kind, bound_s, low, high, starts, sums)
            return sums, starts
        terms = self._terms(is_latency=kind is TargetKind.LATENCY, bound_s=0.0)
        batch = (self.rates_rps, self.scv, self.service_time_s, self.service_scv, bound_s, self.offsets)
        curve_kernels.fill_curves(terms, is_mean, least, *batch, low, high, starts, sums)
        return sums, starts

    def _add_patient(
        self, is_mean: bool, kind: TargetKind, bound_s: Floats, low: Ints, high: Ints, starts: Ints, sums: Floats
    ) -> None:
        """Every (sample, n) as one element, some samples at a time."""
        group = self.group
        lengths = np.diff(starts)[group]
        ends = np.cumsum(lengths)
        first = 0
        while first < len(group):
            last = max(first + 1, int(np.searchsorted(ends, (ends[first - 1] if first else 0) + _CHUNK)))
            sample = np.repeat(np.arange(first, last), lengths[first:last])
            begin = np.cumsum(lengths[first:last]) - lengths[first:last]
            step = np.arange(len(sample)) - np.repeat(begin, lengths[first:last])
            g = group[sample]
            value = self._patient_values(is_mean, kind, bound_s[g], sample, low[g] + step)
            np.add.at(sums, starts[g] + step, self.rates_rps[sample] * value)
            first = last

    def _patient_values(self, is_mean: bool, kind: TargetKind, bound_s: Floats, sample: Ints, replicas: Ints) -> Floats:
        g = self.group[sample]
        count = len(sample)
        out = np.empty(count)
        elementwise.fill_log_patient(
            MEAN_WAIT if is_mean else LATE,
            kind is TargetKind.LATENCY,
            np.full(count, CODES[self.balancing]),
            np.full(count, self.slots),
            replicas,
            self.rates_rps[sample],
            self.service_time_s[g],
            self.scv[sample],
            self.service_scv[g],
            np.full(count, self.patience_s),
            bound_s,
            out,
        )
        return np.exp(out) if is_mean else -np.expm1(out)

    def required(self, kind: TargetKind, bound_s: float, share: float, at_most: int) -> Ints:
        """``curves.required_replicas``."""
        floors = np.empty(self.size, dtype=np.int64)
        batch = (self.rates_rps, self.service_time_s, self.offsets)
        curve_limits.fill_floors(self.slots, self._is_patient, share, *batch, at_most, floors)
        if self._is_recursive(kind):
            out = np.empty(self.size, dtype=np.int64)
            scratch = (np.zeros(self.rates_rps.size), np.empty(self.rates_rps.size))
            terms = self._terms(is_latency=False, bound_s=bound_s)
            curve_kernels.fill_required(terms, share, *batch, floors, at_most, *scratch, out)
            return out
        return np.where(self.total_rps > 0.0, self._search(kind, bound_s, share, floors, at_most), 0)

    def _is_recursive(self, kind: TargetKind) -> bool:
        is_short = self.balancing is Balancing.POOLED and self.slots <= curve_kernels.MOST_STEPS
        is_wait = kind is TargetKind.WAIT and not self._is_patient
        return bool(is_short and is_wait and np.all(self.scv == 1.0) and np.all(self.service_scv == 1.0))

    def _search(self, kind: TargetKind, bound_s: float, share: float, floors: Ints, at_most: int) -> Ints:
        """All groups gallop up from their floors and then bisect: attainment grows with n."""
        below, n = floors - 1, np.minimum(floors, at_most)
        step = np.ones(self.size, dtype=np.int64)
        met = np.full(self.size, at_most + 1)
        while True:
            # A group is settled where its last miss and its first success are neighbours.
            is_open = (met - below > 1) & (self.total_rps > 0.0)
            if not np.any(is_open):
                return met
            part = self.only(is_open)
            attained = part.attainment(kind, bound_s, n[is_open], n[is_open])[0]
            is_met = np.zeros(self.size, dtype=bool)
            is_met[is_open] = attained >= share
            met = np.where(is_met, n, met)
            below = np.where(is_open & ~is_met, n, below)
            step = np.where(is_open & ~is_met, 2 * step, step)
            ahead = np.minimum(below + step, at_most)
            n = np.where(met <= at_most, (met + below) // 2, ahead)

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
        )

    def waiting(self, horizon_s: Floats, low: Ints, high: Ints, stop_saving: float) -> tuple[Floats, Ints]:
        """``curves.waiting_curves``: in stretches that grow until each group's curve may end."""
        heaviest = np.zeros(self.size)
        np.maximum.at(heaviest, self.group, self.rates_rps)
        # Waits fall convexly once the heaviest sample is below capacity.
        settled = (heaviest * self.service_time_s / self.slots).astype(np.int64) + 1
        here, begin = np.arange(self.size), low
        until = np.minimum(high, np.maximum(low, settled) + _STRETCH)
        length = np.zeros(self.size, dtype=np.int64)
        rounds = []
        while here.size:
            values, starts = self._stretch(here, horizon_s, begin[here], until[here], stop_saving)
            sizes = np.diff(starts)
            kept = np.empty(here.size, dtype=np.int64)
            curve_limits.fill_lengths(values, starts, begin[here], settled[here], stop_saving, kept)
            rounds.append((here, begin[here], values, starts, np.minimum(kept, sizes)))
            length[here] = begin[here] - low[here] + np.minimum(kept, sizes)
            here = here[(kept > sizes) & (until[here] < high[here])]
            # The last point once more: its successor's saving counts from it.
            begin = until
            until = np.minimum(high, until + 4 * _STRETCH)
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(length)))
        whole = np.empty(offsets[-1])
        for groups, first, values, starts, kept in rounds:
            step = np.arange(len(values)) - np.repeat(starts[:-1], np.diff(starts))
            place = np.repeat(offsets[groups] + first - low[groups], np.diff(starts)) + step
            is_kept = step < np.repeat(kept, np.diff(starts))
            whole[place[is_kept]] = values[is_kept]
        return whole, offsets

    def _stretch(
        self, groups: Ints, horizon_s: Floats, low: Ints, high: Ints, stop_saving: float
    ) -> tuple[Floats, Ints]:
        """Mean requests waiting of some groups at low … high; what is far below the least saving is left out."""
        is_in = np.zeros(self.size, dtype=bool)
        is_in[groups] = True
        part = self.only(is_in)
        least = max(1e-300, 1e-9 * stop_saving)
        sums, starts = part._sums(True, least, TargetKind.WAIT, horizon_s[groups], low, high)
        samples = np.maximum(1, np.diff(part.offsets))
        return sums / np.repeat(samples, np.diff(starts)), starts
