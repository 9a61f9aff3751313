"""From a Target document to what the driver and the search need."""

from __future__ import annotations

from ebbtide.adapters.documents.target import TargetDocument
from ebbtide.adapters.documents.target_models import BoundSpec, TargetSpecification
from ebbtide.adapters.documents.target_values import bound_of
from ebbtide.adapters.load.endpoint import Api, Credential, Endpoint, Tls
from ebbtide.adapters.load.gaps import Arrivals, Law
from ebbtide.adapters.load.logs import arrival_gaps
from ebbtide.capacity.limits import Limit, LimitKind

# A request that takes four bounds is late by any measure; more is only waited for where there is no latency bound.
TIMEOUT_BOUNDS = 4.0
TIMEOUT_S = 60.0


def endpoint_of(document: TargetDocument) -> Endpoint:
    """Where requests go; the credential stays where it is."""
    spec, folder = document.spec.endpoint, document.folder
    token = spec.token
    return Endpoint(
        url=spec.url,
        api=Api(spec.api),
        method=spec.method if spec.api == "http" else "POST",
        stream=spec.stream,
        model=spec.model,
        headers=tuple(spec.headers.items()),
        credential=None
        if token is None
        else Credential(
            env=token.env,
            file=None if token.file is None else str(folder / token.file),
            header=token.header,
            scheme=token.scheme,
        ),
        tls=Tls(ca_file=None if spec.tls.ca_file is None else str(folder / spec.tls.ca_file), verify=spec.tls.verify),
        timeout_s=spec.timeout if spec.timeout is not None else _timeout_s(document.spec),
    )


def law_of(document: TargetDocument) -> Law:
    """The law of the gaps; a replayed log is read here."""
    spec = document.spec.arrivals
    if spec.law == "replay":
        assert spec.file is not None  # the rules ask for it
        return Law(arrivals=Arrivals.REPLAY, gaps=arrival_gaps(document.folder / spec.file))
    return Law(arrivals=Arrivals(spec.law), scv=spec.scv if spec.scv is not None else 1.0)


def limits_of(spec: TargetSpecification) -> tuple[Limit, ...]:
    """All that must hold: the latencies, the error budget, the share of right answers."""
    limits = [_latency(bound) for bound in spec.targets]
    limits.append(Limit(kind=LimitKind.ERRORS, bad_share=spec.error_budget))
    if spec.quality is not None:
        limits.append(Limit(kind=LimitKind.QUALITY, bad_share=1.0 - spec.quality.required))
    return tuple(limits)


def _latency(bound: BoundSpec) -> Limit:
    metric, bound_s = bound_of(bound)
    return Limit(kind=LimitKind.LATENCY, bad_share=1.0 - bound.percentile, bound_s=bound_s, metric=metric)


def _timeout_s(spec: TargetSpecification) -> float:
    latencies = [bound.latency for bound in spec.targets if bound.latency is not None]
    return TIMEOUT_BOUNDS * max(latencies) if latencies else TIMEOUT_S
