"""One station, or whole arrays of them: what n replicas of k slots do to a stream of requests.

M/M/c and M/M/c+M are exact; M/G/c, G/G/c and G/G/c+M are the approximations of ``general`` and ``abandonment``;
replicas follow ``replicas``. Everything broadcasts: any field may be an array, and so may t and the percentile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebbtide.errors import InputError
from ebbtide.fleet.demand import Floats
from ebbtide.fleet.workload import Balancing, TargetKind
from ebbtide.queueing import elementwise
from ebbtide.queueing.replicas import ABANDON, LATE, LEAST_LOADED, MEAN_WAIT, POOLED, RANDOM, SERVED, TAIL

CODES = {Balancing.POOLED: POOLED, Balancing.LEAST_LOADED: LEAST_LOADED, Balancing.RANDOM: RANDOM}
# Halvings of an interval until two neighbouring doubles are left, or nearly.
_HALVINGS = 60
# With more, servers × patience overflows a double at loads that are sized; no user has it.
_LONGEST_PATIENCE = 1e100
# Above this share of users who give up, 1 less it has lost two digits, and the served share is computed by itself.
_MANY_GIVE_UP = 0.99


@dataclass(frozen=True, kw_only=True, eq=False)
class Station:
    """Replicas of k slots, the requests that come to them and how long they take.

    ``replicas`` and ``slots`` are whole numbers of at least 1; ``arrival_scv`` and ``service_scv`` are squared
    coefficients of variation (1: Poisson, exponential); ``patience_s`` is the mean of an exponential patience (inf:
    nobody gives up). Without patience a station whose offered load reaches its servers is *unstable*: everybody
    waits, for ever; nothing is attained. ``InputError`` names a field that is out of range.

    >>> station = Station(replicas=[1, 2], arrival_rate_rps=0.5, service_time_s=1.0)
    >>> station.mean_wait_s.round(6).tolist(), station.utilisation.tolist()
    ([1.0, 0.066667], [0.5, 0.25])
    """

    replicas: ArrayLike
    arrival_rate_rps: ArrayLike
    service_time_s: ArrayLike
    slots: ArrayLike = 1
    balancing: Balancing = Balancing.POOLED
    arrival_scv: ArrayLike = 1.0
    service_scv: ArrayLike = 1.0
    patience_s: ArrayLike = math.inf

    def __post_init__(self) -> None:
        for name in ("replicas", "slots", "arrival_rate_rps", "service_time_s", "arrival_scv", "service_scv"):
            _check(name, getattr(self, name), least=1.0 if name in ("replicas", "slots") else 0.0)
        for name in ("service_time_s", "patience_s"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.all(values > 0.0):
                raise InputError(f"{name} must be above 0", kind=f"bad_{name}")
        patience_s = np.where(self._is_patient, self.patience_s, 0.0)
        if np.any(patience_s > _LONGEST_PATIENCE * np.asarray(self.service_time_s, dtype=np.float64)):
            message = f"a patience_s of more than {_LONGEST_PATIENCE:g} service times is not computed"
            raise InputError(message, kind="bad_patience_s", hint="inf says that nobody gives up")

    @cached_property
    def _columns(self) -> tuple[Floats, ...]:
        """The seven fields, broadcast: replicas, slots, rate, service time, arrival SCV, service SCV, patience."""
        fields = (
            self.replicas,
            self.slots,
            self.arrival_rate_rps,
            self.service_time_s,
            self.arrival_scv,
            self.service_scv,
            self.patience_s,
        )
        return np.broadcast_arrays(*(np.asarray(field, dtype=np.float64) for field in fields))

    @cached_property
    def _laws(self) -> tuple[Floats, Floats]:
        """(ln P(W > 0), θ) as if nobody gave up; (0, 0) where unstable."""
        # Copies: numba and numpy warn of broadcast arrays that could be written to, where one has a single element.
        replicas, slots, rate, time, arrival, service, _ = (column.flatten() for column in self._columns)
        log_p, decay = np.empty(rate.shape), np.empty(rate.shape)
        code = np.full(rate.shape, CODES[self.balancing], dtype=np.int64)
        whole = (slots.astype(np.int64), replicas.astype(np.int64))
        elementwise.fill_laws(code, *whole, rate, time, arrival, service, log_p, decay)
        return log_p.reshape(self.shape), decay.reshape(self.shape)

    def _log_patient(self, measure: int, bound_s: ArrayLike, *, is_latency: bool = False) -> Floats:
        """A measure's logarithm with finite patience (NaN where patience is infinite)."""
        columns = np.broadcast_arrays(*self._columns, np.asarray(bound_s, dtype=np.float64))
        out = np.full(columns[0].shape, np.nan)
        here = np.isfinite(columns[6])
        replicas, slots, *floats = (np.ascontiguousarray(column[here]) for column in columns)
        rate, time, arrival, service, patience, bound = floats
        code = np.full(rate.shape, CODES[self.balancing], dtype=np.int64)
        found = np.empty(rate.shape)
        whole = (slots.astype(np.int64), replicas.astype(np.int64))
        elementwise.fill_log_patient(
            measure, is_latency, code, *whole, rate, time, arrival, service, patience, bound, found
        )
        out[here] = found
        return out

    def _with_patience(self, without: Floats, measure: int, bound_s: ArrayLike = 0.0) -> Floats:
        """``without`` where patience is infinite, the measure's logarithm elsewhere."""
        if not np.any(self._is_patient):
            return without
        found = self._log_patient(measure, bound_s)
        return np.where(np.isfinite(self._columns[6]), found, without)

    @property
    def _is_patient(self) -> NDArray[np.bool_]:
        return np.isfinite(np.asarray(self.patience_s, dtype=np.float64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that all fields broadcast to."""
        return self._columns[0].shape

    @property
    def servers(self) -> Floats:
        """Replicas × slots."""
        return self._columns[0] * self._columns[1]

    @property
    def offered_load(self) -> Floats:
        """Arrival rate × service time, in erlangs."""
        return self._columns[2] * self._columns[3]

    @property
    def is_stable(self) -> NDArray[np.bool_]:
        """False where the offered load reaches the servers and nobody gives up."""
        return (self.offered_load < self.servers) | np.isfinite(self._columns[6])

    @property
    def log_probability_of_waiting(self) -> Floats:
        """ln P(W > 0): 0 where unstable, −inf where nobody comes."""
        return self._with_patience(self._laws[0], TAIL)

    @property
    def probability_of_waiting(self) -> Floats:
        """P(W > 0); 0 below 1e-308, where its logarithm still tells."""
        return np.exp(self.log_probability_of_waiting)

    @property
    def mean_wait_s(self) -> Floats:
        """Mean time in the queue of all requests, those that give up included; inf where unstable."""
        log_p, decay = self._laws
        with np.errstate(divide="ignore"):
            log_mean = np.where(decay > 0.0, log_p - np.log(decay), np.inf)
        return np.exp(self._with_patience(log_mean, MEAN_WAIT, np.inf))

    @property
    def abandonment(self) -> Floats:
        """Share of requests that give up: 0 with unlimited patience."""
        return np.exp(self._with_patience(np.full(self.shape, -np.inf), ABANDON))

    @property
    def throughput_rps(self) -> Floats:
        """Requests served a second: the capacity where unstable."""
        capacity = self.servers / self._columns[3]
        served = 1.0 - (lost := self.abandonment)
        if np.any(lost > _MANY_GIVE_UP):
            served = np.where(lost > _MANY_GIVE_UP, np.exp(self._log_patient(SERVED, 0.0)), served)
        return np.where(self.is_stable, np.minimum(self._columns[2] * served, capacity), capacity)

    @property
    def utilisation(self) -> Floats:
        """Busy share of the servers: 1 where unstable."""
        return self.throughput_rps * self._columns[3] / self.servers

    def log_wait_tail(self, t_s: ArrayLike) -> Floats:
        """ln P(W > t), t ≥ 0, W the time in the queue, ended by service or by giving up; 0 where unstable."""
        t = _check("t_s", t_s, least=0.0)
        log_p, decay = self._laws
        return self._with_patience(log_p - decay * t, TAIL, t)

    def wait_tail(self, t_s: ArrayLike) -> Floats:
        """P(W > t)."""
        return np.exp(self.log_wait_tail(t_s))

    def wait_percentile_s(self, percentile: ArrayLike) -> Floats:
        """Least t with P(W ≤ t) ≥ percentile, 0 ≤ percentile < 1; inf where unstable.

        >>> Station(replicas=1, arrival_rate_rps=0.5, service_time_s=1.0).wait_percentile_s([0.5, 0.95]).round(4)
        array([0.    , 4.6052])
        """
        share = check_percentile(percentile)
        late = np.log1p(-share)
        log_p, decay = self._laws
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(decay > 0.0, np.maximum(0.0, (log_p - late) / decay), np.inf)
        if not np.any(self._is_patient):
            return found
        return np.where(np.isfinite(self._columns[6]), self._patient_percentile_s(late), found)

    def _patient_percentile_s(self, log_late: Floats) -> Floats:
        """Bisection: giving up alone keeps P(W > t) below e^(−t/patience)."""
        patience, late = np.broadcast_arrays(np.where(self._is_patient, self._columns[6], 1.0), log_late)
        low, high = np.zeros(late.shape), -late * patience
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            is_late = self._log_patient(TAIL, middle) > late
            low, high = np.where(is_late, middle, low), np.where(is_late, high, middle)
        return np.where(self._log_patient(TAIL, 0.0) <= late, 0.0, high)

    def attainment(self, kind: TargetKind, bound_s: ArrayLike) -> Floats:
        """Share of all requests that are served and wait (or wait and are served: latency) at most ``bound_s``.

        0 where unstable (§5.3). Latency: service independent of the wait, gamma (§5.4).
        """
        bound = _check("bound_s", bound_s, least=0.0)
        is_latency = kind is TargetKind.LATENCY
        log_p, decay, time, scv, bounds = np.broadcast_arrays(*self._laws, self._columns[3], self._columns[5], bound)
        if is_latency:
            late = np.empty(bounds.shape)
            p, d, b, t, s = (a.flatten() for a in (log_p, decay, bounds, time, scv))
            elementwise.fill_log_late(p, d, b, t, s, late.ravel())
        else:
            late = np.where(decay > 0.0, log_p - decay * bounds, 0.0)
        if np.any(self._is_patient):
            patient = self._log_patient(LATE, bound, is_latency=is_latency)
            late = np.where(np.isfinite(self._columns[6]), patient, late)
        return -np.expm1(late)


def check_percentile(percentile: ArrayLike) -> Floats:
    """The percentile(s) as an array; ``InputError`` unless 0 ≤ percentile < 1 (a wait of everybody has no bound)."""
    share = np.asarray(percentile, dtype=np.float64)
    if not np.all((share >= 0.0) & (share < 1.0)):
        hint = "0.95 means that 95 % of the requests are within the target"
        raise InputError("a percentile must be at least 0 and below 1", kind="bad_percentile", hint=hint)
    return share


def _check(name: str, given: ArrayLike, *, least: float) -> Floats:
    values = np.asarray(given, dtype=np.float64)
    if not np.all(np.isfinite(values) & (values >= least)):
        raise InputError(f"{name} must be numbers of at least {least:g}", kind=f"bad_{name}")
    return values
