"""What a path is that is no file: said by name, and never waited for.

What belongs here: opening for reading without hanging, and words for what isn't a file. What doesn't: errors, whose
form each room has of its own.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import BinaryIO

# A pipe that the shell opened for us (`… | ebbtide validate /dev/stdin`, `<(…)`): somebody writes to it, or did.
_OPENED_FOR_US = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NoFileError(Exception):
    """The path is there but is no file; the text says what it is, such as ``a directory``."""


def not_a_file(mode: int) -> str | None:
    """What a thing of this mode is, in words; None where it is a file.

    >>> not_a_file(stat.S_IFIFO), not_a_file(stat.S_IFREG)
    ('a pipe', None)
    """
    return next((words for test, words in _KINDS if test(mode)), None)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A file opened for reading, or a pipe that this process was started with.

    Raises ``NoFileError`` for anything else, without waiting: opening a named pipe as a file would hang until somebody
    writes to it. ``OSError`` as ``open`` does.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as refusal:
        if refusal.errno == errno.ENXIO:  # nobody opens a socket, or a device that isn't plugged in
            raise NoFileError(not_a_file(os.stat(path).st_mode) or "a device") from refusal
        raise
    try:
        mode = os.fstat(handle).st_mode
        words = not_a_file(mode)
        given = stat.S_ISFIFO(mode) and _OPENED_FOR_US.fullmatch(os.path.abspath(path))
        if words is not None and not given and not os.isatty(handle):
            raise NoFileError(words)
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise
