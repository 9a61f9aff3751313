"""How a command ends: exit codes, errors as text or as one JSON object, data on stdout and talk on stderr."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from enum import IntEnum

import typer
from typer.exceptions import TyperException

from ebbtide.errors import EbbtideError, InputError


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    CHECK_SAID_NO = 1
    INPUT_WRONG = 2
    INFEASIBLE = 3
    WORLD = 4
    BUG = 70


def put(text: str) -> None:
    """Data: one block of text on stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def put_json(value: Mapping[str, object]) -> None:
    """Data for scripts: one JSON object on stdout; infinities never get here (they are named states)."""
    put(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    """Talk: a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def error_json(error: EbbtideError) -> dict[str, object]:
    """The JSON form of an error (DOCUMENTS §5): absent parts are left out.

    >>> error_json(InputError("no rows", kind="no_rows", hint="export again"))
    {'error': {'kind': 'no_rows', 'message': 'no rows; export again', 'hint': 'export again'}}
    """
    place = error.place
    message = f"{error.message}; {error.next_step}" if error.next_step else error.message
    parts = {"kind": error.kind, "message": message, "file": place.file, "line": place.line, "field": place.field}
    return {"error": {name: value for name, value in {**parts, "hint": error.hint}.items() if value is not None}}


def finish(work: Callable[[], int], *, as_json: bool) -> int:
    """Run one command to its exit code; every failure is told once, in the form that was asked for."""
    try:
        return work()
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        say("stopped; nothing was written")
        return 130
    except TyperException as wrong:
        return _usage(wrong, as_json)
    except EbbtideError as error:
        put_json(error_json(error)) if as_json else say(str(error))
        return Exit.INPUT_WRONG if isinstance(error, InputError) else Exit.WORLD
    except BrokenPipeError:
        # The reader went away (`| head`): no fault of ours; keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except Exception as bug:
        return _bug(bug, as_json)


def _usage(wrong: TyperException, as_json: bool) -> int:
    if as_json:
        put_json({"error": {"kind": "usage", "message": wrong.format_message()}})
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
