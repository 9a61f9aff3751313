"""``ebbtide init``: look at demand and write a Fleet whose open questions are marked TODO."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ebbtide.adapters.demand.source import DemandSource
from ebbtide.errors import DemandError, InputError, Place, one_line
from ebbtide.fleet.demand import Trace
from ebbtide.units import DAY_S, SECONDS_PER_HOUR

MOST_WORKLOADS = 2000  # what a Fleet holds at most (DOCUMENTS)
_LABEL_LENGTH = 63  # of a DNS label, RFC 1123
_TODO = "# TODO"
_STAMP = re.compile(rb"\A# written by ebbtide init ([0-9a-f]{16})\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What ``init`` found and wrote. ``span_s`` and ``interval_s`` are those of the longest source."""

    path: str
    services: int
    sums: tuple[str, ...]
    span_s: int
    interval_s: int
    service_times: bool
    todo_lines: int

    def text(self) -> str:
        """Two lines for people.

        >>> print(Written(path="fleet.yaml", services=8, sums=("a/total",), span_s=1209600, interval_s=600,
        ...               service_times=False, todo_lines=11).text())
        8 services, 1 sum left out; 14 days every 10 min; no zone, no service times
        wrote fleet.yaml: fill in the 11 lines marked TODO
        """
        found = _many(self.services, "service") + (f", {_many(len(self.sums), 'sum')} left out" if self.sums else "")
        span = f"{_span(self.span_s)} every {_step(self.interval_s)}"
        lacks = "no zone, service times observed" if self.service_times else "no zone, no service times"
        return f"{found}; {span}; {lacks}\nwrote {one_line(self.path)}: fill in the {self.todo_lines} lines marked TODO"

    def as_json(self) -> dict[str, object]:
        """The answer for scripts."""
        return {
            "services": self.services,
            "sums": list(self.sums),
            "span_s": self.span_s,
            "interval_s": self.interval_s,
            "service_times": self.service_times,
            "todo_lines": self.todo_lines,
            "written": [self.path],
        }


