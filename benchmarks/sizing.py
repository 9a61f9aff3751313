"""100,000 percentile sizings against pyworkforce's rate in the same run: CPU time, limits in limits.toml.

``uv run --group bench python benchmarks/sizing.py`` prints the figures and exits 1 if a limit is missed. Loads are
log-uniform from 1 to 100,000 erlangs, percentiles and targets mixed. pyworkforce is timed on a sample of the same
sizings, evenly over the loads, for its time grows with them; it starts at round(load + 1) and may answer one
server too many, so only its time is compared.
"""

from __future__ import annotations

import sys
import time
import tomllib
from pathlib import Path

import numpy as np
from pyworkforce.queuing import ErlangC

from ebbtide.queueing.sizing import least_servers

SIZINGS = 100_000
PEER_SIZINGS = 40


def main() -> int:
    limits = tomllib.loads(Path(__file__).with_name("limits.toml").read_text(encoding="utf-8"))["sizing"]
    rng = np.random.default_rng(20260901)
    load = np.exp(rng.uniform(0.0, np.log(1e5), SIZINGS))
    share = rng.choice([0.5, 0.8, 0.9, 0.95, 0.99], SIZINGS)
    wait_s = rng.choice([0.01, 0.1, 0.5, 2.0], SIZINGS)
    least_servers(load[:10], 1.0, wait_s[:10], share[:10])
    began = time.process_time()
    least_servers(load, 1.0, wait_s, share)
    ours_s = (time.process_time() - began) / SIZINGS
    order = np.argsort(load)[:: SIZINGS // PEER_SIZINGS][:PEER_SIZINGS]
    began = time.process_time()
    for i in order:
        # Its interval and handling time share a unit; one request an interval of S/load makes the load.
        peer = ErlangC(transactions=1, aht=1.0, asa=float(wait_s[i]), interval=float(1.0 / load[i]), shrinkage=0.0)
        peer.required_positions(service_level=float(share[i]), max_occupancy=1.0)
    peer_s = (time.process_time() - began) / len(order)
    ratio = peer_s / ours_s
    print(f"ebbtide      {ours_s * 1e6:12.3f} us a sizing ({ours_s * SIZINGS:.3f} CPU-s for {SIZINGS:,})")
    print(f"pyworkforce  {peer_s * 1e6:12.0f} us a sizing ({len(order)} sizings over the same loads)")
    print(f"ratio        {ratio:12,.0f} times; limit {limits['least_ratio']:,}")
    return 0 if ratio >= limits["least_ratio"] else 1


if __name__ == "__main__":
    sys.exit(main())
