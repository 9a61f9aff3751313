"""What the tide is worth on real demand: seven held-out days of eight ServeGen services, simulated.

    uv run python benchmarks/servegen_study.py

writes docs/background/servegen-study.md (and says the summary on stdout). Every day is planned from the days before it
and then simulated at its own rates and burstiness; the same is done for a static peak. Method, rules and what was
tried: docs/background/forecasting.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

from servegen import EBBTIDE, ROOT, STATIC, TESTED, Policy, Study, other_services, services
from servegen_table import page, summary

from ebbtide.fleet.demand import Series
from ebbtide.forecast.margin import ASSUMED
from ebbtide.forecast.seasonal import NO_MARGIN

SEED = 20260901


def blinded(series: dict[str, Series]) -> dict[str, Series]:
    """The same rates, as a planner sees them that knows nothing of burstiness."""
    return {key: replace(one, arrival_scv=None) for key, one in series.items()}


def static_shares(study: Study) -> dict[int, float]:
    """What a static peak held on the days before each tested day, on the trials of the rule that was tuned there."""
    return {day: tuning.static_share for day, tuning in study.tunings[EBBTIDE].items()}


def run(say: Callable[[str], None]) -> tuple[Study, list[Policy], list[Policy], list[Policy]]:
    """The study, its policies (static first, then ebbtide's), those two on other seeds, and at the published SCV."""
    study = Study(services(), TESTED)
    blind = Study(blinded(study.series), TESTED)
    say("planning")
    static = study.static()
    plans = {
        STATIC: static,
        EBBTIDE: study.tuned(EBBTIDE),
        "tuned to static's own share": study.tuned("as static", static_shares(study)),
        "tuned to 0.95": study.tuned("0.95", dict.fromkeys(TESTED, 0.95)),
        f"fixed margin {ASSUMED}": study.fixed(ASSUMED),
        "worst past day, no margin": study.fixed(NO_MARGIN),
        "static, blind to burstiness": blind.static(),
        "ebbtide, blind to burstiness": blind.tuned(EBBTIDE),
        "true rates known, exactly at target": study.hindsight(static),
    }
    say("simulating")
    policies = study.simulate(plans, seed=SEED)
    seeds = [
        policy
        for seed in (SEED + 1, SEED + 2)
        for policy in study.simulate({f"{name}, seed {seed}": plans[name] for name in (STATIC, EBBTIDE)}, seed=seed)
    ]
    both = {f"{name}, SCV as published": plans[name] for name in (STATIC, EBBTIDE)}
    return study, policies, seeds, study.simulate(both, seed=SEED, as_published=True)


def run_others() -> list[Policy]:
    """The services that had no part in choosing the rule."""
    study = Study(other_services(), TESTED)
    plans = {
        STATIC: study.static(),
        EBBTIDE: study.tuned(EBBTIDE),
        "tuned to 0.95": study.tuned("0.95", dict.fromkeys(TESTED, 0.95)),
        f"fixed margin {ASSUMED}": study.fixed(ASSUMED),
        "worst past day, no margin": study.fixed(NO_MARGIN),
    }
    return study.simulate(plans, seed=SEED)


def main() -> int:
    started = time.perf_counter()
    study, policies, seeds, published = run(lambda text: print(text, file=sys.stderr, flush=True))
    others = run_others()
    text = page(study, policies, [*seeds, *published], others)
    (ROOT / "docs/background/servegen-study.md").write_text(text, encoding="utf-8")
    print(summary([*policies, *seeds, *published]), "\nother services:", summary(others), sep="\n")
    print(f"wrote docs/background/servegen-study.md in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
