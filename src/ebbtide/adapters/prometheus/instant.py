"""An instant query, and each workload's arrival rate out of its answer (§6.7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from ebbtide.errors import PermanentError, TemporaryError

TIMEOUT = httpx2.Timeout(5.0, connect=2.0)  # within a tick; an answer that is late is no answer
NAMES = ("workload", "service", "model", "client")  # as the columns of demand files (DOCUMENTS §4)
STALE_S = 300.0  # Prometheus' own look-back: an older sample stands for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series' value at an instant."""

    labels: Mapping[str, str]
    at_s: float
    value: float


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    resultType: str = ""  # noqa: N815 - Prometheus' own word
    result: Any = None


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """One server. ``token_file`` is read at every question: tokens are renewed under our feet."""

    url: str
    token_file: Path | None = None
    transport: httpx2.BaseTransport | None = field(default=None, repr=False)

    def instant(self, promql: str) -> tuple[Sample, ...]:
        """What the query's series are now.

        Raises ``TemporaryError`` where there is no answer, ``PermanentError`` where the server refuses the query or us,
        or the answer is no vector.
        """
        return _samples(self.answer("query", {"query": promql}))

    def answer(
        self, what: str, params: Mapping[str, str], *, form: str = "vector", timeout: httpx2.Timeout = TIMEOUT
    ) -> Any:
        """The result of a question to the API, which is to have that ``form``; errors as ``instant``."""
        try:
            with httpx2.Client(timeout=timeout, transport=self.transport, headers=self._headers()) as client:
                response = client.get(f"{self.url.rstrip('/')}/api/v1/{what}", params=dict(params))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
            message = f"Prometheus does not answer: {str(problem) or type(problem).__name__}"
            raise TemporaryError(message, kind="prometheus_unreachable", hint="see EBBTIDE_PROMETHEUS_URL") from None
        return _result(response, form)

    def _headers(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        return {"Authorization": f"Bearer {self.token_file.read_text(encoding='utf-8').strip()}"}


def _result(response: httpx2.Response, form: str) -> Any:
    try:
        answer = msgspec.json.decode(response.content, type=_Answer)
    except msgspec.DecodeError:
        answer = _Answer(error=f"HTTP {response.status_code}, no JSON")
    if response.status_code >= 500 or response.status_code == 429:
        raise TemporaryError(f"Prometheus has trouble: {answer.error}", kind="prometheus_busy")
    if answer.status != "success":
        message = f"Prometheus refuses the query: {answer.error or response.status_code}"
        raise PermanentError(message, kind="prometheus_refused", hint="try it in Prometheus' own page")
    if answer.data.resultType != form:
        wanted = "one value for each workload" if form == "vector" else f"a {form}"
        message = f"the query gives a {answer.data.resultType}, not {wanted}"
        raise PermanentError(message, kind="prometheus_form", hint="sum by (service) (rate(…[5m]))")
    return answer.data.result


def _samples(result: Any) -> tuple[Sample, ...]:
    try:
        found = msgspec.convert(result, list[_Series])
        return tuple(Sample(labels=one.metric, at_s=one.value[0], value=float(one.value[1])) for one in found)
    except (msgspec.ValidationError, ValueError) as problem:
        raise PermanentError(f"Prometheus' answer is not readable: {problem}", kind="prometheus_form") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates by the workloads' foreign keys, and when the oldest of them was measured."""

    rps: Mapping[str, float] = field(default_factory=dict)
    at_s: float = float("-inf")


def rates_by_key(samples: Iterable[Sample], *, now_s: float) -> Rates:
    """The rates of an answer; what is stale, no number or below 0 is not observed.

    A series' key is its only label, else the one of a workload's names. Two series of one key say that the query
    does not sum: then neither counts.

    >>> one = Sample(labels={"service": "m-small/c5"}, at_s=100.0, value=3.5)
    >>> rates_by_key([one], now_s=101.0)
    Rates(rps={'m-small/c5': 3.5}, at_s=100.0)
    >>> rates_by_key([one], now_s=900.0).rps, rates_by_key([one, one], now_s=101.0).rps
    ({}, {})
    """
    found: dict[str, Sample] = {}
    twice: set[str] = set()
    for sample in samples:
        key = _key(sample.labels)
        if key is None or not math.isfinite(sample.value) or sample.value < 0 or now_s - sample.at_s > STALE_S:
            continue
        twice |= {key} & found.keys()
        found[key] = sample
    counted = {key: one for key, one in found.items() if key not in twice}
    oldest_s = min((one.at_s for one in counted.values()), default=float("-inf"))
    return Rates(rps={key: one.value for key, one in counted.items()}, at_s=oldest_s)


def _key(labels: Mapping[str, str]) -> str | None:
    own = {name: value for name, value in labels.items() if name != "__name__"}
    if len(own) == 1:
        return next(iter(own.values()))
    return next((own[name] for name in NAMES if name in own), None)
