"""The calculator behind ``ebbtide size``: one station in, everything about it out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ebbtide.errors import InputError, Place
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.sizing import least_servers
from ebbtide.queueing.station import Station

PERCENTILES = (0.5, 0.9, 0.95, 0.99)
# Beyond 1e15 a double no longer counts every server, and no station on earth is that large or that quick.
MOST = 1e15
# Below this a probability is told by its logarithm: doubles end at 5e-324 and lose digits from 2e-308.
LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAnswer:
    """What ``servers`` do.

    ``log_probability_of_waiting`` is None unless the probability is below 1e-300. Unstable (the offered load reaches
    the servers and nobody gives up): ``is_stable`` False, ``probability_of_waiting`` 1, waits infinite.
    ``wait_percentiles_s`` maps 0.5, 0.9, 0.95 and 0.99 to seconds. ``abandonment`` is the share that gives up.
    ``attainment`` is the share served within the target; it, ``one_fewer`` (None at one server) and ``one_more`` are
    None where servers were given.
    """

    servers: int
    offered_load: float
    utilisation: float
    is_stable: bool
    probability_of_waiting: float
    log_probability_of_waiting: float | None
    mean_wait_s: float
    wait_percentiles_s: dict[float, float]
    throughput_rps: float
    abandonment: float
    attainment: float | None = None
    one_fewer: SizeAnswer | None = None
    one_more: SizeAnswer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    arrival_rate_rps: float
    service_time_s: float
    scv_arrival: float
    scv_service: float
    patience_s: float

    def station(self, servers: int) -> Station:
        return Station(
            replicas=servers,
            arrival_rate_rps=self.arrival_rate_rps,
            service_time_s=self.service_time_s,
            arrival_scv=self.scv_arrival,
            service_scv=self.scv_service,
            patience_s=self.patience_s,
        )


def size(
    *,
    arrival_rate_rps: float,
    service_time_s: float,
    servers: int | None = None,
    target_wait_s: float | None = None,
    target_percentile: float | None = None,
    scv_arrival: float = 1.0,
    scv_service: float = 1.0,
    patience_s: float = math.inf,
) -> SizeAnswer:
    """What ``servers`` do, or the least servers for a target with their neighbours.

    Give either ``servers``, or ``target_wait_s`` and ``target_percentile`` (the share of requests served within it).
    ``InputError`` names the argument that is wrong.

    >>> size(arrival_rate_rps=9.5, service_time_s=1.0, servers=10).mean_wait_s.__round__(6)
    1.651171
    >>> answer = size(arrival_rate_rps=9.5, service_time_s=1.0, target_wait_s=0.5, target_percentile=0.95)
    >>> answer.servers, answer.one_fewer.attainment < 0.95 <= answer.attainment
    (13, True)
    """
    _check_number("arrival_rate_rps", arrival_rate_rps, least=0.0)
    _check_number("service_time_s", service_time_s, above=0.0)
    _check_number("scv_arrival", scv_arrival, least=0.0)
    _check_number("scv_service", scv_service, least=0.0)
    _check_number("patience_s", patience_s, above=0.0, is_infinite_fine=True)
    _check_sizes(arrival_rate_rps, service_time_s, servers or 0)
    for name, scv in (("scv_arrival", scv_arrival), ("scv_service", scv_service)):
        _check_size(name, scv, 0.0, "")
    if math.isfinite(patience_s):
        _check_size("patience_s", patience_s, 1.0 / MOST, " seconds")
    question = _Question(
        # Below 1e-15 a second (one request in thirty million years) nobody comes; doubles hold no answer there.
        arrival_rate_rps=arrival_rate_rps if arrival_rate_rps >= 1.0 / MOST else 0.0,
        service_time_s=service_time_s,
        scv_arrival=scv_arrival,
        scv_service=scv_service,
        patience_s=patience_s,
    )
    if servers is not None:
        if target_wait_s is not None or target_percentile is not None:
            raise _wrong("servers", "servers and a target exclude each other", "give one of the two")
        if servers < 1:
            raise _wrong("servers", f"servers must be at least 1, not {servers}", "give a whole number")
        return _answer(question, servers)
    return _least(question, target_wait_s, target_percentile)


def _least(question: _Question, target_wait_s: float | None, target_percentile: float | None) -> SizeAnswer:
    if target_wait_s is None or target_percentile is None:
        missing = "target_wait_s" if target_wait_s is None else "target_percentile"
        raise _wrong(missing, "servers or a whole target are needed", "a target is target_wait_s and target_percentile")
    _check_number("target_wait_s", target_wait_s, least=0.0)
    _check_size("target_wait_s", target_wait_s, 0.0, " seconds")
    if not 0.0 < target_percentile < 1.0:
        message = f"target_percentile must be above 0 and below 1, not {target_percentile:g}"
        raise _wrong("target_percentile", message, "0.95 means that 95 % of the requests are within the target")
    least = int(
        least_servers(
            question.arrival_rate_rps,
            question.service_time_s,
            target_wait_s,
            target_percentile,
            arrival_scv=question.scv_arrival,
            service_scv=question.scv_service,
            patience_s=question.patience_s,
        )
    )
    fewer = _answer(question, least - 1, target_wait_s) if least > 1 else None
    return _answer(question, least, target_wait_s, fewer, _answer(question, least + 1, target_wait_s))


def _answer(
    question: _Question,
    servers: int,
    target_wait_s: float | None = None,
    one_fewer: SizeAnswer | None = None,
    one_more: SizeAnswer | None = None,
) -> SizeAnswer:
    station = question.station(servers)
    log_waiting = float(station.log_probability_of_waiting)
    waits_s = station.wait_percentile_s(PERCENTILES)
    is_tiny = -math.inf < log_waiting < math.log(LEAST_PROBABILITY)
    attained = None if target_wait_s is None else float(station.attainment(TargetKind.WAIT, target_wait_s))
    return SizeAnswer(
        servers=servers,
        offered_load=float(station.offered_load),
        utilisation=float(station.utilisation),
        is_stable=bool(station.is_stable),
        probability_of_waiting=math.exp(log_waiting),
        log_probability_of_waiting=log_waiting if is_tiny else None,
        mean_wait_s=float(station.mean_wait_s),
        wait_percentiles_s={share: float(wait_s) for share, wait_s in zip(PERCENTILES, waits_s, strict=True)},
        throughput_rps=float(station.throughput_rps),
        abandonment=float(station.abandonment),
        attainment=attained,
        one_fewer=one_fewer,
        one_more=one_more,
    )


def _check_number(
    name: str, value: float, *, least: float | None = None, above: float | None = None, is_infinite_fine: bool = False
) -> None:
    if math.isnan(value) or (math.isinf(value) and not (is_infinite_fine and value > 0.0)):
        raise _wrong(name, f"{name} must be a number, not {value}", "leave it out for its default, or give a number")
    if least is not None and value < least:
        raise _wrong(name, f"{name} must be at least {least:g}, not {value:g}", "rates and times count from 0 up")
    if above is not None and value <= above:
        raise _wrong(name, f"{name} must be above {above:g}, not {value:g}", "a time of 0 serves infinitely many")


def _check_sizes(arrival_rate_rps: float, service_time_s: float, servers: int) -> None:
    sizes = {
        "arrival_rate_rps": (arrival_rate_rps, 0.0, " requests a second"),
        "service_time_s": (service_time_s, 1.0 / MOST, " seconds"),
        "servers": (servers, 0, " servers"),
        "offered_load": (arrival_rate_rps * service_time_s, 0.0, " erlangs"),
    }
    for name, (value, least, unit) in sizes.items():
        _check_size(name, value, least, unit)


def _check_size(name: str, value: float, least: float, unit: str) -> None:
    if not least <= value <= MOST:
        said = "the offered load" if name == "offered_load" else name
        message = f"{said} must lie between {least:g} and {MOST:g}{unit}, not at {value:g}"
        raise _wrong(name, message, "look at its unit")


def _wrong(name: str, message: str, hint: str) -> InputError:
    return InputError(message, kind=f"bad_{name}", place=Place(field=name), hint=hint)
