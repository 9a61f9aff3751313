"""How fast one process sends, how late, and at what price, in the same run as its peers Locust and LoadGen.

``uv run --group bench python -m benchmarks.generator [RATE SECONDS]`` (5,000 requests a second for 60 s, then 10,000
streamed events a second for 30 s) against the least server there can be, on loopback. Prints the machine's load average
before and after, for that is what lateness hangs on, and exits with 1 where a limit of ``limits.toml`` ([generator])
does not hold. The peers are asked for the same rate for a third of the time: LoadGen schedules as an open loop and
sends through the same client; Locust's users each wait for their answers (a closed loop), so its latency says nothing
of lateness and only its price is compared.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
import psutil

from ebbtide.adapters.load.calls import Calls, Fault
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.endpoint import Api, Endpoint
from ebbtide.adapters.load.gaps import Law
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.messages import Setup

HERE = Path(__file__).parent
EACH_RPS = 25.0  # of a Locust user, as locust_peer.py has it: importing that would put gevent in the place of sockets
EVENTS = 20  # of a stream of the bare server's
EVENTS_RPS, STREAM_S = 10_000.0, 30.0
WARM_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of ours: its requests, the sender's CPU time, and how many processors the machine was short of."""

    calls: Calls
    cpu_s: float
    load: tuple[float, float]

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds a request."""
        return 1e3 * self.cpu_s / len(self.calls)

    @property
    def late_ms(self) -> float:
        """P99 from the intended time to the last byte written, in milliseconds."""
        return 1e3 * float(np.percentile(self.calls.lateness_s, 99))


@contextlib.contextmanager
def bare_server() -> Iterator[str]:
    """The other side; its address."""
    process = subprocess.Popen([sys.executable, str(HERE / "bare_server.py")], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def ours(address: str, rate_rps: float, seconds: float, *, stream: bool = False) -> Run:
    """Our own, in one process; the first seconds, in which connections are made, are a step of their own."""
    api = Api.CHAT if stream else Api.HTTP
    url = f"{address}/{'stream' if stream else 'v1'}"
    endpoint = Endpoint(url=url, api=api, stream=stream, timeout_s=30.0)
    setup = Setup(endpoint=endpoint, items=(Item(body=b'{"prompt":"x"}'),), law=Law(), keep_texts=False)
    before = os.getloadavg()[0]
    with Crew(setup) as crew:
        sender = next(one for one in psutil.Process().children() if "ebbtide.adapters.load.worker" in one.cmdline())
        crew.begin(rate_rps, ceil(rate_rps * WARM_S), (1, 1))
        crew.decided()
        crew.begin(rate_rps, ceil(rate_rps * seconds), (1, 2))
        start = sum(sender.cpu_times()[:2])
        calls = crew.decided().calls
        cpu_s = sum(sender.cpu_times()[:2]) - start
    return Run(calls=calls, cpu_s=cpu_s, load=(before, os.getloadavg()[0]))


def loadgen(address: str, rate_rps: float, seconds: float) -> dict[str, float]:
    """LoadGen's CPU milliseconds a request, its rate, and its P99 latency from the scheduled time."""
    command = [sys.executable, str(HERE / "loadgen_peer.py"), f"{address}/v1", str(rate_rps), str(seconds)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {**found, "cpu_ms": 1e3 * found["cpu_s"] / (found["rate_rps"] * seconds)}


def locust(address: str, rate_rps: float, seconds: float) -> dict[str, float]:
    """Locust's CPU milliseconds a request, and the rate that it reached."""
    users = str(ceil(rate_rps / EACH_RPS))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "locust", "-f", str(HERE / "locust_peer.py"), "--headless", "--host", address]
        command += ["-u", users, "-r", users, "-t", f"{ceil(seconds)}s", "--csv", f"{folder}/run", "--only-summary"]
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cpu_s = 0.0
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                cpu_s = sum(process.cpu_times()[:2])
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(0.2)
        with (Path(folder) / "run_stats.csv").open(encoding="utf-8") as file:
            total = next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")
    return {"cpu_ms": 1e3 * cpu_s / int(total["Request Count"]), "rate_rps": float(total["Requests/s"])}


def main(rate_rps: float = 5_000.0, seconds: float = 60.0) -> int:
    """1 where a limit does not hold."""
    limits = tomllib.loads((HERE / "limits.toml").read_text())["generator"]
    with bare_server() as address:
        plain = ours(address, rate_rps, seconds)
        streams = ours(address, EVENTS_RPS / EVENTS, min(STREAM_S, seconds), stream=True)
        lg = loadgen(address, rate_rps, seconds / 3.0)
        closed = locust(address, rate_rps, seconds / 3.0)
    failed = int((plain.calls.fault != Fault.NONE).sum())
    events = int(streams.calls.events.sum())
    reached = events / float(streams.calls.intended_s[-1])
    stamped = bool(np.isfinite(streams.calls.first_s).all()) and events == EVENTS * len(streams.calls)
    latency_ms = 1e3 * float(np.percentile(plain.calls.latency_s, 99))
    print(
        f"{len(plain.calls):,} requests at {rate_rps:,.0f}/s: P99 lateness {plain.late_ms:.2f} ms, "
        f"{plain.cpu_ms:.3f} CPU-ms a request, {failed} failed; load average {plain.load[0]:.2f} to {plain.load[1]:.2f}"
    )
    print(
        f"{events:,} streamed events at {reached:,.0f}/s, {'each' if stamped else 'not each'} stamped: "
        f"{1e3 * streams.cpu_s / events:.3f} CPU-ms an event, P99 lateness {streams.late_ms:.2f} ms; "
        f"load average {streams.load[0]:.2f} to {streams.load[1]:.2f}"
    )
    print(
        f"LoadGen: {lg['rate_rps']:,.0f}/s, {lg['cpu_ms']:.3f} CPU-ms a request ({lg['cpu_ms'] / plain.cpu_ms:.1f} "
        f"times ours), P99 latency from the scheduled time {lg['p99_ms']:.2f} ms (ours {latency_ms:.2f})"
    )
    print(
        f"Locust: {closed['rate_rps']:,.0f}/s reached, {closed['cpu_ms']:.3f} CPU-ms a request "
        f"({closed['cpu_ms'] / plain.cpu_ms:.1f} times ours)"
    )
    good = (
        failed == 0,
        plain.late_ms <= limits["late_p99_ms"],
        plain.cpu_ms <= limits["cpu_ms"],
        stamped and reached >= 0.97 * EVENTS_RPS,
        lg["cpu_ms"] / plain.cpu_ms >= limits["times_loadgen"],
        closed["cpu_ms"] / plain.cpu_ms >= limits["times_locust"],
    )
    print("all limits hold" if all(good) else f"limits: {limits}; held: {good}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:3])))
