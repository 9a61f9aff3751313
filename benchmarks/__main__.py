"""Every benchmark that has limits, one after the other: ``uv run --group bench python -m benchmarks [NAME...]``."""

from __future__ import annotations

import subprocess
import sys

NAMES = ("help", "sizing", "simulation", "plan", "whole", "aggregate", "control", "control_plane", "generator", "batch")


def main(names: list[str]) -> int:
    """The number of benchmarks that missed a limit; each runs in a process of its own, so that none warms another."""
    missed = 0
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        missed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
