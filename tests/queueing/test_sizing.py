"""The least servers meet the target and one fewer does not; the calculator's answer and its refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import InputError
from ebbtide.fleet.workload import TargetKind
from ebbtide.queueing.calculator import size
from ebbtide.queueing.sizing import least_servers
from ebbtide.queueing.station import Station

LOAD = st.floats(-3.0, 7.0).map(lambda exponent: 10.0**exponent)


@given(
    LOAD,
    st.floats(0.0, 10.0),
    st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-12]),
    st.sampled_from([0.0, 0.3, 1.0, 9.0]),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.sampled_from([math.inf, 0.1, 30.0]),
)
@settings(max_examples=300)
def test_least_meets_and_one_fewer_does_not(
    load: float, bound: float, share: float, arrival: float, service: float, patience: float
) -> None:
    variability = {"arrival_scv": arrival, "service_scv": service, "patience_s": 3.0 * patience}
    least = int(least_servers(load / 3.0, 3.0, 3.0 * bound, share, **variability))

    def attained(servers: int) -> float:
        station = Station(replicas=servers, arrival_rate_rps=load / 3.0, service_time_s=3.0, **variability)
        return float(station.attainment(TargetKind.WAIT, 3.0 * bound))

    # The search compares logarithms; 1 − share and the attained share round at 1e-16.
    assert attained(least) >= share - 1e-15
    assert least == 1 or attained(least - 1) <= share + 1e-15


def test_arrays_broadcast_and_agree_with_a_scan() -> None:
    loads, shares = np.array([0.3, 4.0, 33.3, 60.0])[:, None], np.array([0.5, 0.9, 0.99])
    found = least_servers(loads, 1.0, 0.25, shares)
    for i, load in enumerate(loads[:, 0]):
        servers = np.arange(1, 200)
        attained = Station(replicas=servers, arrival_rate_rps=load, service_time_s=1.0).attainment(
            TargetKind.WAIT, 0.25
        )
        assert found[i].tolist() == [int(servers[np.argmax(attained >= share)]) for share in shares]


def test_huge_loads() -> None:
    servers = least_servers([1e9, 1e12], 1.0, 0.0, 0.999)
    assert np.all(servers > [1e9, 1e12])
    assert np.all(servers < np.array([1e9, 1e12]) + 5 * np.sqrt([1e9, 1e12]))


def test_the_calculator_on_given_servers() -> None:
    answer = size(arrival_rate_rps=9.5, service_time_s=1.0, servers=10)
    waiting = 0.825585578  # C(10, 9.5): B by the recursion B = aB/(n + aB), then B / (1 − ρ(1 − B))
    blocked = 1.0
    for n in range(1, 11):
        blocked = 9.5 * blocked / (n + 9.5 * blocked)
    assert answer.probability_of_waiting == pytest.approx(blocked / (1 - 0.95 * (1 - blocked)), rel=1e-12)
    assert answer.probability_of_waiting == pytest.approx(waiting, rel=1e-8)
    assert answer.mean_wait_s == pytest.approx(answer.probability_of_waiting / 0.5, rel=1e-12)
    assert answer.wait_percentiles_s[0.95] == pytest.approx(math.log(waiting / 0.05) / 0.5, rel=1e-8)
    assert (answer.servers, answer.offered_load, answer.one_fewer, answer.one_more) == (10, 9.5, None, None)
    assert answer.log_probability_of_waiting is None


def test_the_calculator_names_neighbours_states_and_tiny_probabilities() -> None:
    answer = size(arrival_rate_rps=9.5, service_time_s=1.0, target_wait_s=0.5, target_percentile=0.95)
    assert answer.one_fewer is not None
    assert answer.one_more is not None
    assert answer.attainment is not None
    assert answer.one_fewer.attainment is not None
    assert (answer.one_fewer.servers, answer.one_more.servers) == (answer.servers - 1, answer.servers + 1)
    assert answer.one_fewer.attainment < 0.95 <= answer.attainment
    alone = size(arrival_rate_rps=0.001, service_time_s=1.0, target_wait_s=5.0, target_percentile=0.9)
    assert (alone.servers, alone.one_fewer) == (1, None)
    unstable = size(arrival_rate_rps=10.0, service_time_s=1.0, servers=10)
    assert (unstable.is_stable, unstable.probability_of_waiting, unstable.mean_wait_s) == (False, 1.0, math.inf)
    assert set(unstable.wait_percentiles_s.values()) == {math.inf}
    deep = size(arrival_rate_rps=10.0, service_time_s=1.0, servers=1000)
    assert deep.log_probability_of_waiting == pytest.approx(-3619.533, abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"arrival_rate_rps": -1.0}, "bad_arrival_rate_rps"),
        ({"arrival_rate_rps": math.nan}, "bad_arrival_rate_rps"),
        ({"arrival_rate_rps": math.inf}, "bad_arrival_rate_rps"),
        ({"service_time_s": 0.0}, "bad_service_time_s"),
        ({"scv_service": -0.5}, "bad_scv_service"),
        ({"patience_s": 0.0}, "bad_patience_s"),
        ({"target_percentile": 1.0}, "bad_target_percentile"),
        ({"target_percentile": math.nan}, "bad_target_percentile"),
        ({"target_wait_s": -1.0}, "bad_target_wait_s"),
        ({"target_wait_s": None}, "bad_target_wait_s"),
        ({"servers": 3}, "bad_servers"),
        ({"servers": 0, "target_wait_s": None, "target_percentile": None}, "bad_servers"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, float | None], kind: str) -> None:
    right = {"arrival_rate_rps": 1.0, "service_time_s": 1.0, "target_wait_s": 0.5, "target_percentile": 0.9}
    with pytest.raises(InputError) as caught:
        size(**(right | wrong))
    assert caught.value.kind == kind
    assert caught.value.hint
