"""MLCommons' LoadGen in its server scenario over the same HTTP client, as the generator's peer: prints one JSON object.

``python benchmarks/loadgen_peer.py URL RATE SECONDS``. LoadGen decides when each request is issued and calls back from
a thread of its own; aiohttp on uvloop sends it, as ebbtide does.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

import aiohttp
import mlperf_loadgen as lg
import uvloop
from yarl import URL

BODY = b'{"prompt":"x"}'


def measured(url: str, rate_rps: float, seconds: float) -> dict[str, float]:
    """CPU and latency of one run; latency is LoadGen's, from the time that it had scheduled."""
    loop = uvloop.new_event_loop()
    session: list[aiohttp.ClientSession] = []
    tasks: set[asyncio.Task[None]] = set()

    async def opened() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        session.append(aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()))

    async def send(number: int) -> None:
        async with session[0].post(URL(url), data=BODY, headers={"Content-Type": "application/json"}) as response:
            await response.read()
        lg.QuerySamplesComplete([lg.QuerySampleResponse(number, 0, 0)])

    def begin(number: int) -> None:
        task = loop.create_task(send(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def issue(samples: list[lg.QuerySample]) -> None:
        for one in samples:
            loop.call_soon_threadsafe(begin, one.id)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(opened(), loop).result()
    settings = lg.TestSettings()
    settings.scenario, settings.mode = lg.TestScenario.Server, lg.TestMode.PerformanceOnly
    settings.server_target_qps = rate_rps
    settings.min_duration_ms = settings.max_duration_ms = int(1000 * seconds)
    settings.min_query_count = 1
    sut = lg.ConstructSUT(issue, lambda: None)
    library = lg.ConstructQSL(1, 1, lambda samples: None, lambda samples: None)
    with tempfile.TemporaryDirectory() as folder:
        output = lg.LogOutputSettings()
        output.outdir, output.copy_summary_to_stdout = folder, False
        logs = lg.LogSettings()
        logs.log_output, logs.enable_trace = output, False
        before = time.process_time()
        lg.StartTestWithLogSettings(sut, library, settings, logs, "")
        cpu_s = time.process_time() - before
        summary = (Path(folder) / "mlperf_log_summary.txt").read_text()
    asyncio.run_coroutine_threadsafe(session[0].close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    return {"cpu_s": cpu_s, **_figures(summary)}


def _figures(summary: str) -> dict[str, float]:
    def number(name: str) -> float:
        found = re.search(rf"{re.escape(name)}\s*[:=]\s*([0-9.e+]+)", summary)
        return float(found[1]) if found else float("nan")

    return {
        "rate_rps": number("Completed samples per second"),
        "p99_ms": number("99.00 percentile latency (ns)") / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))))
