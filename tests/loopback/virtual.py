"""A crew that sends nothing: what M/M/c with a waiting room would have answered, step by step from its seed."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from ebbtide.adapters.load.calls import Calls, Fault, Sent
from ebbtide.adapters.load.messages import Beat, Setup
from ebbtide.simulate.services import SheddingServers, exponential

SERVERS, ROOM = 16, 8


class VirtualCrew:
    """In the place of ``Crew``: 16 servers of 1 s, 8 places to wait, every answer the item's expected one."""

    lateness_s = 0.0

    def __init__(self, setup: Setup, *, processes: int = 1) -> None:
        self.setup, self.processes = setup, processes
        self.began: list[float] = []

    def __enter__(self) -> VirtualCrew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, rate_rps: float, requests: int, seed: tuple[int, ...]) -> None:
        self.began.append(rate_rps)
        self.service = SheddingServers(SERVERS, exponential(1.0), np.random.default_rng(seed), waiting_room=ROOM)
        self.service.begin(rate_rps)
        self.requests, self.rate_rps, self.known = requests, rate_rps, 0

    def extend(self, requests: int) -> None:
        self.requests = requests

    def halt(self) -> None:
        pass

    def drained(self, watch: object = None) -> None:
        pass

    def decided(self, watch: object = None) -> Sent:
        new, self.known = self.requests - self.known, self.requests
        latency_s = self.service.more(new).latency_s
        if callable(watch):
            watch(Beat(sent=self.requests, known=self.requests, in_flight=0))
        items = np.arange(self.requests) % len(self.setup.items)
        return Sent(
            calls=virtual_calls(latency_s, items, self.rate_rps, self.lateness_s),
            texts=tuple(str(self.setup.items[item].expected) for item in items) if self.setup.keep_texts else (),
        )


def virtual_calls(latency_s: np.ndarray, items: np.ndarray, rate_rps: float, lateness_s: float) -> Calls:
    """Columns of those latencies; an infinite one was shed."""
    count = len(latency_s)
    nothing, none = np.full(count, np.nan), np.full(count, -1)
    shed = np.isinf(latency_s)
    return Calls(
        index=np.arange(count),
        item=items,
        intended_s=np.arange(count) / rate_rps,
        lateness_s=np.full(count, lateness_s),
        connect_s=np.zeros(count),
        latency_s=latency_s,
        first_s=nothing,
        mean_gap_s=nothing,
        worst_gap_s=nothing,
        events=np.zeros(count, dtype=np.int64),
        input_tokens=none,
        output_tokens=none,
        in_flight=np.zeros(count, dtype=np.int64),
        status=np.where(shed, 503, 200),
        fault=np.where(shed, int(Fault.STATUS), int(Fault.NONE)),
    )
