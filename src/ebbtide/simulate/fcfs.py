"""First come, first served with a changing number of servers: pooled, least loaded or random (§5.6).

Every request's wait, exactly, for a given stream and given capacity steps. What happens when capacity changes:

- Growth takes effect at once: new servers (replicas) stand empty from that instant.
- On shrink running services finish, and nothing new starts on what was removed. Pooled: idle servers go first, then
  those whose services end first. Replicas: the newest go first, as a ReplicaSet's do; a leaving replica gets no new
  requests, and serves the ones it has, waiting ones too, as a terminating pod does within its grace (assumed enough).
- Where no replica stands, requests wait before the door and are routed when the next one comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate import kernels
from ebbtide.simulate.arrivals import Floats, Requests
from ebbtide.simulate.least_loaded import replay_least_loaded


class Outcome(IntEnum):
    """What became of a request; the codes of ``Replay.outcome``. Unserved: no server ever comes any more."""

    SERVED = kernels.SERVED
    ABANDONED = kernels.ABANDONED
    UNSERVED = kernels.UNSERVED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capacity:
    """Replicas over time: ``replicas[j]`` from ``starts_s[j]`` on; before the first start there are none.

    >>> Capacity.steady(3).replicas
    array([3])
    """

    starts_s: Floats
    replicas: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.starts_s.shape != self.replicas.shape or self.starts_s.ndim != 1 or not len(self.starts_s):
            raise ValueError(f"every start needs a count: {self.starts_s.shape}, {self.replicas.shape}")
        if not np.all(np.diff(self.starts_s) > 0.0) or np.isnan(self.starts_s[0]):
            raise ValueError("capacity steps must ascend in time")
        if self.replicas.min() < 0:
            raise ValueError("a number of replicas is never negative")

    @classmethod
    def steady(cls, replicas: int) -> Capacity:
        """The same number of replicas at all times."""
        return cls(starts_s=np.array([-math.inf]), replicas=np.array([replicas], dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """What became of every request, in order of arrival.

    ``wait_s``: time until service began (served), until the user left (abandoned), infinite (unserved). ``place``:
    the replica, 0 … n−1 by age, that a request was routed to; −1 where the queue is pooled or none ever stood.
    """

    wait_s: Floats
    outcome: NDArray[np.uint8]
    place: NDArray[np.int32]

    @property
    def served(self) -> NDArray[np.bool_]:
        """True where service began."""
        return np.equal(self.outcome, Outcome.SERVED)

    def within(self, bound_s: float) -> NDArray[np.bool_]:
        """True where a request was served *and* waited at most ``bound_s`` (§5.7)."""
        return self.served & (self.wait_s <= bound_s)


def replay(
    requests: Requests,
    capacity: Capacity,
    *,
    balancing: Balancing = Balancing.POOLED,
    slots: int = 1,
    rng: np.random.Generator | None = None,
) -> Replay:
    """What becomes of the requests at replicas of ``slots`` slots each.

    ``rng`` makes the choices of random routing and of ties between equally loaded replicas, one draw a request;
    pooled queues need none. ``ValueError`` where it is missing or ``slots`` is below 1.

    >>> requests = Requests(arrival_s=np.array([0.0, 1.0, 2.0]), service_s=np.array([4.0, 4.0, 4.0]))
    >>> replay(requests, Capacity.steady(1)).wait_s
    array([0., 3., 6.])
    >>> grown = Capacity(starts_s=np.array([0.0, 2.5]), replicas=np.array([1, 2]))
    >>> replay(requests, grown).wait_s
    array([0. , 1.5, 2. ])
    """
    if slots < 1:
        raise ValueError(f"a replica has at least one slot: {slots}")
    unlimited = np.empty(0)
    patience_s = requests.patience_s if requests.patience_s is not None else unlimited
    wait_s, outcome = np.empty(len(requests)), np.empty(len(requests), dtype=np.uint8)
    place = np.full(len(requests), -1, dtype=np.int32)
    steps, replicas = capacity.starts_s, capacity.replicas
    stream = (requests.arrival_s, requests.service_s, patience_s)
    if balancing is Balancing.POOLED:
        kernels.replay_pooled(*stream, steps, replicas * slots, wait_s, outcome)
        return Replay(wait_s=wait_s, outcome=outcome, place=place)
    if rng is None:
        raise ValueError(f"{balancing} balancing makes random choices: pass a generator")
    route = replay_least_loaded if balancing is Balancing.LEAST_LOADED else kernels.replay_random
    route(*stream, rng.random(len(requests)), steps, replicas, slots, wait_s, outcome, place)
    return Replay(wait_s=wait_s, outcome=outcome, place=place)
