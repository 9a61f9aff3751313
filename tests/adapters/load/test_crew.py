"""The open loop: every intended request is sent once, whatever the answers do, and each is accounted for."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from ebbtide.adapters.load.calls import Fault, Sent
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.endpoint import Api, Endpoint
from ebbtide.adapters.load.gaps import Arrivals, Law, arrival_times
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.messages import Setup
from ebbtide.adapters.simserver.slots import Shape
from loopback import simulated

WHOLE = b'{"messages": [{"role": "user", "content": "hello tide"}]}'
BODY = WHOLE[:-1] + b', "stream": true, "stream_options": {"include_usage": true}}'


def setup(address: str, *, stream: bool = False, timeout_s: float = 30.0, law: Law | None = None) -> Setup:
    endpoint = Endpoint(url=f"{address}/v1/chat/completions", api=Api.CHAT, stream=stream, timeout_s=timeout_s)
    item = Item(body=BODY if stream else WHOLE)
    return Setup(endpoint=endpoint, items=(item, item, item), law=law or Law(), keep_texts=True)


def made(address: str, requests: int, *, rate_rps: float = 400.0, processes: int = 1, **given: object) -> Sent:
    with Crew(setup(address, **given), processes=processes) as crew:
        crew.begin(rate_rps, requests, (1, 1))
        return crew.decided()


def test_every_intended_request_is_sent_at_its_time(model: str) -> None:
    calls = made(model, 200).calls
    assert calls.index.tolist() == list(range(200))
    intended = list(islice(arrival_times(Law(), (1, 1), 400.0), 200))
    assert calls.intended_s == pytest.approx(intended, abs=1e-6)
    assert (calls.fault == Fault.NONE).all()
    assert (calls.lateness_s > -1e-3).all()
    assert (calls.latency_s > 0.0).all()
    assert set(calls.item.tolist()) == {0, 1, 2}


def test_processes_share_one_stream_of_arrivals(model: str) -> None:
    sent = made(model, 101, processes=2)
    assert sent.calls.index.tolist() == list(range(101))
    intended = list(islice(arrival_times(Law(), (1, 1), 400.0), 101))
    assert sent.calls.intended_s == pytest.approx(intended, abs=1e-6)
    assert sent.texts == ("hello tide",) * 101


def test_streams_are_read_event_by_event(model: str) -> None:
    sent = made(model, 50, rate_rps=100.0, stream=True)
    assert sent.calls.events.tolist() == [4] * 50
    assert sent.calls.output_tokens.tolist() == [4] * 50
    assert (sent.calls.first_s <= sent.calls.latency_s).all()
    assert (sent.calls.worst_gap_s >= sent.calls.mean_gap_s - 1e-9).all()
    assert set(sent.texts) == {"hello tide"}


def test_answers_never_slow_it_down() -> None:
    """One slot, answers far slower than requests: all are sent in time all the same, and end by their time-out."""
    with simulated(Shape(slots=1, time_s=30.0, scv=0.0)) as address:
        sent = made(address, 100, rate_rps=200.0, timeout_s=8.0)
    assert (sent.calls.fault == Fault.TIMEOUT).all()
    assert np.isinf(sent.calls.latency_s).all()
    assert np.isfinite(sent.calls.lateness_s).all()
    assert sent.calls.in_flight[-1] > 10
    assert dict(sent.details)[Fault.TIMEOUT] == "no whole answer within 8 s"


def test_a_step_that_goes_on_is_one_step(model: str) -> None:
    with Crew(setup(model)) as crew:
        crew.begin(400.0, 50, (1, 1))
        first = crew.decided().calls
        crew.extend(120)
        whole = crew.decided().calls
        crew.drained()
    assert whole.index.tolist() == list(range(120))
    assert whole.latency_s[:50].tolist() == first.latency_s.tolist()
    assert whole.intended_s == pytest.approx(list(islice(arrival_times(Law(), (1, 1), 400.0), 120)), abs=1e-6)


def test_shed_requests_are_faults_with_what_was_said() -> None:
    with simulated(Shape(slots=1, queue=0, time_s=0.5, scv=0.0)) as address:
        sent = made(address, 60, rate_rps=100.0)
    shed = sent.calls.fault == Fault.STATUS
    assert shed.sum() > 30
    assert set(sent.calls.status[shed].tolist()) == {503}
    assert "the queue is full" in dict(sent.details)[Fault.STATUS]


@pytest.mark.parametrize("scv", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_their_scv(scv: float) -> None:
    times = np.array(list(islice(arrival_times(Law(arrivals=Arrivals.GAMMA, scv=scv), (5,), 10.0), 40_000)))
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(0.1, rel=0.05)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(scv, rel=0.1)


def test_a_replay_keeps_the_trace_s_gaps_in_order() -> None:
    law = Law(arrivals=Arrivals.REPLAY, gaps=np.array([1.0, 2.0, 9.0]))
    gaps = np.diff([0.0, *islice(arrival_times(law, (7,), 2.0), 9)])
    assert gaps.sum() == pytest.approx(4.5)  # nine gaps of half a second on average
    assert sorted(gaps.round(6).tolist()) == pytest.approx(sorted([0.125, 0.25, 1.125] * 3))
    assert gaps[:3] == pytest.approx(gaps[3:6])
