"""A real model measured end to end, twice: once latency binds, once quality does.

``uv run python -m benchmarks.real_model [REQUESTS]``: RapidOCR reads pictures of digits on one core of this machine
(examples/ocr), `ebbtide measure` finds what it holds. First it reads every picture whole: the wait for the one core
binds. Then it shrinks pictures while more than two are there, and reads them worse: the share of right answers binds,
at a lower rate. About 10 minutes with 6,000 requests each. Exits with 1 where another limit binds than should.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "ocr"
PORT = 8791
NOISE = 40


@contextlib.contextmanager
def served(*options: str) -> Iterator[None]:
    """The model on its port."""
    command = [sys.executable, str(EXAMPLE / "serve.py"), "--port", str(PORT), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not listens():
            if process.poll() is not None:
                raise SystemExit("the model's server ended")
            time.sleep(0.3)
        yield
    finally:
        process.terminate()
        process.wait()


def listens() -> bool:
    """Whether somebody does on the port."""
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
        return True
    return False


def measured(folder: Path, requests: int, *options: str) -> dict[str, object]:
    """What `ebbtide measure` answers of the model with those options."""
    text = (EXAMPLE / "target.yaml").read_text(encoding="utf-8").replace("8001", str(PORT))
    (folder / "target.yaml").write_text(text.replace("requests: 8000", f"requests: {requests}"), encoding="utf-8")
    with served(*options):
        command = [sys.executable, "-m", "ebbtide.cli.main", "measure", str(folder / "target.yaml"), "--json"]
        done = subprocess.run([*command, "-o", str(folder / "claim.yaml")], stdout=subprocess.PIPE, check=False)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main(requests: int = 6_000) -> int:
    """1 where another limit binds than should."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make = [sys.executable, str(EXAMPLE / "digits.py"), str(folder / "digits"), "--noise", str(NOISE)]
        subprocess.run(make, check=True)
        for options, wanted in (((), "latency"), (("--hurry", "2"), "quality")):
            found = measured(folder, requests, *options)
            if "error" in found:
                print(found["error"])
            print(
                f"{' '.join(options) or 'every picture whole'}: {found.get('low_rps')} to {found.get('high_rps')} "
                f"pictures a second, limited by {found.get('limited_by')}; {found.get('requests')} requests, "
                f"against idle: {found.get('against_idle')}; load average {os.getloadavg()[0]:.2f}",
                flush=True,
            )
            wrong += found.get("limited_by") != wanted
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
