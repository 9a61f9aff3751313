"""The replay against Ciw: the same arrivals and services fed to both give the same waits."""

from __future__ import annotations

import math

import ciw
import numpy as np
import pytest

from ebbtide.simulate.arrivals import Requests, request_arrivals_s, service_times_s
from ebbtide.simulate.fcfs import Capacity, replay


def ciw_waits_s(requests: Requests, servers: int) -> np.ndarray:
    """Waits in order of arrival, by Ciw's own event loop."""
    gaps = np.diff(requests.arrival_s, prepend=0.0).tolist()
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, math.inf])],
        service_distributions=[ciw.dists.Sequential(requests.service_s.tolist())],
        number_of_servers=[servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(requests), method="Finish")
    records = sorted(simulation.get_all_records(), key=lambda record: record.id_number)
    return np.array([record.waiting_time for record in records])


@pytest.mark.parametrize(
    ("servers", "rate_rps", "arrival_scv", "service_scv"),
    [(1, 0.8, 1.0, 1.0), (3, 2.7, 4.0, 0.5), (10, 9.5, 0.5, 2.0), (10, 9.9, 1.0, 0.0)],
)
def test_waits_are_those_of_ciw(servers: int, rate_rps: float, arrival_scv: float, service_scv: float) -> None:
    rng = np.random.default_rng(servers)
    arrivals = request_arrivals_s([0.0, 1500.0 / rate_rps], [rate_rps], arrival_scv=arrival_scv, rng=rng)
    requests = Requests(arrival_s=arrivals, service_s=service_times_s(len(arrivals), 1.0, scv=service_scv, rng=rng))
    theirs = ciw_waits_s(requests, servers)
    ours = replay(requests, Capacity.steady(servers)).wait_s
    assert len(theirs) == len(ours) > 1000
    assert ours.max() > 1.0
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9)
