"""Fresh files beside a target, between their writing and their rename; those of a killed run are swept away.

A fresh file is locked as long as the process that made it lives (``flock``: the system drops the lock with the
process, however it ended). So what can be locked belongs to nobody any more. A process number in the name would not
do: containers share folders and count their processes each from 1.

What belongs here: names, locks and the sweeping. What doesn't: what is written, and renames.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

_NAME_LENGTH = 100  # of the target's own name; with dots and digits it stays below the 255 of a file system


@dataclass(slots=True)
class Fresh:
    """A file of ours beside its target; ``handle`` holds its lock until ``release``."""

    path: Path
    handle: int

    def release(self, *, keep: bool = False) -> None:
        """Remove it (unless it was renamed, ``keep``) and let go of the lock."""
        try:
            if not keep:
                self.path.unlink(missing_ok=True)
        finally:
            if self.handle >= 0:
                os.close(self.handle)
                self.handle = -1


def new_file(target: Path) -> Fresh:
    """A new, empty, locked file beside ``target``; O_EXCL and mode 0666: the permissions of the user's umask."""
    while True:
        path = _beside(target)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        if _locked(path, handle):
            return Fresh(path, handle)
        os.close(handle)


def kept(target: Path) -> Fresh:
    """Another name for what stands at ``target`` now, to put it back: a hard link, or a copy where there are none."""
    path = _beside(target)
    try:
        os.link(target, path)
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        path.unlink(missing_ok=True)
        return _copied(target)
    if _locked(path, handle):
        return Fresh(path, handle)
    os.close(handle)
    path.unlink(missing_ok=True)
    return _copied(target)


def sweep(target: Path) -> None:
    """Remove what killed runs left beside ``target``. What a living one still holds stays, as do files of others."""
    ours = re.compile(rf"\.{re.escape(target.name[:_NAME_LENGTH])}\.[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        left = [target.parent / entry.name for entry in entries if ours.fullmatch(entry.name)]
        for path in left:
            with contextlib.suppress(OSError):  # what can't be opened or locked isn't ours to remove
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(handle)


def _locked(path: Path, handle: int) -> bool:
    """Lock it, and see that nobody swept it away before. Shared: two runs may keep one old file, each by its link."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody can sweep there either
        return True
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _copied(target: Path) -> Fresh:
    fresh = new_file(target)
    try:
        with os.fdopen(os.dup(fresh.handle), "wb") as file:
            file.write(target.read_bytes())
        os.chmod(fresh.path, stat.S_IMODE(target.stat().st_mode))
    except BaseException:
        fresh.release()
        raise
    return fresh


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:_NAME_LENGTH]}.{secrets.token_hex(4)}.tmp")
