"""Past runs of jobs, by name: what an export of a batch system or a small CSV tells of durations."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path

from ebbtide.adapters.documents.files import read_bytes
from ebbtide.errors import InputError, Place

MOST_BYTES = 200_000_000
_NAMES = ("job", "job_name", "JobName", "name")


def past_runs(path: Path) -> dict[str, tuple[float, ...]]:
    """Seconds of every finished run, by the job's name.

    The file is an export of `sacct --parsable2` with `JobName`, `State` and `Elapsed` (or `ElapsedRaw`), or a CSV with
    `job` and `duration_s`; either may be gzipped. Raises ``InputError`` where it is neither.
    """
    text = _text(path)
    head = text.split("\n", 1)[0]
    if "|" in head:
        from ebbtide.adapters.slurm import finished_runs

        return finished_runs(text, file=str(path))
    return _of_csv(text, path)


def _text(path: Path) -> str:
    content = read_bytes(path, at_most=MOST_BYTES)
    try:
        if content.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(
                f"is larger than {MOST_BYTES:,} bytes", kind="too_large", place=Place(file=str(path)), hint="cut it"
            )
        return content.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as problem:
        raise InputError(f"is damaged: {problem}", kind="damaged_file", place=Place(file=str(path))) from problem


def _of_csv(text: str, path: Path) -> dict[str, tuple[float, ...]]:
    rows = csv.DictReader(io.StringIO(text))
    names = rows.fieldnames or []
    job = next((name for name in _NAMES if name in names), None)
    if job is None or "duration_s" not in names:
        raise InputError(
            f"has the columns {', '.join(map(str, names[:12])) or 'none'}; job and duration_s are needed",
            kind="unknown_columns",
            place=Place(file=str(path), line=1),
        )
    found: dict[str, list[float]] = {}
    for row in rows:
        try:
            seconds = float(row["duration_s"] or "nan")
        except ValueError:
            place = Place(file=str(path), line=rows.line_num, field="duration_s")
            raise InputError(f"is {row['duration_s']!r}, no number", kind="bad_number", place=place) from None
        if seconds > 0 and math.isfinite(seconds):
            found.setdefault(row[job], []).append(seconds)
    return {name: tuple(runs) for name, runs in found.items()}
