"""Every guard of control is taken away once, and a test named for it fails (``mutants.toml``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = 4


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_guard_that_is_taken_away_is_missed(part):
    table = Path(__file__).with_name("mutants.toml")
    command = [sys.executable, str(ROOT / "scripts" / "mutants.py"), str(table), str(part), str(PARTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
