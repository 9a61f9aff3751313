"""Which column plays which role: by name, unless the Fleet says (DOCUMENTS §4)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ebbtide.errors import DemandError, Place

RELATIVE_TIME = ("t_s",)
ROLE_PATTERNS = {
    "time": ("time", "timestamp", "ts", "local_time_*"),
    "workload": ("workload", "service", "model", "client"),
    "rate": ("rate_rps", "rate", "rps"),
    "count": ("requests", "count", "count_*", "*_count", "*_count_*"),
    "serviceTime": ("service_time_s", "duration_s"),
    "inputTokens": ("input_tokens",),
    "outputTokens": ("output_tokens",),
    "cv": ("cv",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """A column's name for each role, None where the source has none.

    ``time_is_relative``: the time column is seconds from the source's origin (``t_s``) by its name; a column of another
    name turns out relative by its numbers.
    """

    time: str
    time_is_relative: bool = False
    workload: str | None = None
    rate: str | None = None
    count: str | None = None
    service_time: str | None = None
    cv: str | None = None

    @property
    def a_row_per_interval(self) -> bool:
        """True where rows hold a rate or a count; False where every row is one request."""
        return self.rate is not None or self.count is not None


def find_roles(names: list[str], *, chosen: dict[str, str], source: str, file: str | None = None) -> Roles:
    """The roles of a source's columns. ``chosen`` (the Fleet's ``columns``) wins over what is found by name.

    Raises ``DemandError``: ``unknown_role``, ``column_not_found`` (lists those that are there),
    ``two_candidate_columns`` (names both), ``rate_and_count``, ``no_time_column``.

    >>> find_roles(["service", "t_s", "rate_rps", "hour"], chosen={}, source="small").rate
    'rate_rps'
    """
    where = _Where(source=source, file=file)
    for role, name in chosen.items():
        _check_chosen(role, name, names, where)
    found = {role: chosen.get(role) or _one_of(role, names, where) for role in ROLE_PATTERNS}
    if "time" not in chosen and found["time"] is None:
        found["time"] = next((name for name in names if name.casefold() in RELATIVE_TIME), None)
    time = found["time"]
    if time is None:
        hint = f"its columns are {_listed(names)}; name the one that holds the time under columns.time"
        raise DemandError("no column holds the time", kind="no_time_column", place=where.field("time"), hint=hint)
    rate, count = _rate_or_count(found, chosen, where)
    return Roles(
        time=time,
        time_is_relative=time.casefold() in RELATIVE_TIME,
        workload=found["workload"],
        rate=rate,
        count=count,
        service_time=found["serviceTime"],
        cv=found["cv"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    source: str
    file: str | None

    def field(self, role: str) -> Place:
        return Place(file=self.file, field=f"demand[{self.source}].columns.{role}")


def _check_chosen(role: str, name: str, names: list[str], where: _Where) -> None:
    if role not in ROLE_PATTERNS:
        near = difflib.get_close_matches(role, ROLE_PATTERNS, n=1, cutoff=0.0)[0]
        message = f"{role!r} is no role of a column; nearest: {near}"
        raise DemandError(
            message, kind="unknown_role", place=where.field(role), hint=f"roles: {_listed(ROLE_PATTERNS)}"
        )
    if names.count(name) > 1:
        message = f"two columns are named {name!r}"
        raise DemandError(message, kind="two_candidate_columns", place=where.field(role), hint="rename one of them")
    if name not in names:
        message = f"there is no column {_short(name)}"
        hint = f"the columns are {_listed(names)}"
        raise DemandError(message, kind="column_not_found", place=where.field(role), hint=hint)


def _one_of(role: str, names: list[str], where: _Where) -> str | None:
    patterns = ROLE_PATTERNS[role]
    fits = [name for name in names if any(fnmatchcase(name.casefold(), pattern) for pattern in patterns)]
    if len(fits) > 1:
        message = f"two columns may be the {role}: {_short(fits[0])} and {_short(fits[1])}"
        hint = f"say which under demand[{where.source}].columns.{role}"
        raise DemandError(message, kind="two_candidate_columns", place=where.field(role), hint=hint)
    return fits[0] if fits else None


def _rate_or_count(
    found: dict[str, str | None], chosen: dict[str, str], where: _Where
) -> tuple[str | None, str | None]:
    rate, count = found["rate"], found["count"]
    if rate is None or count is None:
        return rate, count
    if ("rate" in chosen) != ("count" in chosen):
        return (rate, None) if "rate" in chosen else (None, count)
    message = f"{_short(rate)} is a rate and {_short(count)} is a count: one of them is the demand"
    hint = f"say which under demand[{where.source}].columns, as rate or as count"
    raise DemandError(message, kind="rate_and_count", place=where.field("rate"), hint=hint)


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def _listed(names: list[str] | dict[str, tuple[str, ...]]) -> str:
    shown = list(names)
    rest = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(_short(name) for name in shown[:20]) + rest
