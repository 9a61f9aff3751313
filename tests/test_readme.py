"""The README's walk-through: every command in it is run, in order, as a newcomer would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"# exit (\d+)$")


def commands(page: str) -> list[str]:
    """The lines after ``$`` in the page's console blocks."""
    lines = [line for block in CONSOLE.findall(page) for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, as in a fresh clone."""
    folder = tmp_path_factory.mktemp("walk")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("schedule.*", "report.html"))
    return folder


def test_every_command_of_the_readme_runs_and_answers(walk: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = [command for command in commands(page) if not command.startswith(("git ", "make "))]
    assert len(found) >= 6
    environment = {**os.environ, "UV_PROJECT": str(ROOT), "UV_NO_SYNC": "1", "NO_COLOR": "1"}
    for command in found:
        expected = int(match[1]) if (match := EXIT.search(command)) else 0
        done = subprocess.run(
            ["bash", "-c", command], cwd=walk, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip() or "ebbtide" not in command, f"{command} answered nothing"
        assert "Traceback" not in done.stderr
