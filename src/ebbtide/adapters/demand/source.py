"""Where a workload's demand comes from, as the Fleet's ``demand`` names it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSource:
    """One demand source: a file (or glob), or a table of the SQL engine named by ``EBBTIDE_SQL_URL``.

    ``columns`` maps a role (``time workload rate count serviceTime inputTokens outputTokens cv``) to a column's name
    and overrides what is found by name (DOCUMENTS §4). ``origin`` is the wall-clock text of t = 0 for relative times;
    ``time_zone`` (an IANA name) reads times without an offset. ``interval_s`` None: found. Files are relative to
    ``folder``.
    """

    name: str
    file: str | None = None
    table: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    origin: str | None = None
    time_zone: str | None = None
    interval_s: int | None = None
    folder: Path = Path()
