"""Static, reactive, cron, ebbtide and hindsight on the ServeGen weeks: what each holds, gives and misses.

    uv run python benchmarks/backtest_study.py

writes docs/background/backtest-study.md. `ebbtide backtest` on a Fleet made here, since the study's demand carries
burstiness that a file of rates does not: eight services on one pool of whole nodes, the second week replayed, all
planned on the first alone; then again with the usual troubles, and with another draw of arrivals and moves.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace

from backtest_study_page import page, policies
from servegen import KEYS, ROOT, SERVICE_TIME_S, TARGET, services

from ebbtide.fleet.demand import Trace
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Choose, DayPattern
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Workload
from ebbtide.workflows.backtest_choices import choices_of, retuned
from ebbtide.workflows.backtest_span import folds_of
from ebbtide.workflows.backtest_trial import CRON, HINDSIGHT, RIVALS, STATIC, Trial
from ebbtide.workflows.demand import Demand
from ebbtide.workflows.replay import backtested

SEED, OTHER_SEED = 20260901, 20260902
PAGE = ROOT / "docs/background/backtest-study.md"
POOL = Pool(
    name="h100",
    gpus_per_node=8,
    nodes=240,
    reserved_nodes=8,
    yield_time_s=1200.0,
    reclaim_time_s=2700.0,
    moves_at_once=16,
)


def fleet() -> Fleet:
    """The eight services on one pool."""
    return Fleet(
        name="servegen",
        digest="",
        time_zone="UTC",
        confidence=0.95,
        patterns=(DayPattern(days=WEEK, choose=Choose(at_most=12, shortest_s=7200.0)),),
        pools=(POOL,),
        workloads=tuple(
            Workload(
                name=key,
                demand=DemandRef(source="servegen", key=key),
                pool=POOL.name,
                gpus_per_replica=1,
                service=Service(time_s=SERVICE_TIME_S, scv=1.0),
                targets=(TARGET,),
                balancing=Balancing.POOLED,
            )
            for key in KEYS
        ),
        research=Research(checkpoint_interval_s=1800.0),
    )


def demand() -> Demand:
    """The eight series as one source."""
    series = services()
    trace = Trace(source="servegen", files=(), sha256="", interval_s=600, series=series)
    return Demand(traces={"servegen": trace}, series=series, records=())


def say(name: str, done: int, total: int) -> None:
    """Progress on stderr."""
    if done in (0, total):
        print(f"{name} {done}/{total}", file=sys.stderr, flush=True)


def main() -> int:
    started, known = time.perf_counter(), demand()
    calm = Trial(against=RIVALS, seed=SEED, stage=say)
    rough = replace(calm, against=(STATIC, CRON, HINDSIGHT), troubles="usual")
    again = replace(calm, seed=OTHER_SEED)
    (fold,) = folds_of(fleet(), known)[1]
    choices = choices_of(fleet(), known, fold, calm)
    found = backtested(fleet(), known, calm, choices=lambda fold: choices)
    troubled = backtested(fleet(), known, rough, choices=lambda fold: replace(choices, autoscalers={}))
    drawn = backtested(fleet(), known, again, choices=lambda fold: retuned(choices, fleet(), known, fold, again))
    PAGE.write_text(page(found, troubled, drawn), encoding="utf-8")
    print(policies(found), policies(troubled), policies(drawn), sep="\n")
    spent, usage = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"wrote {PAGE.relative_to(ROOT)} in {spent:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of CPU, "
        f"peak {usage.ru_maxrss // 1024} MB",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
