"""A source as an Ibis table: files on embedded DuckDB, or a table of another engine. The only door to an engine.

Names from outside never become SQL text: a CSV's columns are called by their position here, Parquet's go through Ibis
as quoted identifiers, file names as escaped literals with their glob characters escaped too.
"""

from __future__ import annotations

import contextlib
import difflib
import glob
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.adapters.demand.files import SourceFiles, find_files, printable
from ebbtide.adapters.demand.lines import check_lines
from ebbtide.adapters.demand.source import DemandSource
from ebbtide.errors import DemandError, InputError, PermanentError, Place

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow

FILE_COLUMN = "ebbtide source file"
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FOUND_COLUMNS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTable:
    """A source opened: ``table`` has the columns ``columns[name]`` for every name the user knows them by.

    ``files`` None: a table of an SQL engine. ``FILE_COLUMN`` of ``table`` is the path each row came from (files only).
    """

    source: DemandSource
    table: ir.Table
    names: tuple[str, ...]
    columns: dict[str, str]
    files: SourceFiles | None

    @property
    def place(self) -> Place:
        """The source as a place: its file where it is one, else its name."""
        if self.files is None:
            return Place(field=f"demand[{self.source.name}].table")
        one = len(self.files.paths) == 1
        return Place(file=self.files.shown() if one else printable(str(self.source.folder / str(self.source.file))))

    def column(self, name: str) -> ir.Column:
        """The column of that name."""
        return self.table[self.columns[name]]

    def fetch(self, expression: ir.Table) -> pyarrow.Table:
        """The expression's rows; an engine's complaint comes back as an error of ours."""
        with _complaints(self.files, self.place):
            return expression.to_pyarrow()


def open_source(source: DemandSource, *, sql_url: str | None = None) -> OpenTable:
    """The source's table. Raises ``DemandError``, ``InputError`` (no URL for a table), ``PermanentError`` (engine)."""
    if source.table is not None:
        return _open_sql(source, source.table, sql_url)
    if source.file is None:
        message = "a source needs a file or a table"
        raise InputError(message, kind="no_source", place=Place(field=f"demand[{source.name}]"))
    files = find_files(source)
    return _open_csv(source, files) if files.form is not None else _open_parquet(source, files)


def _open_csv(source: DemandSource, files: SourceFiles) -> OpenTable:
    import ibis

    assert files.form is not None
    places = [f"c{number}" for number in range(len(files.form.names))]
    check_lines(files)
    with _complaints(files, Place(file=files.shown())):
        table = ibis.duckdb.connect().read_csv(
            [glob.escape(str(path.absolute())) for path in files.paths],
            columns=dict.fromkeys(places, "VARCHAR"),
            auto_detect=False,
            header=True,
            delim=files.form.delimiter,
            quote='"',
            escape='"',
            compression="gzip" if files.form.gzipped else "none",
            filename=FILE_COLUMN,
        )
    names = files.form.names
    return OpenTable(
        source=source, table=table, names=names, columns=dict(zip(names, places, strict=True)), files=files
    )


def _open_parquet(source: DemandSource, files: SourceFiles) -> OpenTable:
    import ibis

    con = ibis.duckdb.connect()
    for path in files.paths:  # one by one, so that a damaged file is named
        with _complaints(files, Place(file=files.shown(path))):
            con.read_parquet(glob.escape(str(path.absolute())))
    with _complaints(files, Place(file=files.shown())):
        table = con.read_parquet([glob.escape(str(path.absolute())) for path in files.paths], filename=FILE_COLUMN)
    names = tuple(name for name in table.columns if name != FILE_COLUMN)
    return OpenTable(source=source, table=table, names=names, columns={name: name for name in names}, files=files)


def _open_sql(source: DemandSource, name: str, sql_url: str | None) -> OpenTable:
    import ibis

    place = Place(field=f"demand[{source.name}].table")
    if not sql_url:
        hint = "set EBBTIDE_SQL_URL, such as duckdb:///path/to/file.ddb"
        raise InputError("no SQL engine is named for this table", kind="no_sql_url", place=place, hint=hint)
    try:
        con = ibis.connect(sql_url)
    except Exception as error:  # any driver's own exceptions; the URL may hold a password and is not repeated
        message = f"the SQL engine cannot be reached ({type(error).__name__})"
        raise PermanentError(message, kind="sql_engine", place=place, hint="check EBBTIDE_SQL_URL") from error
    *database, last = name.split(".")
    try:
        with _quiet():
            table = con.table(last, database=".".join(database) or None)
    except Exception as error:
        near = difflib.get_close_matches(last, _tables_of(con), n=3, cutoff=0.0)
        hint = f"nearest: {', '.join(near)}" if near else "write it as table, or schema.table"
        raise DemandError(f"there is no table {name[:80]!r}", kind="no_such_table", place=place, hint=hint) from error
    names = tuple(table.columns)
    return OpenTable(source=source, table=table, names=names, columns={column: column for column in names}, files=None)


def _tables_of(con: Any) -> list[str]:
    """The engine's tables, for a hint; none where it has no information schema."""
    with contextlib.suppress(Exception), _quiet():
        names: list[str] = con.table("tables", database="information_schema").to_pyarrow()["table_name"].to_pylist()
        return names
    return []


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # Ibis 12 calls DuckDB 2's old name for the same method; nothing that a user could act on.
        warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
        yield


@contextmanager
def _complaints(files: SourceFiles | None, place: Place) -> Iterator[None]:
    """Turns an engine's exception into a ``DemandError`` (files) or a ``PermanentError`` (another engine)."""
    try:
        with _quiet():
            yield
    except MemoryError:
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":  # DuckDB's own, which is no MemoryError of Python's
            raise MemoryError(_first_line(error)) from error
        if files is None:
            message = f"the SQL engine refused the query ({type(error).__name__}: {_first_line(error)})"
            raise PermanentError(message, kind="sql_engine", place=place) from error
        raise _file_error(files, place, error) from error


def _file_error(files: SourceFiles, place: Place, error: Exception) -> DemandError:
    text = str(error)
    named = [path for path in files.paths if str(path.absolute()) in text]
    file = files.shown(named[0]) if named else place.file
    if files.form is None:
        message = f"a damaged Parquet file ({_first_line(error)})"
        return DemandError(message, kind="damaged_file", place=Place(file=file), hint="write or copy it again")
    if "GZIP" in text or "gzip" in text:
        message = "a damaged gzip file: it ends early or was changed"
        hint = "copy it again; gzip -t checks it"
        return DemandError(message, kind="damaged_file", place=Place(file=file), hint=hint)
    line = _CSV_LINE.search(text)
    here = Place(file=file, line=int(line.group(1)) if line else None)
    if "not utf-8" in text.casefold():
        return DemandError("is not UTF-8 text", kind="not_utf8", place=here, hint="save it as UTF-8")
    if cells := _FOUND_COLUMNS.search(text):
        message = f"this line has {cells.group(2)} cells, the header {cells.group(1)}"
        return DemandError(message, kind="not_csv", place=here)
    if "maximum line size" in text.casefold():
        return DemandError("this line is longer than 2 MB", kind="not_csv", place=here)
    return DemandError(f"cannot be read as CSV ({_first_line(error)})", kind="not_csv", place=here)


def _first_line(error: Exception) -> str:
    return printable(str(error).split("\n", 1)[0][:160])
