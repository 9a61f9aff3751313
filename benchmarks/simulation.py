"""How fast the FCFS replay is, in the same run as its peers, Ciw and SimPy.

``uv run --group bench python -m benchmarks.simulation`` prints requests per second of CPU time and exits with 1 where a
limit of ``limits.toml`` ([simulation]) does not hold. All sides get M/M/c at 90 % load and only the queue's own work is
timed: the replay is given its stream, the peers draw theirs inside their event loops, for they have no other way. The
replay's number of servers changes a hundred times, a fifth up and down about the peers' steady one.
"""

from __future__ import annotations

import math
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import ciw
import numpy as np
import simpy

from ebbtide.fleet.workload import Balancing
from ebbtide.simulate.arrivals import Requests, patience_times_s, request_arrivals_s, service_times_s
from ebbtide.simulate.fcfs import Capacity, replay

LOAD = 0.9
SERVERS = (10, 100, 1000)
REQUESTS = 2_000_000
PEER_REQUESTS = 10_000


def rate_rps(run: Callable[[], object], requests: int, *, times: int = 3) -> float:
    """Best requests per CPU second of some runs: other processes can only make a run slower."""
    seconds = []
    for _ in range(times):
        begin = time.process_time()
        run()
        seconds.append(time.process_time() - begin)
    return requests / min(seconds)


def stream(servers: int, requests: int) -> Requests:
    rng = np.random.default_rng(servers)
    rate = LOAD * servers
    arrivals = request_arrivals_s([0.0, requests / rate], [rate], rng=rng)
    return Requests(arrival_s=arrivals, service_s=service_times_s(len(arrivals), 1.0, rng=rng))


def changing(servers: int, requests: Requests) -> Capacity:
    """A hundred changes, to between four fifths and six fifths of the servers."""
    starts_s = np.linspace(0.0, requests.arrival_s[-1], 100)
    share = 1.0 + 0.2 * np.sin(np.arange(100) * 2.4)
    return Capacity(starts_s=starts_s, replicas=np.rint(servers * share).astype(np.int64))


def replay_rate_rps(servers: int, balancing: Balancing, *, patience_s: float = math.inf) -> float:
    rng = np.random.default_rng(1)
    given = stream(servers, REQUESTS)
    patience = patience_times_s(len(given), patience_s, rng=rng)
    requests = Requests(arrival_s=given.arrival_s, service_s=given.service_s, patience_s=patience)
    short = None if patience is None else patience[:10]
    few = Requests(arrival_s=given.arrival_s[:10], service_s=given.service_s[:10], patience_s=short)
    capacity = changing(servers, given)
    replay(few, capacity, balancing=balancing, rng=rng)  # compiles
    return rate_rps(lambda: replay(requests, capacity, balancing=balancing, rng=rng), len(requests))


def ciw_rate_rps(servers: int) -> float:
    def run() -> None:
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(rate=LOAD * servers)],
            service_distributions=[ciw.dists.Exponential(rate=1.0)],
            number_of_servers=[servers],
        )
        ciw.Simulation(network).simulate_until_max_customers(PEER_REQUESTS, method="Finish")

    return rate_rps(run, PEER_REQUESTS, times=2)


def simpy_rate_rps(servers: int) -> float:
    requests = stream(servers, PEER_REQUESTS)

    def one(env, station, service_s):  # type: ignore[no-untyped-def] # simpy has no types
        with station.request() as turn:
            yield turn
            yield env.timeout(service_s)

    def source(env, station):  # type: ignore[no-untyped-def] # simpy has no types
        for arrival_s, service_s in zip(requests.arrival_s, requests.service_s, strict=True):
            yield env.timeout(max(0.0, arrival_s - env.now))
            env.process(one(env, station, service_s))

    def run() -> None:
        env = simpy.Environment()
        env.process(source(env, simpy.Resource(env, servers)))
        env.run()

    return rate_rps(run, len(requests), times=2)


def arrivals_rate_rps(arrival_scv: float) -> float:
    rng = np.random.default_rng(1)
    edges, rates = np.arange(0.0, 2017.0) * 600.0, np.full(2016, 2.0)
    count = int(2016 * 600 * 2.0)
    return rate_rps(lambda: request_arrivals_s(edges, rates, arrival_scv=arrival_scv, rng=rng), count)


def main() -> int:
    """Print every rate beside its limit; 0 where all hold."""
    limits = tomllib.loads(Path(__file__).with_name("limits.toml").read_text(encoding="utf-8"))["simulation"]
    lines = []
    for servers in SERVERS:
        ours = replay_rate_rps(servers, Balancing.POOLED)
        lines.append((f"pooled, {servers} servers: requests/s", ours, limits["pooled_rps"]))
        lines.append((f"times Ciw's, {servers} servers", ours / ciw_rate_rps(servers), limits["times_ciw"]))
        lines.append((f"times SimPy's, {servers} servers", ours / simpy_rate_rps(servers), limits["times_simpy"]))
        impatient = replay_rate_rps(servers, Balancing.POOLED, patience_s=1.0)
        lines.append((f"with abandonment, {servers} servers", impatient, limits["abandonment_rps"]))
        for balancing in (Balancing.LEAST_LOADED, Balancing.RANDOM):
            rate = replay_rate_rps(servers, balancing)
            lines.append((f"{balancing}, {servers} replicas: requests/s", rate, limits["replicas_rps"]))
    for scv in (1.0, 4.0):
        lines.append((f"arrivals of SCV {scv:g}: requests/s", arrivals_rate_rps(scv), limits["arrivals_rps"]))
    for name, value, least in lines:
        print(f"{name:44} {value:14,.0f}  at least {least:12,}  {'ok' if value >= least else 'TOO SLOW'}")
    return 0 if all(value >= least for _, value, least in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
