"""``ebbtide validate``: is a document whole?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import one_line

_KIND = re.compile(rb"^[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?Schedule\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A document that is whole: its kind, name, and what it holds."""

    file: str
    kind: str
    name: str
    digest: str
    workloads: int
    pools: int
    windows: int | None

    def as_json(self) -> dict[str, object]:
        """The answer for scripts; ``digest`` is the Fleet's, of a Schedule the one it was made for."""
        return {
            "valid": True,
            "kind": self.kind,
            "name": self.name,
            "digest": self.digest,
            "workloads": self.workloads,
            "pools": self.pools,
            "windows": self.windows,
        }

    def text(self) -> str:
        """One sentence for people."""
        counts = [_many(self.workloads, "workload"), _many(self.pools, "pool")]
        if self.windows is not None:
            counts.insert(0, _many(self.windows, "window"))
        return f"{one_line(self.file)}: a valid {self.kind}, {self.name}: {', '.join(counts)}\n{self.digest}"


def validate(path: Path | str) -> Checked:
    """Check a Fleet or Schedule document.

    Raises ``DocumentError`` where it is wrong (its text has a line for each thing), ``InputError`` where there is no
    such file.
    """
    from ebbtide.adapters.documents.reading import document_bytes

    path = Path(path)
    content = document_bytes(path)  # once: what comes through a pipe is gone then
    return _schedule(path, content) if _KIND.search(content) else _fleet(path, content)


def _fleet(path: Path, content: bytes) -> Checked:
    from ebbtide.adapters.documents.fleet import read_fleet

    fleet = read_fleet(path, content=content).fleet
    return Checked(
        file=str(path),
        kind="Fleet",
        name=fleet.name,
        digest=fleet.digest,
        workloads=len(fleet.workloads),
        pools=len(fleet.pools),
        windows=None,
    )


def _schedule(path: Path, content: bytes) -> Checked:
    from ebbtide.adapters.documents.schedule import read_schedule

    schedule, _ = read_schedule(path, content=content)
    return Checked(
        file=str(path),
        kind="Schedule",
        name=schedule.name,
        digest=schedule.fleet_digest,
        workloads=len(schedule.workloads),
        pools=len(schedule.pools),
        windows=len(schedule.windows),
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