def init(files: Sequence[Path | str], output: Path | str = Path("fleet.yaml")) -> Written:
    """Read demand files and write a Fleet to fill in.

    A workload for every series that is no sum, its name made from the key; what demand cannot tell (the zone, the
    nodes, GPUs, service times, targets) is left empty on lines marked TODO, so that nothing is planned on a guess.

    Raises ``DemandError`` where a file cannot be read as demand; ``InputError`` where ``output`` is a file that ebbtide
    did not write (``foreign_output``) or that was edited since (``edited_output``). Then nothing is written.
    """
    from ebbtide.adapters.documents.files import refuse_foreign, write_atomically

    output = Path(output)
    refuse_foreign(output)
    _refuse_edited(output)
    looks = [_look(source) for source in _sources(files, output)]
    body = _fleet_text(output, looks)
    content = body.encode()
    stamp = f"# written by ebbtide init {_stamp(content)}\n".encode()
    write_atomically(output, stamp + content)
    longest = max((look.trace for look in looks), key=lambda trace: trace.end_s - trace.start_s)
    return Written(
        path=str(output),
        services=sum(len(look.trace.series) for look in looks),
        sums=tuple(key for look in looks for key in look.trace.sums),
        span_s=longest.end_s - longest.start_s,
        interval_s=longest.interval_s,
        service_times=all(_has_service_times(look.trace) for look in looks),
        todo_lines=2 + sum(look.origin_missing for look in looks) + sum(len(look.trace.series) for look in looks),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Look:
    """A source as it was read, and whether its times count from a start that nobody knows yet."""

    source: DemandSource
    trace: Trace
    origin_missing: bool


def _look(source: DemandSource) -> _Look:
    """Read a source without knowing its zone or origin: any will do to see what is there."""
    from ebbtide.adapters.demand.read import read_trace

    tried = source
    for _ in range(3):
        try:
            trace = read_trace(tried)
        except DemandError as error:
            if error.kind == "zone_missing" and tried.time_zone is None:
                tried = replace(tried, time_zone="UTC")
            elif error.kind == "origin_missing" and tried.origin is None:
                tried = replace(tried, origin="2026-01-01T00:00Z")
            else:
                raise
        else:
            return _Look(source=source, trace=trace, origin_missing=tried.origin is not None)
    raise AssertionError("a source lacks at most a zone and an origin")


def _sources(files: Sequence[Path | str], output: Path) -> list[DemandSource]:
    if not files:
        raise InputError("no demand file is named", kind="no_source", hint="ebbtide init FILE -o fleet.yaml")
    folder = output.absolute().parent
    names = labels([_stem(Path(file)) for file in files], otherwise="demand")
    return [
        DemandSource(name=name, file=os.path.relpath(Path(file).absolute(), folder), folder=folder)
        for name, file in zip(names, files, strict=True)
    ]


def _stem(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem


def labels(keys: Sequence[str], *, otherwise: str) -> list[str]:
    """A DNS label for every key, all different: lower case, everything else a hyphen, 63 characters at most.

    >>> labels(["m-small/c5", "m-small/C5", "Ω", "GPT 4.1"], otherwise="workload")
    ['m-small-c5', 'm-small-c5-2', 'workload', 'gpt-4-1']
    """
    used: set[str] = set()
    names = []
    for key in keys:
        label = re.sub(r"[^a-z0-9]+", "-", key.lower())[:_LABEL_LENGTH].strip("-") or otherwise
        name, number = label, 1
        while name in used:
            number += 1
            tail = f"-{number}"
            name = label[: _LABEL_LENGTH - len(tail)].rstrip("-") + tail
        used.add(name)
        names.append(name)
    return names


def _fleet_text(output: Path, looks: list[_Look]) -> str:
    from ebbtide.adapters.documents.emit import flow, scalar

    pairs = [(look, key) for look in looks for key in sorted(look.trace.series)]
    if len(pairs) > MOST_WORKLOADS:
        message = f"{len(pairs):,} services, and a Fleet holds {MOST_WORKLOADS:,} at most"
        place = Place(file=str(looks[0].source.file))
        raise InputError(message, kind="too_many_workloads", place=place, hint="leave small ones out of the file")
    names = labels([key for _, key in pairs], otherwise="workload")
    lines = [
        "apiVersion: ebbtide.dev/v1alpha1",
        "kind: Fleet",
        f"metadata: {{name: {scalar(labels([output.absolute().parent.name], otherwise='fleet')[0])}}}",
        "spec:",
        f"  timeZone: {_TODO} the zone in which windows are told, such as Europe/Berlin",
        "  demand:",
    ]
    for look in looks:
        fields = flow({"name": look.source.name, "file": look.source.file})[1:-1]
        origin = f", origin: }} {_TODO} the wall-clock time of t = 0" if look.origin_missing else "}"
        lines.append(f"  - {{{fields}{origin}")
    lines.append("  pools:")
    lines.append(f"  - {{name: gpus, gpusPerNode: , nodes: }} {_TODO} production's and research's nodes together")
    lines.append("  workloads:")
    several = len(looks) > 1
    for (look, key), name in zip(pairs, names, strict=True):
        demand = {"source": look.source.name, "key": key} if several else {"key": key}
        service = "observed: {}" if _has_service_times(look.trace) else "time: "
        lines.append(
            f"  - {{name: {scalar(name)}, demand: {flow(demand)}, gpusPerReplica: , "
            f"service: {{{service}, concurrency: }}, targets: [{{wait: }}]}} {_TODO}"
        )
    return "\n".join(lines) + "\n"


def _has_service_times(trace: Trace) -> bool:
    return all(series.service_mean_s is not None for series in trace.series.values())


def _stamp(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def _refuse_edited(output: Path) -> None:
    """A Fleet that somebody filled in carries the stamp of what was written before: it is theirs now."""
    if not output.exists():
        return
    content = output.read_bytes()
    stamp = _STAMP.match(content)
    if stamp is None or stamp.group(1).decode() != _stamp(content[stamp.end() :]):
        message = "was edited since ebbtide wrote it; it stays as it is"
        hint = "move it away, or write to another file with -o"
        raise InputError(message, kind="edited_output", place=Place(file=str(output)), hint=hint)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _span(span_s: int) -> str:
    if span_s >= 2 * DAY_S:
        return _many(round(span_s / DAY_S), "day")
    return _many(max(round(span_s / SECONDS_PER_HOUR), 1), "hour")


def _step(interval_s: int) -> str:
    for unit_s, word in ((3600, "h"), (60, "min")):
        if interval_s % unit_s == 0:
            return f"{interval_s // unit_s} {word}"
    return f"{interval_s} s"
