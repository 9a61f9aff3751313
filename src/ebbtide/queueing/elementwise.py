"""Numba kernels that answer one station per element: the entries behind ``station``, ``sizing`` and ``percentiles``."""

from __future__ import annotations

import math

from numba import njit

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints
from ebbtide.queueing.latency import log_late
from ebbtide.queueing.replicas import Terms, log_patient, replica_law


@njit(cache=True, nogil=True)
def fill_laws(
    balancing: Ints,
    slots: Ints,
    replicas: Ints,
    rate_rps: Floats,
    service_time_s: Floats,
    arrival_scv: Floats,
    service_scv: Floats,
    log_p: Floats,
    decay_per_s: Floats,
) -> None:
    """(ln P(W > 0), θ) without patience; (0, 0) where unstable."""
    for i in range(log_p.size):
        terms = Terms(balancing[i], slots[i], service_time_s[i], service_scv[i], math.inf, False, 0.0)
        log_p[i], decay_per_s[i] = replica_law(terms, replicas[i], rate_rps[i], arrival_scv[i])


@njit(cache=True, nogil=True)
def fill_log_late(
    log_p: Floats, decay_per_s: Floats, bound_s: Floats, service_time_s: Floats, service_scv: Floats, out: Floats
) -> None:
    """ln P(W + S > bound)."""
    for i in range(out.size):
        out[i] = log_late(log_p[i], decay_per_s[i], bound_s[i], service_time_s[i], service_scv[i])


@njit(cache=True, nogil=True)
def fill_log_patient(
    measure: int,
    is_latency: bool,
    balancing: Ints,
    slots: Ints,
    replicas: Ints,
    rate_rps: Floats,
    service_time_s: Floats,
    arrival_scv: Floats,
    service_scv: Floats,
    patience_s: Floats,
    bound_s: Floats,
    out: Floats,
) -> None:
    """ln of one measure of ``replicas`` with finite patience."""
    for i in range(out.size):
        terms = Terms(balancing[i], slots[i], service_time_s[i], service_scv[i], patience_s[i], is_latency, bound_s[i])
        out[i] = log_patient(measure, terms, replicas[i], rate_rps[i], arrival_scv[i])
