"""A source's files: which they are, what form they have, and where in them a row stands."""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import io
import zlib
from codecs import getincrementaldecoder
from dataclasses import dataclass
from pathlib import Path

from ebbtide.adapters.demand.source import DemandSource
from ebbtide.adapters.file_kinds import not_a_file
from ebbtide.errors import DemandError, Place

# A header of a thousand long names is some 60 kB. What has no line end in a megabyte is no table.
HEAD_BYTES = 1 << 20
_DELIMITERS = ",;\t|"
_MAGIC_PARQUET, _MAGIC_GZIP = b"PAR1", b"\x1f\x8b"
_OTHER_FORMS = {b"PK\x03\x04": "a zip archive", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_SHOWN = 300  # a path is seldom longer, and a message never needs more
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """How the text of a source's CSV files is laid out; all files of a source share it."""

    delimiter: str
    gzipped: bool
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """The files of one source, sorted by path; ``form`` None means Parquet."""

    paths: tuple[Path, ...]
    form: CsvForm | None

    def shown(self, path: Path | None = None) -> str:
        """A file's name for a message: without line ends, so that a hostile name cannot forge lines."""
        return printable(str(path if path is not None else self.paths[0]))


def printable(text: str) -> str:
    """The text with everything that is not printable escaped, a very long one shortened in its middle.

    >>> printable("a" + chr(10) + "b.csv")
    'a\\\\nb.csv'
    """
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"
    return shown if shown.isprintable() else repr(shown)[1:-1]


def find_files(source: DemandSource) -> SourceFiles:
    """The source's files and their form.

    A name that is a file is taken as it is, even with glob characters in it. Raises ``DemandError``: ``no_such_file``,
    ``no_file_matches``, ``is_a_directory``, ``not_a_file``, ``not_readable``, ``not_csv``, ``not_utf8``,
    ``damaged_file``, ``files_differ``.
    """
    paths = _expand(source)
    forms = [_form_of(path) for path in paths]
    for path, form in zip(paths[1:], forms[1:], strict=True):
        if form != forms[0]:
            message = f"its form or columns differ from those of {printable(str(paths[0]))}"
            hint = "files of one source have the same columns in the same order; make two sources of them"
            raise DemandError(message, kind="files_differ", place=Place(file=printable(str(path))), hint=hint)
    return SourceFiles(paths=tuple(paths), form=forms[0])


def digest_of(files: SourceFiles) -> str:
    """SHA-256 of the files' bytes, one after the other (as ``cat FILES | sha256sum``)."""
    digest = hashlib.sha256()
    for path in files.paths:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _expand(source: DemandSource) -> list[Path]:
    assert source.file is not None
    shown, field = Place(file=printable(source.file)), f"demand[{source.name}].file"
    try:
        whole = source.folder / source.file
        words = _kind_of(whole)
        if words == "a directory":
            hint = f"name the files in it, such as {printable(source.file)}/*.csv"
            raise DemandError("is a directory", kind="is_a_directory", place=shown, hint=hint)
        if words == "a file":
            return [whole]
        if words is not None:
            hint = "write what it gives into a file: demand is read more than once"
            raise DemandError(f"is {words}, no file", kind="not_a_file", place=shown, hint=hint)
        if not glob.has_magic(source.file):
            hint = f"{field} is read relative to {printable(str(source.folder.absolute()))}"
            raise DemandError("there is no such file", kind="no_such_file", place=shown, hint=hint)
        matches = glob.glob(source.file, root_dir=source.folder, recursive=True)
        files = sorted(path for match in matches if (path := source.folder / match).is_file())
    except (OSError, ValueError) as error:
        message = f"cannot be looked up: {error.strerror if isinstance(error, OSError) else error}"
        raise DemandError(message, kind="no_such_file", place=shown) from error
    if not files:
        hint = f"{field} is read relative to {printable(str(source.folder.absolute()))}"
        raise DemandError("no file matches", kind="no_file_matches", place=shown, hint=hint)
    return files


def _kind_of(path: Path) -> str | None:
    """``a file`` or what else stands there; None where nothing does. A link that leads to itself is an ``OSError``."""
    try:
        return not_a_file(path.stat().st_mode) or "a file"
    except (FileNotFoundError, NotADirectoryError):
        return None


def _form_of(path: Path) -> CsvForm | None:
    place = Place(file=printable(str(path)))
    try:
        with path.open("rb") as stream:
            magic = stream.read(8)
        if magic.startswith(_MAGIC_PARQUET):
            return None
        _refuse_other_forms(path, magic, place)
        gzipped = magic.startswith(_MAGIC_GZIP)
        with gzip.open(path) if gzipped else path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        hint = "copy it again; gzip -t checks it"
        raise DemandError("a damaged gzip file", kind="damaged_file", place=place, hint=hint) from error
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise DemandError(message, kind="not_readable", place=place) from error
    return _csv_form(head, gzipped=gzipped, place=place)


def _refuse_other_forms(path: Path, magic: bytes, place: Place) -> None:
    for start, form in _OTHER_FORMS.items():
        if magic.startswith(start):
            hint = "unpack it: CSV, CSV in gzip and Parquet are read"
            raise DemandError(f"is {form}", kind="not_csv", place=place, hint=hint)
    if path.suffix.casefold() in {".parquet", ".pq"}:
        message = "is no Parquet file, whatever its name says" if magic else "the file is empty"
        raise DemandError(message, kind="damaged_file" if magic else "no_rows", place=place)


def _csv_form(head: bytes, *, gzipped: bool, place: Place) -> CsvForm:
    text = _decoded(head, place)
    if not text.strip():
        raise DemandError("the file is empty", kind="no_rows", place=place)
    if "\0" in text or (len(head) == HEAD_BYTES and "\n" not in text and "\r" not in text):
        hint = "CSV (also in gzip) and Parquet are read"
        raise DemandError("is no CSV file", kind="not_csv", place=place, hint=hint)
    first_line = text.lstrip("\r\n").splitlines()[0]
    delimiter = max(_DELIMITERS, key=first_line.count)
    try:
        names = next(cells for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if cells)
    except (csv.Error, StopIteration) as error:
        message = f"its first line cannot be read as column names: {error}"
        raise DemandError(message, kind="not_csv", place=place) from error
    return CsvForm(delimiter=delimiter, gzipped=gzipped, names=tuple(name.strip() for name in names))


def _decoded(head: bytes, place: Place) -> str:
    if head.startswith(_UTF16):
        raise DemandError("is UTF-16 text", kind="not_utf8", place=place, hint="save it as UTF-8")
    try:
        return getincrementaldecoder("utf-8-sig")().decode(head, final=False)
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        here = Place(file=place.file, line=line)
        raise DemandError("is not UTF-8 text", kind="not_utf8", place=here, hint="save it as UTF-8") from error
