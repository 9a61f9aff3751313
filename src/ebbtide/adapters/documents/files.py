"""Files read whole and written whole: an output is either the old one or the new one, never a part of one.

What belongs here: atomic replacement of one file or of several together, and the mark by which ebbtide knows its own
outputs. What doesn't: what stands in a file.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import EbbtideError, InputError, PermanentError, Place

MARK = b"written by ebbtide"
MARK_WITHIN = 1024  # bytes from the start of an output (unzipped) that hold the mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file to write: where, and all that is to stand in it. Outputs carry ``MARK`` near their start."""

    path: Path
    content: bytes


def read_bytes(path: Path, *, at_most: int) -> bytes:
    """A file's bytes, one more than ``at_most`` where it is larger (the caller refuses it).

    Raises ``InputError`` where there is no such file, ``PermanentError`` where it may not be read.
    """
    with _explained(path, "read"), open(path, "rb") as file:
        return file.read(at_most + 1)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by new content in one step, keeping its permissions; a link's target is replaced, not the link.

    Raises ``InputError`` where there is no such folder or the path is no file, ``PermanentError`` where the system
    refuses. Nothing is left behind on an error.
    """
    write_together([Output(path=path, content=content)])


def write_together(outputs: Sequence[Output]) -> None:
    """Replace several files, all or none: every content is on disk before the first name changes.

    Should a later rename fail, the earlier ones are undone. Errors as ``write_atomically``.
    """
    staged: list[_Staged] = []
    try:
        for output in outputs:
            staged.append(_stage(output))
        for one in staged:
            one.commit()
    except BaseException:
        for one in reversed(staged):
            one.undo()
        raise
    for one in staged:
        one.finish()


def make_folder(path: Path) -> None:
    """Make a folder for outputs, and those above it, where there is none. Errors as ``write_atomically``."""
    with _explained(path, "written"):
        path.mkdir(parents=True, exist_ok=True)


def refuse_foreign(path: Path) -> None:
    """Raise ``InputError`` (kind ``foreign_output``) where a file stands that ebbtide did not write."""
    with _explained(path, "written"):
        if not path.exists():
            return
    if not path.is_file():
        raise InputError("is no file, so it can't be written", kind="not_a_file", place=Place(file=str(path)))
    if not is_ours(path):
        raise InputError(
            "is there already, and ebbtide did not write it; it stays as it is",
            kind="foreign_output",
            place=Place(file=str(path)),
            hint="move it away, or write to another folder with -o",
        )


def is_ours(path: Path) -> bool:
    """Whether the file carries ebbtide's mark near its start."""
    with _explained(path, "read"), open(path, "rb") as file:
        start = file.read(MARK_WITHIN)
        if not start.startswith(b"\x1f\x8b"):
            return MARK in start
        file.seek(0)
        try:
            return MARK in gzip.GzipFile(fileobj=file).read(MARK_WITHIN)
        except (gzip.BadGzipFile, zlib.error, EOFError):
            return False


@dataclass(slots=True)
class _Staged:
    """One output between its writing and its rename."""

    target: Path
    fresh: Path
    old: Path | None = None
    done: bool = False

    def commit(self) -> None:
        with _explained(self.target, "written"):
            if self.target.exists():
                self.old = _beside(self.target)
                _keep(self.target, self.old)
            os.replace(self.fresh, self.target)
            self.done = True

    def undo(self) -> None:
        if self.done and self.old is not None:
            os.replace(self.old, self.target)
        elif self.done:
            self.target.unlink(missing_ok=True)
        self.fresh.unlink(missing_ok=True)
        if self.old is not None:
            self.old.unlink(missing_ok=True)

    def finish(self) -> None:
        if self.old is not None:
            self.old.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # some file systems can't sync a folder; the content itself is synced
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _stage(output: Output) -> _Staged:
    with _explained(output.path, "written"):
        target = Path(os.path.realpath(output.path))
        if target.is_dir():
            raise IsADirectoryError(str(target))
        fresh = _beside(target)
        try:
            _write_new(fresh, output.content)
            if target.exists():
                os.chmod(fresh, stat.S_IMODE(target.stat().st_mode))
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        return _Staged(target, fresh)


def _write_new(path: Path, content: bytes) -> None:
    # O_EXCL and mode 0666: a new name, with the permissions that the user's umask gives any new file.
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _keep(target: Path, copy: Path) -> None:
    try:
        os.link(target, copy)
    except OSError:  # no hard links here: a copy does as well
        copy.write_bytes(target.read_bytes())


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")


@contextlib.contextmanager
def _explained(path: Path, what: str) -> Iterator[None]:
    """The operating system's refusals as errors that name the file."""
    place = Place(file=str(path))
    try:
        yield
    except EbbtideError:
        raise
    except FileNotFoundError as problem:
        missing_folder = what == "written"
        raise InputError(
            "its folder does not exist" if missing_folder else "no such file",
            kind="no_folder" if missing_folder else "no_file",
            place=place,
        ) from problem
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as problem:
        raise InputError(f"is no file, so it can't be {what}", kind="not_a_file", place=place) from problem
    except PermissionError as problem:
        raise PermanentError(f"may not be {what}: permission denied", kind="permission", place=place) from problem
    except OSError as problem:
        raise PermanentError(f"can't be {what}: {problem.strerror}", kind="io", place=place) from problem
    except ValueError as problem:  # a NUL in the path
        raise InputError(f"can't be {what}: {problem}", kind="bad_path", place=place) from problem
