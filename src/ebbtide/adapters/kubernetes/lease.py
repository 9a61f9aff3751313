"""The Lease at home: which of two controllers acts (§6.1), told by this machine's own clock alone.

Others may take the Lease once it has not changed for its whole duration *by their clock*. Ours counts only for two
thirds of that, from before the call that renewed it was sent: whatever the clocks say, ours ends first. The clock must
run on while the process is stopped (SIGSTOP, a suspended machine): a controller that is woken finds it has lost it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from whenever import Instant

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.objects import Meta, Read
from ebbtide.adapters.kubernetes.problems import ApiError, Kind

DURATION_S = 30.0  # a tick and a slow answer of the API server fit in; a second controller acts half a minute later
OURS = 2.0 / 3.0  # of the duration, as client-go's 10 s of 15
RENEW = 1.0 / 3.0


def running_s() -> float:
    """Seconds of a clock that goes on while this process, or the machine, is stopped."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseSpec(Read, frozen=True):
    holder_identity: str | None = ""
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class LeaseObject(Read, frozen=True):
    metadata: Meta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Another's Lease as it was first seen in this form, by our clock."""

    version: str
    since_s: float

    def has_run_out(self, now_s: float, duration_s: float) -> bool:
        """Whether it stood unchanged for its duration.

        >>> Sighting(version="7", since_s=100.0).has_run_out(131.0, 30.0)
        True
        """
        return now_s - self.since_s > duration_s


class Lease:
    """One controller's hold on the Lease. ``identity`` must be another with every start of the process."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: float = DURATION_S,
        clock: Callable[[], float] = running_s,
    ) -> None:
        self._cluster, self._name, self.identity = cluster, name, identity
        self._root = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._duration_s, self._clock = duration_s, clock
        self._renewed_s = float("-inf")
        self._seen: Sighting | None = None
        self.holder = ""

    def still_ours(self) -> bool:
        """Whether a write may still be sent: asked before every one."""
        return self._clock() - self._renewed_s < OURS * self._duration_s

    def hold(self) -> bool:
        """Take it where nobody holds it, renew it where it is due; whether it is ours now.

        Raises ``ApiError`` where the home cannot be asked and it is not ours any more.
        """
        now_s = self._clock()
        if now_s - self._renewed_s < RENEW * self._duration_s:
            return True
        try:
            self._take(now_s)
        except ApiError as problem:
            if problem.why is not Kind.CONFLICT and not self.still_ours():
                raise
        return self.still_ours()

    def _take(self, now_s: float) -> None:
        found = self._cluster.find(f"{self._root}/{self._name}", LeaseObject)
        if found is None:
            self._cluster.create(self._root, self._body(None))
        elif self._free(found, now_s):
            self._cluster.replace(f"{self._root}/{self._name}", self._body(found))
        else:
            self.holder = found.spec.holder_identity or ""
            self._renewed_s = float("-inf")
            return
        self._renewed_s, self.holder, self._seen = now_s, self.identity, None

    def _free(self, found: LeaseObject, now_s: float) -> bool:
        """Ours, given back, or not renewed for its whole duration since we look at it."""
        spec, version = found.spec, found.metadata.resource_version
        if spec.holder_identity in (None, "", self.identity):
            return True
        if self._seen is None or self._seen.version != version:
            self._seen = Sighting(version=version, since_s=now_s)
        return self._seen.has_run_out(now_s, float(spec.lease_duration_seconds or self._duration_s))

    def _body(self, found: LeaseObject | None, *, holder: str | None = None) -> dict[str, Any]:
        now = Instant.now().format_iso(unit="microsecond")
        spec = LeaseSpec() if found is None else found.spec
        changed = spec.holder_identity != self.identity
        metadata = {"name": self._name}
        if found is not None:
            metadata["resourceVersion"] = found.metadata.resource_version
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity if holder is None else holder,
                "leaseDurationSeconds": round(self._duration_s),
                "acquireTime": now if changed or spec.acquire_time is None else spec.acquire_time,
                "renewTime": now,
                "leaseTransitions": (spec.lease_transitions or 0) + (1 if changed and found is not None else 0),
            },
        }

    def release(self) -> None:
        """Give it back, so that the other one need not wait; one that is not ours is left."""
        if not self.still_ours():
            return
        self._renewed_s = float("-inf")
        found = self._cluster.find(f"{self._root}/{self._name}", LeaseObject)
        if found is not None and found.spec.holder_identity == self.identity:
            self._cluster.replace(f"{self._root}/{self._name}", self._body(found, holder=""))
