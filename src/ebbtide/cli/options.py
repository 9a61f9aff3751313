"""Errors about arguments, in the words of the command line: ``--target-wait-s``, not ``target_wait_s``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

import typer

from ebbtide.errors import InputError, Place


@contextlib.contextmanager
def errors_by_option(context: typer.Context, *, also: Mapping[str, str]) -> Iterator[None]:
    """Arguments that an ``InputError`` names become the command's options, in its field, message and hint.

    ``also``: the option that a quantity of no option's name is to be laid to.
    """
    options = {str(one.name): one.opts[0] for one in context.command.params if one.opts[0].startswith("--")}
    try:
        yield
    except InputError as error:
        if error.place.file is not None:  # of a file that was named, not of an argument
            raise
        raise named_by_option(error, options, also=also) from error


def named_by_option(error: InputError, options: Mapping[str, str], *, also: Mapping[str, str]) -> InputError:
    """The error in the command line's words.

    >>> error = InputError("rate_rps must be at least 0, not -1", kind="bad_rate_rps", place=Place(field="rate_rps"))
    >>> print(named_by_option(error, {"rate_rps": "--rate-rps"}, also={}))
    --rate-rps: must be at least 0, not -1
    """
    field = error.place.field or ""
    option = options.get(also.get(field, field), field)
    message = _in_options(error.message, options)
    if message.startswith(f"{option} must "):  # the place says it already
        message = message.removeprefix(f"{option} ")
    hint = None if error.hint is None else _in_options(error.hint, options)
    return InputError(message, kind=error.kind, place=Place(field=option or None), hint=hint)


def machine_name(field: str | None) -> str | None:
    """A field as scripts know it: an option by its argument's name, anything else as it is.

    >>> machine_name("--target-wait-s"), machine_name("pools[h100].nodes"), machine_name(None)
    ('target_wait_s', 'pools[h100].nodes', None)
    """
    return field[2:].replace("-", "_") if field is not None and field.startswith("--") else field


def _in_options(text: str, options: Mapping[str, str]) -> str:
    """Names of one word (``servers``) are words of English too: they name the option where a sentence begins."""
    for name, option in options.items():
        text = re.sub(rf"\b{name}\b" if "_" in name else rf"\A{name}\b", option, text)
    return text
