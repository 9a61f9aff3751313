"""A rate that no machine can offer: the sender gives the step up, tells all of it, and sends no more (§M.5)."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from ebbtide.adapters.load import open_loop
from ebbtide.adapters.load.calls import Call, Fault
from ebbtide.adapters.load.gaps import Law
from ebbtide.adapters.load.open_loop import Begin, OpenLoop

WANTED = 200_000  # a quarter of a millisecond's, at that rate


class Answers:
    """An endpoint that answers at once."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, call: Call) -> None:
        self.asked += 1
        call.fault = Fault.NONE


def test_a_sender_that_does_not_catch_up_stops_and_says_what_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loop, "BEHIND_FOR_S", 0.1)
    monkeypatch.setattr(open_loop, "BEHIND_BY_S", 0.05)

    async def tried() -> None:
        decided, client = asyncio.Event(), Answers()
        loop = OpenLoop(client, Law(), items=1, timeout_s=30.0, decided=decided.set)  # type: ignore[arg-type] # asked alone
        running = asyncio.create_task(loop.run())
        loop.begin(Begin(rate_rps=8e8, requests=WANTED, start_s=monotonic(), seed=(1,)))
        await asyncio.wait_for(decided.wait(), 60.0)
        assert len(loop.calls) == loop.known == WANTED
        unsent = [call for call in loop.calls if call.fault is Fault.LOCAL]
        assert {call.detail for call in unsent} == {"the sender fell behind its times"}
        assert client.asked == WANTED - len(unsent) < WANTED
        decided.clear()
        loop.extend(WANTED + 10)  # whoever looks at it as if it went on is answered
        await asyncio.wait_for(decided.wait(), 60.0)
        asked = client.asked
        await asyncio.sleep(0.05)
        assert client.asked == asked, "nothing more is sent"
        loop.begin(Begin(rate_rps=1e5, requests=20, start_s=monotonic(), seed=(2,)))
        decided.clear()
        await asyncio.wait_for(decided.wait(), 60.0)
        assert [call.fault for call in loop.calls[:20]] == [Fault.NONE] * 20
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(tried())


def test_a_request_that_is_swept_before_its_first_turn_is_over_too() -> None:
    """Begun so late that its time is over already: it ends by its time-out, and nothing waits for it for ever."""

    async def tried() -> None:
        decided, client = asyncio.Event(), Answers()
        loop = OpenLoop(client, Law(), items=1, timeout_s=0.0, decided=decided.set)  # type: ignore[arg-type] # asked alone
        loop.begin(Begin(rate_rps=1e3, requests=3, start_s=monotonic() - 60.0, seed=(1,)))
        for _ in range(3):
            loop._send(Begin(rate_rps=1e3, requests=3, start_s=0.0, seed=(1,)), monotonic() - 60.0)
        loop._end_what_is_over()
        await asyncio.wait_for(decided.wait(), 10.0)
        assert (loop.in_flight, loop.known, client.asked) == (0, 3, 0)
        assert [call.fault for call in loop.calls] == [Fault.TIMEOUT] * 3

    asyncio.run(tried())
