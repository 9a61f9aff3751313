"""The calculator's answer as a small table, and as the object of ``--json``."""

from __future__ import annotations

import math

from ebbtide.adapters.report.figures import figure, whole
from ebbtide.cli.columns import WIDTH, Column, lines_of, total_width
from ebbtide.queueing.calculator import SizeAnswer
from ebbtide.workflows.claims_size import Held


def size_text(answer: SizeAnswer, *, width: int = WIDTH) -> str:
    """One column of numbers, or three where the least servers were asked for: one fewer, the least, one more.

    Three that would pass the width stand below each other: figures are never cut.
    """
    named = [("one fewer", answer.one_fewer), ("least", answer), ("one more", answer.one_more)]
    asked = answer.one_fewer is not None or answer.one_more is not None
    shown = [(name, each) for name, each in named if each is not None] if asked else [("", answer)]
    labels = tuple(label for label, _ in _lines(answer))
    label = Column(heading="", cells=labels, gap=0, left=True)
    columns = [Column(heading=name, cells=tuple(text for _, text in _lines(each)), gap=2) for name, each in shown]
    fits = total_width([label, *columns]) <= width
    tables = [[label, *columns]] if fits else [[label, column] for column in columns]
    texts = ["\n".join(lines_of(table) if asked else lines_of(table)[1:]) for table in tables]
    return "\n\n".join(texts) + "\n"


def size_json(answer: SizeAnswer) -> dict[str, object]:
    """Snake case with units; a wait without end is "unstable", for JSON knows no infinity.

    ``log_probability_of_waiting`` stands beside a probability below 1e-300; ``attainment``, ``one_fewer`` and
    ``one_more`` are there where a target was asked for.
    """
    log, attained = answer.log_probability_of_waiting, answer.attainment
    waits = {f"{share:g}": _finite(seconds) for share, seconds in answer.wait_percentiles_s.items()}
    return {
        "servers": answer.servers,
        "offered_load": answer.offered_load,
        "utilisation": answer.utilisation,
        "is_stable": answer.is_stable,
        "probability_of_waiting": answer.probability_of_waiting,
        **({} if log is None else {"log_probability_of_waiting": log}),
        "mean_wait_s": _finite(answer.mean_wait_s),
        "wait_percentiles_s": waits,
        "throughput_rps": answer.throughput_rps,
        "abandonment": answer.abandonment,
        **({} if attained is None else {"attainment": attained}),
        **({} if answer.one_fewer is None else {"one_fewer": size_json(answer.one_fewer)}),
        **({} if answer.one_more is None else {"one_more": size_json(answer.one_more)}),
    }


def held_text(answer: Held) -> str:
    """What replicas hold by a claim; that waits are not known is said, not left out."""
    lines = [
        ("replicas", whole(answer.replicas)),
        ("hold, requests a second", figure(answer.holds_rps)),
        ("arrive", f"{figure(answer.arrival_rate_rps)}, {'held' if answer.is_held else 'not held'}"),
        ("a replica, by the claim", figure(answer.replica_holds_rps)),
        ("fewest that hold it", whole(answer.least)),
        ("waits", "not observed"),
    ]
    columns = [
        Column(heading="", cells=tuple(label for label, _ in lines), gap=0, left=True),
        Column(heading="", cells=tuple(text for _, text in lines), gap=2),
    ]
    return "\n".join(lines_of(columns)[1:]) + "\n"


def held_json(answer: Held) -> dict[str, object]:
    """The same for scripts."""
    return {
        "claim": answer.claim,
        "replicas": answer.replicas,
        "holds_rps": answer.holds_rps,
        "arrival_rate_rps": answer.arrival_rate_rps,
        "is_held": answer.is_held,
        "replica_holds_rps": answer.replica_holds_rps,
        "least_replicas": answer.least,
    }


def _finite(seconds: float) -> float | str:
    return seconds if math.isfinite(seconds) else "unstable"


def _lines(answer: SizeAnswer) -> list[tuple[str, str]]:
    waits = [(f"P{share * 100:g} wait", _wait(seconds)) for share, seconds in answer.wait_percentiles_s.items()]
    return [
        ("servers", whole(answer.servers)),
        ("offered load, erlangs", figure(answer.offered_load)),
        ("utilisation", _share(answer.utilisation)),
        ("probability of waiting", _probability(answer)),
        ("mean wait", _wait(answer.mean_wait_s)),
        *waits,
        ("served, requests a second", figure(answer.throughput_rps)),
        ("give up", _share(answer.abandonment)),
        *([] if answer.attainment is None else [("within the target", _share(answer.attainment))]),
    ]


def _probability(answer: SizeAnswer) -> str:
    """Three digits; a probability below what doubles hold, as a power of ten."""
    log = answer.log_probability_of_waiting
    return figure(answer.probability_of_waiting) if log is None else f"10^{log / math.log(10.0):,.0f}"


def _share(share: float) -> str:
    """In percent with two decimals, rounded down, so that a share below a target never reads as the target.

    >>> _share(0.949999), _share(0.95), _share(1.0)
    ('94.99 %', '95.00 %', '100.00 %')
    """
    # Half a unit of the fifteenth digit up: 0.95 × 10,000 may lie just below 9,500 in doubles.
    return f"{math.floor(share * 1e4 * (1 + 5e-16)) / 100:,.2f} %"


def _wait(seconds: float) -> str:
    """Three digits, in the largest unit that leaves whole digits before the point.

    >>> _wait(1.651), _wait(0.0123), _wait(0.0), _wait(3e-9), _wait(math.inf)
    ('1.65 s', '12.3 ms', '0 s', '<1 us', 'unstable')
    """
    if not math.isfinite(seconds):
        return "unstable"
    if seconds == 0 or seconds >= 1:
        return f"{figure(seconds)} s"
    if seconds >= 1e-3:
        return f"{figure(seconds * 1e3)} ms"
    return f"{figure(seconds * 1e6)} us" if seconds >= 1e-6 else "<1 us"
