"""Lines of CSV files: where a row or a cell stands, and none too long for the engine."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from ebbtide.adapters.demand.files import CsvForm, SourceFiles
from ebbtide.errors import DemandError, Place

# DuckDB refuses lines of more than 2,000,000 bytes, but where one is longer than its buffer of 16 such it drops the
# line and all that follows without a word (seen in 2.0.1). So the lines are looked at before.
LONGEST_LINE_BYTES = 2_000_000
_BLOCK_BYTES = 1 << 20


def check_lines(files: SourceFiles) -> None:
    """``DemandError`` ``not_csv`` for the first line above 2 MB, ``damaged_file`` where a gzip file ends early.

    Reads every CSV file once, a megabyte at a time.
    """
    if files.form is None:
        return
    for path in files.paths:
        place = Place(file=files.shown(path))
        try:
            with _bytes(path, gzipped=files.form.gzipped) as stream:
                _check_stream(stream, place)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = "a damaged gzip file: it ends early or was changed"
            hint = "copy it again; gzip -t checks it"
            raise DemandError(message, kind="damaged_file", place=place, hint=hint) from error
        except OSError as error:
            raise DemandError(f"cannot be read: {error.strerror}", kind="not_readable", place=place) from error


def _check_stream(stream: BinaryIO, place: Place) -> None:
    lines, since_line_end = 0, 0
    while block := stream.read(_BLOCK_BYTES):
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        since_line_end = since_line_end + len(block) if last < 0 else len(block) - last - 1
        lines += block.count(b"\n")
        if since_line_end > LONGEST_LINE_BYTES:
            here = Place(file=place.file, line=lines + 1)
            raise DemandError("this line is longer than 2 MB", kind="not_csv", place=here)


def locate_row(files: SourceFiles, row: int) -> Place:
    """File and line of the ``row``-th row (from 0, over all files, as the engine reads them); CSV only.

    The line is that of the row's end where a cell holds line ends. Without a line where the text cannot be walked.
    """
    if files.form is None:
        return Place(file=files.shown() if len(files.paths) == 1 else None)
    before = 0
    for path in files.paths:
        rows = 0
        for line, _cells in _walk(path, files.form):
            if before + rows == row:
                return Place(file=files.shown(path), line=line)
            rows += 1
        before += rows
    return Place(file=files.shown())


def locate_cell(files: SourceFiles, column: str, text: str | None) -> Place:
    """File and line of the first row whose cell in that column reads exactly so (None: is empty); CSV only."""
    if files.form is None:
        return Place(file=files.shown() if len(files.paths) == 1 else None)
    position = files.form.names.index(column)
    for path in files.paths:
        for line, cells in _walk(path, files.form):
            if len(cells) > position and cells[position] == (text or ""):
                return Place(file=files.shown(path), line=line)
    return Place(file=files.shown())


def _walk(path: Path, form: CsvForm) -> Iterator[tuple[int, list[str]]]:
    with io.TextIOWrapper(_bytes(path, gzipped=form.gzipped), encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=form.delimiter)
        try:
            for cells in islice(reader, 1, None):
                if cells:
                    yield reader.line_num, cells
        except (csv.Error, OSError, EOFError, UnicodeError, zlib.error):
            return


def _bytes(path: Path, *, gzipped: bool) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if gzipped else path.open("rb")
