"""How a command ends: exit codes, errors as text or as one JSON object, data on stdout and talk on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from enum import IntEnum

import typer
from typer.exceptions import TyperException

from ebbtide.cli.options import machine_name
from ebbtide.errors import EbbtideError, InputError, PermanentError, Place


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    CHECK_SAID_NO = 1
    INPUT_WRONG = 2
    INFEASIBLE = 3
    WORLD = 4
    BUG = 70


STOPPED = 130  # as shells say it: 128 and the number of the signal (2)


def open_streams() -> None:
    """Give a command that was started with closed streams (``>&-``) the null device in their places.

    Without it the next file that is opened becomes number 1 or 2, and what a library prints goes into it; and Python
    prints what is meant for a missing stderr to stdout.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open as long as the process


def put(text: str) -> None:
    """Data: one block of text on stdout, on its way when this returns.

    A stdout that was closed, or whose reader went away (`| head`), wants no data: that is no failure. Raises
    ``PermanentError`` where it takes none (a full disk): a script must not take half an answer for a whole one.
    """
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    except UnicodeEncodeError as problem:
        message = f"takes {problem.encoding} alone; the answer holds other characters"
        place = Place(file="stdout")
        raise PermanentError(message, kind="stdout", place=place, hint="set PYTHONIOENCODING=utf-8") from problem
    except OSError as problem:
        _forget_stdout()
        message = f"can't be written: {problem.strerror}"
        raise PermanentError(message, kind="stdout", place=Place(file="stdout")) from problem


def _forget_stdout() -> None:
    """What is left in its buffer goes nowhere, so that the interpreter's last flush can't fail on it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def put_json(value: Mapping[str, object]) -> None:
    """Data for scripts: one JSON object on stdout; infinities never get here (they are named states)."""
    put(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Talk: a line on stderr; a stderr that takes none (closed, or a full disk) changes nothing."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def error_json(error: EbbtideError) -> dict[str, object]:
    """The JSON form of an error (DOCUMENTS §5): absent parts are left out.

    >>> error_json(InputError("no rows", kind="no_rows", hint="export again"))
    {'error': {'kind': 'no_rows', 'message': 'no rows; export again', 'hint': 'export again'}}
    """
    place, field = error.place, machine_name(error.place.field)
    message = f"{error.message}; {error.next_step}" if error.next_step else error.message
    parts = {"kind": error.kind, "message": message, "file": place.file, "line": place.line, "field": field}
    return {"error": {name: value for name, value in {**parts, "hint": error.hint}.items() if value is not None}}


def finish(work: Callable[[], int], *, as_json: bool) -> int:
    """Run one command to its exit code; every failure is told once, in the form that was asked for."""
    try:
        code = work()
    except typer.Exit as leave:
        return leave.exit_code
    except SystemExit:  # so typer ends where the reader of a help page went away
        return Exit.DONE
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    except TyperException as wrong:
        return _usage(wrong, as_json)
    except EbbtideError as error:
        return _error(error, as_json)
    except OSError as refusal:
        return _error(_refused(refusal), as_json)
    except MemoryError as lack:
        return _error(_out_of_memory(lack), as_json)
    except Exception as bug:
        return _bug(bug, as_json)
    if code == STOPPED:  # typer makes this code of Ctrl-C by itself
        say("stopped")
    return code


def _error(error: EbbtideError, as_json: bool) -> int:
    if as_json and error.kind != "stdout":
        with contextlib.suppress(PermanentError):  # stdout takes nothing: the exit code has to do
            put_json(error_json(error))
    else:
        say(str(error))
    return Exit.INPUT_WRONG if isinstance(error, InputError) else Exit.WORLD


def _refused(refusal: OSError) -> PermanentError:
    """What the operating system refused where no adapter expected it: still no bug, and still with its file."""
    place = Place(file=None if refusal.filename is None else str(refusal.filename))
    return PermanentError(f"the system refused: {refusal.strerror or refusal}", kind="io", place=place)


def _out_of_memory(lack: MemoryError) -> PermanentError:
    """The machine is too small for the question: no bug, and nothing that another try changes."""
    message = f"there is not enough memory for this ({lack})" if str(lack) else "there is not enough memory for this"
    hint = "plan fewer nodes, workloads or windows, or on a larger machine"
    return PermanentError(message, kind="memory", hint=hint)


def _usage(wrong: TyperException, as_json: bool) -> int:
    if as_json:
        parameter = getattr(getattr(wrong, "param", None), "name", None)  # the argument's, where one is wrong
        field = {} if parameter is None else {"field": parameter}
        put_json({"error": {"kind": "usage", "message": wrong.format_message(), **field}})
    else:
        show = getattr(wrong, "show", None)  # usage errors know how to show the command's own usage line
        show() if show is not None else say(wrong.format_message())
    return Exit.INPUT_WRONG


def _bug(bug: Exception, as_json: bool) -> int:
    text = f"a bug in ebbtide: {type(bug).__name__}: {bug}; nothing was written; please report the lines above"
    traceback.print_exc()
    if as_json:
        put_json({"error": {"kind": "bug", "message": text}})
    else:
        say(text)
    return Exit.BUG
