"""Files read whole and written whole: an output is either the old one or the new one, never a part of one.

What belongs here: atomic replacement of one file or of several together, and the mark by which ebbtide knows its own
outputs. What doesn't: what stands in a file.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebbtide.adapters.documents.fresh_files import Fresh, kept, new_file, sweep
from ebbtide.adapters.file_kinds import NoFileError, open_file
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

    Raises ``InputError`` where there is no such file, or where the path is none (a named pipe is not waited for),
    ``PermanentError`` where it may not be read.
    """
    with _explained(path, "read"), open_file(path) as file:
        return file.read(at_most + 1)


def file_sha256(path: Path) -> str:
    """``sha256:`` and the digest of a file's bytes, however large it is. Errors as ``read_bytes``."""
    with _explained(path, "read"), open_file(path) as file:
        found = hashlib.sha256()
        while part := file.read(2**20):
            found.update(part)
        return "sha256:" + found.hexdigest()


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
    with _explained(path, "read"), open_file(path) as file:
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
    fresh: Fresh
    old: Fresh | None = None
    done: bool = False

    def commit(self) -> None:
        with _explained(self.target, "written"):
            if self.target.exists():
                self.old = kept(self.target)
            os.replace(self.fresh.path, self.target)
            self.done = True

    def undo(self) -> None:
        if self.done and self.old is not None:
            os.replace(self.old.path, self.target)
        elif self.done:
            self.target.unlink(missing_ok=True)
        self._release()

    def finish(self) -> None:
        self._release()
        with contextlib.suppress(OSError):  # some file systems can't sync a folder; the content itself is synced
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _release(self) -> None:
        self.fresh.release(keep=self.done)
        if self.old is not None:
            self.old.release()


def _stage(output: Output) -> _Staged:
    with _explained(output.path, "written"):
        target = Path(os.path.realpath(output.path))
        if target.is_dir():
            raise IsADirectoryError(str(target))
        if target.is_symlink():  # all links were followed: this one leads to itself
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        sweep(target)
        fresh = new_file(target)
        try:
            _fill(fresh, output.content)
            if target.exists():
                os.chmod(fresh.path, stat.S_IMODE(target.stat().st_mode))
        except BaseException:
            fresh.release()
            raise
        return _Staged(target, fresh)


def _fill(fresh: Fresh, content: bytes) -> None:
    with os.fdopen(os.dup(fresh.handle), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


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
    except NoFileError as problem:
        hint = "write what it gives into a file first" if str(problem) == "a pipe" else None
        raise InputError(f"is {problem}, no file", kind="not_a_file", place=place, hint=hint) from problem
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as problem:
        raise InputError(f"is no file, so it can't be {what}", kind="not_a_file", place=place) from problem
    except PermissionError as problem:
        raise PermanentError(f"may not be {what}: permission denied", kind="permission", place=place) from problem
    except OSError as problem:
        raise PermanentError(f"can't be {what}: {problem.strerror}", kind="io", place=place) from problem
    except ValueError as problem:  # a NUL in the path
        raise InputError(f"can't be {what}: {problem}", kind="bad_path", place=place) from problem
