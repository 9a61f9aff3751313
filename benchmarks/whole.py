"""`ebbtide allocate` from a file of demand to schedule and report: CPU time and peak memory of the whole command.

    uv run python -m benchmarks.whole [WORKLOADS]

A generated CSV of 200 workloads over 14 days at 10 minutes, 12 given windows a day, 500 nodes of 8 GPUs. The command
runs as its users run it, in a process of its own, its first run only warming the caches of compiled code. Limits are
in ``limits.toml``, section ``[whole]``; exit code 1 where one is broken.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np

LIMITS = tomllib.loads(Path(__file__).with_name("limits.toml").read_text())["whole"]
WORKLOADS = 200
NODES_PER_WORKLOAD = 2.5
DAYS, PER_DAY = 14, 144
SERVICE_S, SLOTS, GPUS_PER_NODE = 6.0, 16, 8
WIDTHS = np.array([1, 2, 4, 8])
MEAN_SHARE = 0.4  # of the pool's GPUs: at the evening's peak, margins included, production holds three quarters
SEED = 20_261_201
MET, SHORT = 0, 3  # exit codes of a schedule: all targets met, some not

FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {{name: whole}}
spec:
  timeZone: UTC
  demand: [{{name: log, file: demand.csv, origin: "2026-09-01T00:00"}}]
  windows: [{{starts: [{starts}]}}]
  pools: [{{name: h100, gpusPerNode: 8, nodes: {nodes}, yieldTime: 20m, reclaimTime: 45m, movesAtOnce: 16}}]
  research: {{valueUsdPerGpuHour: 2.00, checkpointInterval: 30m}}
  workloads:
{workloads}
"""
WORKLOAD = """\
  - name: {name}
    gpusPerReplica: {width}
    service: {{time: {time:.2f}s, concurrency: 16}}
    targets: [{{wait: 2s}}]
    waitingCostUsdPerRequestHour: {cost:.2f}"""


def write_fleet(folder: Path, workloads: int) -> Path:
    """A Fleet and its demand: a daily wave per workload with its own size and phase, days that differ, noise."""
    rng = np.random.default_rng(SEED)
    nodes = round(NODES_PER_WORKLOAD * workloads)
    names = [f"w{n:04}" for n in range(workloads)]
    widths = rng.choice(WIDTHS, size=workloads, p=[0.4, 0.3, 0.2, 0.1])
    times_s = rng.uniform(0.5, 1.5, workloads) * SERVICE_S
    sizes = rng.lognormal(0.0, 1.0, workloads)
    mean_rps = sizes / float(sizes @ widths) * MEAN_SHARE * nodes * GPUS_PER_NODE * SLOTS / times_s
    hour = np.arange(DAYS * PER_DAY) % PER_DAY / PER_DAY * 24.0
    waves = 1.0 + 0.6 * np.cos((hour - rng.normal(15.0, 1.5, (workloads, 1))) / 12.0 * np.pi)
    days = np.repeat(rng.normal(1.0, 0.05, (workloads, DAYS)), PER_DAY, axis=1)
    rates = mean_rps[:, None] * waves * days * rng.normal(1.0, 0.05, waves.shape)
    rows = (f"{600 * i},{name},{rates[n, i]:.4f}" for i in range(DAYS * PER_DAY) for n, name in enumerate(names))
    (folder / "demand.csv").write_text("t_s,workload,rate_rps\n" + "\n".join(rows) + "\n")
    text = FLEET.format(
        starts=", ".join(f'"{clock:02}:00"' for clock in range(0, 24, 2)),
        nodes=nodes,
        workloads="\n".join(
            WORKLOAD.format(name=name, width=width, time=time, cost=rng.uniform(0.5, 4.0))
            for name, width, time in zip(names, widths, times_s, strict=True)
        ),
    )
    path = folder / "fleet.yaml"
    path.write_text(text)
    return path


def allocated(fleet: Path) -> tuple[float, float]:
    """CPU seconds and peak MiB of one `ebbtide allocate`."""
    command = [sys.executable, "-m", "ebbtide.cli.main", "allocate", str(fleet)]
    # Compiled modules are a cache too, and a first run must be able to fill it.
    warmed = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet, cwd=fleet.parent, env=warmed) as running:
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode not in (MET, SHORT) or not (fleet.parent / "report.html").is_file():
        raise RuntimeError(f"ebbtide allocate ended with exit code {running.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0


def main(workloads: int = WORKLOADS) -> int:
    """1 where a limit does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = write_fleet(Path(folder), workloads)
        allocated(fleet)
        cpu_s, peak_mib = allocated(fleet)
    print(f"{workloads} workloads: {cpu_s:.1f} CPU-s, at most {LIMITS['cpu_s']}")
    print(f"peak memory {peak_mib:.0f} MiB, at most {LIMITS['peak_mib']}")
    return 0 if cpu_s <= LIMITS["cpu_s"] and peak_mib <= LIMITS["peak_mib"] else 1


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
