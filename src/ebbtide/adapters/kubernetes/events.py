"""Kubernetes Events: every action and every refusal on the object that it is about (§6.10).

A reason that stays is told once and counted from then on: a series is brought up to date at most every five minutes,
and an Event is forgotten after an hour, as the API server does with its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from whenever import Instant

from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.problems import ApiError, Kind

EVERY_S = 300.0
KEPT_S = 3600.0
AT_ONCE = 25  # Events in one tick: a morning with fifty moves must not spend the budget of calls on talk
REPORTER = "ebbtide.dev/controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An object that an Event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    def plain(self) -> dict[str, str]:
        """As the Event has it."""
        found = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}
        return found | {key: text for key, text in (("namespace", self.namespace), ("uid", self.uid)) if text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is to be told: ``reason`` one word, ``note`` a sentence, ``warning`` where a person should look."""

    about: Reference
    reason: str
    action: str
    note: str
    warning: bool = False


@dataclass(slots=True, kw_only=True)
class _Series:
    path: str
    count: int
    first_s: float
    told_s: float


@dataclass(slots=True, kw_only=True)
class Events:
    """Writes Events into one cluster, in the object's own namespace (``default`` for what has none)."""

    cluster: Cluster
    instance: str
    _known: dict[Told, _Series] = field(default_factory=dict)

    def tell(self, told: tuple[Told, ...], at_s: float) -> None:
        """Tell these; raises ``ApiError`` where Events cannot be written (the rest is not tried then)."""
        for one in [one for one, series in self._known.items() if at_s - series.told_s > KEPT_S]:
            del self._known[one]
        for one in told[:AT_ONCE]:
            series = self._known.get(one)
            if series is None:
                self._create(one, at_s)
                continue
            series.count += 1
            if at_s - series.told_s >= EVERY_S:
                self._count(one, series, at_s)

    def _create(self, one: Told, at_s: float) -> None:
        space = one.about.namespace or "default"
        text = f"{one.about.kind}/{one.reason}/{one.note}"
        name = f"{one.about.name}.{round(at_s * 1e6):x}{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        name = name[-253:].lstrip("-.")
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": space},
            "eventTime": _time(at_s),
            "reportingController": REPORTER,
            "reportingInstance": self.instance[:128],
            "action": one.action[:128],
            "reason": one.reason[:128],
            "regarding": one.about.plain(),
            "note": one.note[:1024],
            "type": "Warning" if one.warning else "Normal",
        }
        root = f"/apis/events.k8s.io/v1/namespaces/{space}/events"
        self.cluster.create(root, body)
        self._known[one] = _Series(path=f"{root}/{name}", count=1, first_s=at_s, told_s=at_s)

    def _count(self, one: Told, series: _Series, at_s: float) -> None:
        body: dict[str, Any] = {"series": {"count": series.count, "lastObservedTime": _time(at_s)}}
        try:
            self.cluster.patch(series.path, body, MERGE_PATCH)
            series.told_s = at_s
        except ApiError as problem:
            if problem.why is not Kind.MISSING:
                raise
            del self._known[one]  # the server forgot it: it is told anew


def _time(at_s: float) -> str:
    return Instant.from_timestamp(round(at_s * 1e6) * 1000, unit="nanosecond").format_iso(unit="microsecond")
