"""Every way a command can end has its exit code and is told once, in the form that was asked for."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ebbtide.cli.answers import Exit, finish
from ebbtide.errors import DocumentError, InputError, PermanentError, Place, TemporaryError


def failing(error: BaseException):
    def work() -> int:
        raise error

    return work


WRONG = DocumentError(
    "unknown field", kind="unknown_field", place=Place(file="fleet.yaml", line=12, field="pools[h100].reservedNode")
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WRONG, Exit.INPUT_WRONG),
        (InputError("no", kind="x"), Exit.INPUT_WRONG),
        (TemporaryError("timeout", kind="x"), Exit.WORLD),
        (PermanentError("forbidden", kind="x"), Exit.WORLD),
        (MemoryError("Unable to allocate 2 TiB"), Exit.WORLD),
        (RuntimeError("oops"), Exit.BUG),
        (typer.Exit(3), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_failure_has_its_exit_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(failing(error), as_json=False) == code
    assert capsys.readouterr().out == ""


def test_an_error_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    finish(failing(WRONG), as_json=False)
    assert capsys.readouterr().err == "fleet.yaml:12: pools[h100].reservedNode: unknown field\n"


def test_an_error_as_json_is_one_object_on_stdout_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    finish(failing(WRONG), as_json=True)
    told = capsys.readouterr()
    assert told.err == ""
    assert json.loads(told.out) == {
        "error": {
            "kind": "unknown_field",
            "message": "unknown field",
            "file": "fleet.yaml",
            "line": 12,
            "field": "pools[h100].reservedNode",
        }
    }


def test_a_bug_says_so_and_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    finish(failing(RuntimeError("oops")), as_json=False)
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "a bug in ebbtide: RuntimeError: oops" in told


@pytest.mark.parametrize("lack", [MemoryError(), MemoryError("Unable to allocate 2 TiB")])
def test_too_little_memory_is_no_bug(lack: MemoryError, capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(failing(lack), as_json=True) == Exit.WORLD
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "memory"
    assert error["message"].startswith("there is not enough memory for this")
    assert str(lack) in error["message"]


COMMAND = "import sys; from ebbtide.cli.main import run; sys.argv = ['ebbtide', *sys.argv[1:]]; run()"
CALCULATE = ("size", "--arrival-rate-rps", "9", "--service-time-s", "1", "--servers", "10")


def in_shell(words: tuple[str, ...], redirect: str) -> subprocess.CompletedProcess[str]:
    """A command as a shell runs it: what only a process of its own has (closed or full streams) is seen here."""
    line = shlex.join([sys.executable, "-c", COMMAND, *words])
    return subprocess.run(f"{line} {redirect}", shell=True, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("words", [CALCULATE, ("--help",)])
@pytest.mark.parametrize("redirect", [">&- 2>&-", "2>/dev/full"])
def test_streams_that_nobody_reads_are_no_failure(words: tuple[str, ...], redirect: str) -> None:
    told = in_shell(words, redirect)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize("words", [(*CALCULATE, "--json"), ("--help",)])
def test_a_stdout_that_takes_nothing_is_told(words: tuple[str, ...]) -> None:
    told = in_shell(words, ">/dev/full")
    assert told.returncode == Exit.WORLD
    assert len(told.stderr.splitlines()) == 1
    assert "No space left" in told.stderr


def test_what_is_meant_for_a_closed_stderr_does_not_go_to_stdout() -> None:
    told = in_shell(("allocate", "nowhere.yaml"), "2>&-")
    assert (told.returncode, told.stdout) == (Exit.INPUT_WRONG, "")


def test_the_systems_refusal_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = OSError(errno.EMFILE, "Too many open files", "rates.csv")
    assert finish(failing(refusal), as_json=False) == Exit.WORLD
    assert capsys.readouterr().err == "rates.csv: the system refused: Too many open files\n"


def test_a_reader_that_went_away_is_no_failure() -> None:
    script = (
        "import sys; from ebbtide.cli.answers import finish, put\n"
        "sys.exit(finish(lambda: [put('x' * 80) for _ in range(100_000)] and 0, as_json=False))"
    )
    reader, writer = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    os.read(reader, 10)
    os.close(reader)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, b"")


@pytest.mark.parametrize("way", ["cat {} | {} validate /dev/stdin", "{1} validate /dev/stdin < {0}"])
def test_a_document_comes_through_standard_input(fleet_file: Path, way: str) -> None:
    command = shlex.join([sys.executable, "-c", COMMAND])
    line = way.format(shlex.quote(str(fleet_file)), command)
    told = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert "a valid Fleet, two-models" in told.stdout


def test_no_warning_of_a_library_reaches_the_user() -> None:
    script = (
        "import sys, warnings; import ebbtide.cli.main as main\n"
        "def work(*_, **__): warnings.warn('divide by zero encountered in divide', RuntimeWarning); return 0\n"
        "main.finish = work; main.run()"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
