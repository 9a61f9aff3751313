"""The page of the ServeGen study: every service, every day."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from servegen import EBBTIDE, STATIC, TESTED, WINDOW_H, Policy, Study

from ebbtide.forecast.margin import Tuning

HEAD = """# The ServeGen study

Written by `uv run python benchmarks/servegen_study.py`; do not edit. Method and what was tried:
[forecasting](forecasting.md). Demand: **ServeGen, Alibaba Cloud, Apache-2.0** (arXiv 2505.09999); where each file comes
from and what was changed is in `examples/day-and-night/ATTRIBUTION.md` and `benchmarks/data/README.md`.

Eight services, each scaled to a mean of 60 erlangs; service 10 s, exponential; target P(wait ≤ 5 s) ≥ 0.95; twelve
windows of two hours a day; one pooled queue each. Days 7 to 13 are planned from the days before them only, and
simulated (Gamma renewal arrivals at the measured rate and SCV of every ten minutes, waits carried over from window to
window). A window is *held* if at least 95 % of its simulated requests waited at most 5 s. No service, day or window is
left out: through an outage of the collector requests go on at the rate interpolated over it, unscored; the others of
its window are scored.
"""

RULES = """*Static peak*: every workload has all day the servers of its own worst past window, sized exactly at target.
*ebbtide*: `allocate`'s rule at its default confidence, 0.95: margins tuned to hold, of the past days' windows, at least
that share and never more than half a point less than a static peak would have. *Blind to burstiness*:
planned as if arrivals were Poisson, simulated as they were.
"""

PUBLISHED = """*As published*: in intervals beside an outage the published SCV (to 158,000) counts the outage itself
as a gap between two arrivals; elsewhere in the study they take the service's median. Here they are simulated as they
are.
"""

OTHERS = """They are wilder: what a static peak needs is five times their mean. The rule was made without them, but for
its ceilings, which were added because of them (forecasting.md says what each would have done). Their measured
burstiness is not in this repository, so they are planned and simulated as Poisson streams. The three requirements
above do not hold here.
"""


def page(study: Study, policies: Sequence[Policy], again: Sequence[Policy], others: Sequence[Policy]) -> str:
    """The whole page, Markdown."""
    static, ebbtide = (next(policy for policy in policies if policy.name == name) for name in (STATIC, EBBTIDE))
    parts = [
        HEAD,
        "## What must hold\n\n" + verdict(static, ebbtide),
        "## All rules\n\n" + summary(policies, markdown=True),
        RULES,
        "## Other seeds, and the published SCV\n\n" + summary(again, static=static, markdown=True),
        PUBLISHED,
        "## The other nine services of the same files\n\n" + summary(others, markdown=True),
        OTHERS,
        "## Every service, every day: windows held of 12\n\n" + held_table(static, ebbtide),
        "## Requests within target, and replica-hours\n\n" + service_table(static, ebbtide),
        "## Windows that ebbtide did not hold\n\n" + missed(ebbtide, static),
        "## Margins, by tested day\n\n" + margins(study),
    ]
    return "\n".join(parts)


def verdict(static: Policy, ebbtide: Policy) -> str:
    """The three requirements and what came of them."""
    ratio = ebbtide.replica_hours / static.replica_hours
    gap = 100 * (static.held_share - ebbtide.held_share)
    rows = [
        ("windows held, points below static's", "≤ 1", f"{gap:.2f}", gap <= 1),
        ("requests within target", "≥ 97 %", f"{ebbtide.within_share:.2%}", ebbtide.within_share >= 0.97),
        ("replica-hours against static", "≤ 80 %", f"{ratio:.1%}", ratio <= 0.8),
    ]
    return table(
        ["", "required", "measured", ""],
        [[name, wanted, got, "holds" if holds else "**does not hold**"] for name, wanted, got, holds in rows],
    )


def summary(policies: Sequence[Policy], *, static: Policy | None = None, markdown: bool = False) -> str:
    """One line for each policy."""
    base = (static or policies[0]).replica_hours
    head = ["rule", "windows held", "requests within", "replica-hours", "of static's"]
    rows = [
        [
            p.name,
            f"{p.held_share:.2%}",
            f"{p.within_share:.2%}",
            f"{p.replica_hours:,}",
            f"{p.replica_hours / base:.3f}",
        ]
        for p in policies
    ]
    return table(head, rows) if markdown else "\n".join("  ".join(row) for row in [head, *rows])


def held_table(static: Policy, ebbtide: Policy) -> str:
    """ebbtide / static, a column for each tested day."""
    rows = []
    for key in ebbtide.plans:
        pairs = zip(ebbtide.held(key).sum(axis=1), static.held(key).sum(axis=1), strict=True)
        rows.append([key, *(f"{mine} / {theirs}" for mine, theirs in pairs)])
    return "ebbtide / static.\n\n" + table(["service", *(f"day {day}" for day in TESTED)], rows)


def service_table(static: Policy, ebbtide: Policy) -> str:
    """Shares and hours, by service."""
    rows = []
    for key in ebbtide.plans:
        shares = [policy.within[key].sum() / policy.requests[key].sum() for policy in (ebbtide, static)]
        hours = [int(policy.plans[key].sum()) * WINDOW_H for policy in (ebbtide, static)]
        rows.append([key, *(f"{s:.2%}" for s in shares), *(f"{h:,}" for h in hours), f"{hours[0] / hours[1]:.2f}"])
    return table(["service", "ebbtide", "static", "ebbtide, h", "static, h", "ratio"], rows)


def missed(ebbtide: Policy, static: Policy) -> str:
    """Each window not held: where, by how much, and whether static held it."""
    rows = []
    for key in ebbtide.plans:
        for day, window in np.argwhere(~ebbtide.held(key)):
            share = ebbtide.within[key][day, window] / ebbtide.requests[key][day, window]
            also = "held" if static.held(key)[day, window] else "missed too"
            start = window * WINDOW_H
            rows.append([key, TESTED[day], f"{start:02}:00-{(start + WINDOW_H) % 24:02}:00", f"{share:.1%}", also])
    return table(["service", "day", "window", "within target", "static"], rows)


def margins(study: Study) -> str:
    """What was chosen, and the share of past trials it rests on."""
    tunings = study.tunings[EBBTIDE]
    keys = list(study.series)
    rows = [
        [day, tuning.trials, *(f"{share:.1%}" for share in shares(tuning)), *(str(tuning.margins[key]) for key in keys)]
        for day, tuning in tunings.items()
    ]
    return table(["day", "trials", "static", "wished", "held", *keys], rows)


def shares(tuning: Tuning) -> tuple[float, float, float]:
    return tuning.static_share, tuning.wished_share, tuning.held_share


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"
