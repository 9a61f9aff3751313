"""The open loop: requests go out at their intended times, whatever the answers do (§M.5)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic

from ebbtide.adapters.load.calls import Call, Fault
from ebbtide.adapters.load.client import Client
from ebbtide.adapters.load.gaps import Law, arrival_times
from ebbtide.adapters.load.items import item_of

# uvloop's timers tick in milliseconds. Below this rate the last millisecond is waited for by looking again and again
# (at most a fifth of a core); above it requests go out once a millisecond, all that are due.
EXACT_RPS = 200.0
TICK_S = 0.001
SWEEP_S = 0.02
# A sender that was behind its times all this while and is by so much will not catch up: what is left of the step is not
# sent, and the step is void (§M.5). To go on would take this machine from who decides what comes next. A pause of the
# machine's is caught up with in less.
BEHIND_FOR_S, BEHIND_BY_S = 5.0, 1.0
BURST = 32  # so many are begun before answers get their turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Begin a step: a rate from ``start_s`` (``time.monotonic``) on, of which this process sends every n-th request."""

    rate_rps: float
    requests: int
    start_s: float
    seed: tuple[int, ...]


class OpenLoop:
    """Sends for ever at the present rate until told otherwise; ``decided`` is called when a step's answers are known.

    A request is decided when it is answered, has failed or has timed out. After the last one of a step requests go on
    at the same rate, so that those before are served under the load that they are measured at; where the step goes on
    they are part of it.
    """

    def __init__(
        self,
        client: Client,
        law: Law,
        *,
        items: int,
        timeout_s: float,
        decided: Callable[[], None],
        share: int = 1,
        part: int = 0,
    ) -> None:
        self._client, self._law, self._items = client, law, items
        self._timeout_s, self._decided = timeout_s, decided
        self.share, self.part = share, part
        self.calls: list[Call] = []
        self.in_flight = 0
        self.known = 0
        self._until = 0
        self._begun: Begin | None = None
        self._times: Iterator[float] = iter(())
        self._wake = asyncio.Event()
        self._under_way: deque[tuple[Call, asyncio.Task[None]]] = deque()

    def begin(self, step: Begin) -> None:
        """A new step; what is under way of the old one is no part of it."""
        self.calls, self.known = [], 0
        self._begun, self._until = step, step.requests
        self._times = arrival_times(self._law, step.seed, step.rate_rps, share=self.share, part=self.part)
        self._wake.set()

    def extend(self, requests: int) -> None:
        """The step goes on to so many requests, counted over all processes."""
        self._until = requests
        self._tell()
        self._wake.set()

    def halt(self) -> None:
        """Send no more; what is under way goes on."""
        self._begun = None
        self._wake.set()

    @property
    def wanted(self) -> int:
        """This process's share of the step's requests."""
        return max(0, -(-(self._until - self.part) // self.share))

    async def run(self) -> None:
        """For ever: send what is due, sleep until the next."""
        sweeper = asyncio.create_task(self._sweep())
        try:
            while True:
                if self._begun is None:
                    await self._wake.wait()
                    self._wake.clear()
                    continue
                await self._step(self._begun)
        finally:
            self._begun = None
            sweeper.cancel()
            tasks = [task for _, task in self._under_way]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _step(self, step: Begin) -> None:
        exact = step.rate_rps / self.share < EXACT_RPS
        next_s = step.start_s + next(self._times)
        begun, abreast_s = 0, monotonic()
        while self._begun is step:
            now_s = monotonic()
            if now_s - next_s > BEHIND_BY_S and now_s - abreast_s > BEHIND_FOR_S:
                await self._give_up(step)
                return
            while next_s <= now_s and begun < BURST:
                self._send(step, next_s)
                next_s = step.start_s + next(self._times)
                begun += 1
            begun = 0
            ahead_s = next_s - monotonic()
            if ahead_s > 0.0:
                abreast_s = now_s
            if ahead_s <= 0.0 or (exact and ahead_s <= TICK_S):
                await asyncio.sleep(0)
            else:
                await self._pause(ahead_s - TICK_S if exact else max(ahead_s, TICK_S))

    async def _give_up(self, step: Begin) -> None:
        """Takes what is left of the step's requests for not sent, however far it is to go."""
        while self._begun is step:
            while len(self.calls) < self.wanted:
                index, intended_s = len(self.calls) * self.share + self.part, step.start_s + next(self._times)
                call = Call(index, item_of(index, self._items, step.seed), intended_s, self.in_flight)
                call.fault, call.detail, call.done = Fault.LOCAL, "the sender fell behind its times", True
                self.calls.append(call)
            self._tell()
            self._wake.clear()
            await self._wake.wait()

    async def _pause(self, seconds: float) -> None:
        """Sleep, unless another step begins before."""
        if seconds <= 0.05:
            await asyncio.sleep(seconds)
            return
        self._wake.clear()
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return

    def _send(self, step: Begin, intended_s: float) -> None:
        index = len(self.calls) * self.share + self.part
        call = Call(index, item_of(index, self._items, step.seed), intended_s, self.in_flight)
        self.calls.append(call)
        self.in_flight += 1
        task = asyncio.create_task(self._client.ask(call))
        # Not a clause of the task's own: one that is swept before its first turn never begins, and ends all the same.
        task.add_done_callback(lambda _: self._over(call))
        self._under_way.append((call, task))

    def _over(self, call: Call) -> None:
        self.in_flight -= 1
        call.done = True
        self._tell()

    def _tell(self) -> None:
        calls, known = self.calls, self.known
        while known < len(calls) and calls[known].done:
            known += 1
        self.known = known
        if self._begun is not None and 0 < self.wanted <= known:
            self._until = 0
            self._decided()

    async def _sweep(self) -> None:
        """Ends what takes too long: all have the same time-out, so the oldest come first."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._end_what_is_over()

    def _end_what_is_over(self) -> None:
        latest_s = monotonic() - self._timeout_s
        while self._under_way and (self._under_way[0][0].done or self._under_way[0][0].intended_s < latest_s):
            call, task = self._under_way.popleft()
            if not call.done:
                call.fault, call.detail = Fault.TIMEOUT, f"no whole answer within {self._timeout_s:g} s"
                task.cancel()
