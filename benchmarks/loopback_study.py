"""Twelve whole measurements over real loopback, against a simulated server whose true rate has a closed form.

    uv run python -m benchmarks.loopback_study [--runs 12] [--together 4] [--first SEED]

Each run starts `ebbtide simulate-server` and `ebbtide measure` as a user does: sockets, HTTP, checks, the claim. A
third of the runs is limited by latency, a third by errors (shedding), a third by quality. Prints each interval beside
the true rate and the machine's load average; exits with 1 where fewer than eleven of twelve hold it; a run without an
interval holds nothing. The server calculates its queue in time (``simserver.slots``), so the true rate is that of the
mathematics, whatever the processors are busy with, as long as the server sees each request when it arrives: it runs
before other work where the system allows it, as the sender does. What is real is the way there and back. A run that
the machine was too busy to offer goes on with `--resume`, as its message says. In virtual time, with the same budgets,
38 to 40 of 40 runs of each case hold the true rate. About 20 minutes with four at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {{name: {name}}}
spec:
  endpoint: {{url: "{address}/v1/chat/completions", model: ebbtide-simulated}}
  requests: {{prompts: prompts.jsonl}}
  targets: [{{latency: {bound}, percentile: {percentile}}}]
  errorBudget: {errors}
  quality: {{exact: true, required: {required}, idle: 50}}
  search: {{start: {start:.4g}, requests: {requests}, tolerance: 0.08, seed: {seed}}}
"""


# Where the machine was too busy to offer a rate, a run goes on as its message says, so often.
RESUMES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A server, what it must hold, and where it crosses: ``bad`` is the bad share at a load in erlangs."""

    name: str
    slots: int
    time_s: float
    options: tuple[str, ...]
    bound: str
    requests: int
    bad: Callable[[float], float]
    between: tuple[float, float]
    allowed: float
    percentile: float = 0.95
    errors: float = 0.01
    required: float = 0.97

    @property
    def true_rps(self) -> float:
        """Where the bad share is what is allowed."""
        return float(brentq(lambda load: self.bad(load) - self.allowed, *self.between)) / self.time_s


def stationary(load: float, slots: int, most: int) -> np.ndarray:
    """P(n present), n = 0 … most, of M/M/c with room for ``most``."""
    weights = np.cumprod(np.concatenate(([1.0], load / np.minimum(np.arange(1, most + 1), slots))))
    return weights / weights.sum()


def late(load: float) -> float:
    """P(shed, or wait + service > 3.8 services) of M/M/64 with 8 places to wait: a wait is Erlang, of so many ends."""
    slots, bound, present = 64, 3.8, stationary(load, 64, 72)
    ends = np.arange(1, 9)
    after = exp(-bound) * (slots / (slots - 1.0)) ** ends * gammainc(ends, (slots - 1.0) * bound)
    waiting = gammaincc(ends, slots * bound) + after
    return float(present[:slots].sum() * exp(-bound) + present[slots:-1] @ waiting + present[-1])


def wrong(load: float) -> float:
    """Share of wrong answers: 0.5 % + 20 % · min(present / 16, 2)², present as arrivals find it."""
    present = np.arange(2001)
    return float(stationary(load, 16, 2000) @ (0.005 + 0.2 * np.minimum(present / 16.0, 2.0) ** 2))


# Memory sets the budgets, and a short one needs few requests: queues that can only grow so long. Bounds of seconds, so
# that a hundredth of them, which is how late a request may be sent, is more than a busy machine's turns take.
CASES = (
    Case(
        name="latency",
        slots=64,
        time_s=0.5,
        options=("--queue", "8"),
        bound="1900ms",
        requests=60_000,
        bad=late,
        between=(30.0, 80.0),
        allowed=0.05,
        errors=0.05,
    ),
    Case(
        name="errors",
        slots=8,
        time_s=0.05,
        options=("--queue", "4"),
        bound="2s",
        requests=40_000,
        bad=lambda load: float(stationary(load, 8, 12)[-1]),
        between=(2.0, 10.0),
        allowed=0.05,
        percentile=0.9,
        errors=0.05,
    ),
    Case(
        name="quality",
        slots=16,
        time_s=0.1,
        options=("--wrong", "0.005", "--wrong-slope", "0.2"),
        bound="4s",
        requests=40_000,
        bad=wrong,
        between=(5.0, 15.5),
        allowed=0.1,
        required=0.9,
    ),
)


def run(case: Case, seed: int) -> tuple[bool, str]:
    """One measurement: whether its interval holds the true rate, and a line about it."""
    rng = np.random.default_rng([seed, case.requests])
    ebbtide = [sys.executable, "-m", "ebbtide.cli.main"]
    server = [*ebbtide, "simulate-server", "--port", "0", "--slots", str(case.slots), "--time-s", str(case.time_s)]
    server += [*case.options, "--seed", str(seed)]
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            with contextlib.suppress(OSError, AttributeError):  # not allowed, or not a system that has it
                os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
            found = measured(Path(name), case, process.stdout.readline().strip(), seed, rng)
        finally:
            process.terminate()
    low, high = found.get("low_rps"), found.get("high_rps")
    inside = low is not None and high is not None and low <= case.true_rps <= high
    said = "no interval" if low is None or high is None else f"{low:.4g} to {high:.4g}"
    state = "" if found.get("resolved") else f", {found.get('reason', found.get('error'))}"
    return inside, (
        f"{case.name} {seed}: {said}, true {case.true_rps:.4g}: {'inside' if inside else 'OUTSIDE'}{state}; "
        f"limited by {found.get('limited_by')}, {found.get('requests')} requests, {found.get('void_steps')} void; "
        f"load average {os.getloadavg()[0]:.1f}"
    )


def measured(folder: Path, case: Case, address: str, seed: int, rng: np.random.Generator) -> dict[str, object]:
    """What `ebbtide measure` answers."""
    lines = [json.dumps({"prompt": f"say {number}", "expected": f"say {number}"}) for number in range(100)]
    (folder / "prompts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    text = TARGET.format(
        name=case.name,
        address=address,
        bound=case.bound,
        percentile=case.percentile,
        errors=case.errors,
        required=case.required,
        start=case.true_rps * (0.3 + 0.4 * rng.random()),
        requests=case.requests,
        seed=seed,
    )
    (folder / "target.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "ebbtide.cli.main", "measure", str(folder / "target.yaml"), "--json"]
    command += ["-o", str(folder / "claim.yaml")]
    found: dict[str, object] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    for _ in range(RESUMES):
        error = found.get("error")
        if not isinstance(error, dict) or error.get("kind") != "cannot_offer":
            break
        again = subprocess.run([*command, "--resume"], stdout=subprocess.PIPE, check=False)
        found = json.loads(again.stdout)
    return found


def main(arguments: list[str]) -> int:
    """1 where too few intervals hold the true rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--together", type=int, default=4)
    parser.add_argument("--first", type=int, default=11)
    asked = parser.parse_args(arguments)
    inside = 0
    with ThreadPoolExecutor(asked.together) as pool:
        jobs = [
            pool.submit(run, CASES[number % len(CASES)], asked.first + number // len(CASES))
            for number in range(asked.runs)
        ]
        for job in jobs:
            held, line = job.result()
            inside += held
            print(line, flush=True)
    print(f"{inside} of {asked.runs} inside")
    return 0 if inside >= asked.runs - max(1, asked.runs // 12) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
