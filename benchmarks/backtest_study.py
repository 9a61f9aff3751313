"""Static, reactive, cron, ebbtide and hindsight on the ServeGen weeks: what each holds, gives and misses.

    uv run python benchmarks/backtest_study.py

writes docs/background/backtest-study.md. `ebbtide backtest` on a Fleet made here, since the study's demand carries
burstiness that a file of rates does not: eight services on one pool of whole nodes, the second week replayed, all
planned on the first alone.
"""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from servegen import KEYS, ROOT, SERVICE_TIME_S, TARGET, services
from servegen_table import table

from ebbtide.cli.render_backtest import share_text
from ebbtide.fleet.demand import Trace
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Choose, DayPattern
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, DemandRef, Service, Workload
from ebbtide.simulate.realised import scheduled
from ebbtide.workflows.backtest_trial import CRON, EBBTIDE, HINDSIGHT, REACTIVE, RIVALS, STATIC, Trial
from ebbtide.workflows.demand import Demand
from ebbtide.workflows.replay import Backtested, PolicyScore, backtested

SEED = 20260901
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

HEAD = """\
# Backtest on the ServeGen weeks

Written by `uv run python benchmarks/backtest_study.py` (within two minutes on a quiet machine); do not edit. Demand:
**ServeGen, Alibaba Cloud, Apache-2.0** (arXiv 2505.09999); where each file comes from and what was changed is in
`examples/day-and-night/ATTRIBUTION.md` and `benchmarks/data/README.md`.

Eight services, each scaled to a mean of 60 erlangs, one GPU a replica; service 10 s, exponential; target P(wait ≤ 5
s) ≥ 0.95; one pooled queue each. 240 nodes of 8 GPUs, 8 of them reserved; a yield takes 20 minutes, a reclaim 45,
sixteen move at once; a pod starts in five minutes; checkpoints every half hour. ebbtide chooses up to twelve windows
a day. The second week is replayed request by request (Gamma renewal arrivals at the measured rate and SCV of every
ten minutes, queues carried over from window to window), and everything is planned and tuned on the first one alone. A
window is *held* if at least 95 % of its requests waited at most 5 s; intervals that the collector lost are replayed
at interpolated rates and not scored.
"""

RULES = """\
*Static*: every workload holds all day the replicas of its own worst past window. *Reactive*: the Horizontal Pod
Autoscaler of Kubernetes with its default behaviour (sync 15 s, tolerance 10 %, five minutes of stabilisation before a
scale-down, twofold or four pods a step up) on slots in use; for each service the target that held on the past week
what static held, less half a point, for the fewest pod-hours (of 20, 30, … 90 %; where none did, of those that held
most). *Cron*: two hand-set windows for the whole fleet, hours tuned likewise. *Hindsight*: ebbtide's planner on the
replayed week's own rates, no margin; regret is production GPU-hours over its own, less 1.

Where no target holds what static held (m-large/c15) the choice hangs on few windows, and with it the autoscaler's
GPU-hours: other draws of the same arrivals gave 276,000 with 608 windows held. The plans do not depend on draws.

All but reactive are driven by ebbtide's controller through a simulated world, minute by minute of the week: nodes are
cordoned, drained, taken out, brought (nine in ten within the Fleet's 20 or 45 minutes) and admitted, pods start and
are ready or not, research runs jobs of up to four nodes that save their work every half hour. *Lost* is what those
jobs had to do again, and part of what research got; nodes in motion, or broken, are nobody's. ebbtide alone has a
live guard: it sees demand five minutes late, and starts reclaims where it runs above the plan.

Reactive is flattered: its nodes are there the moment a pod needs one, foreseen perfectly, and no node leaves production
for a pause shorter than a yield and a reclaim; nothing goes wrong with it, and *lost* is half a checkpoint interval of
every reclaimed node. On a shared fleet a pod would wait up to 45 minutes for its node. Nor is it stopped at the
fleet's size: what it needs beyond that is counted as if it were there.
"""


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


TROUBLED = """\
`--troubles usual`: about one node move in twenty goes wrong somehow (it fails, stalls, comes late or broken, or only a
part comes), pods start slowly or hang, writes fail, and a few times a day people and other controllers cordon nodes,
edit replicas and quota, roll out, or a cluster cannot be reached. The rates are assumptions. Reactive is left out:
nothing would go wrong with it.
"""


def page(found: Backtested, troubled: Backtested) -> str:
    """The whole page, Markdown."""
    parts = [
        HEAD,
        "## Policies\n\n" + policies(found),
        RULES,
        "## On ordinary days, when things go wrong\n\n" + policies(troubled),
        TROUBLED,
        "## What ebbtide gains, and where it loses\n\n" + verdict(found, troubled),
        "## Every service: windows held, requests within target, GPU-hours of its pods\n\n" + by_service(found),
        "## Settings\n\n" + "\n".join(f"- **{one.name}**: {'; '.join(one.notes)}" for one in found.policies) + "\n",
    ]
    return "\n".join(parts)


def policies(found: Backtested) -> str:
    """One line for each policy."""
    head = ["policy", "P95 wait", "P99 wait", "requests within", "windows held", "production GPU-h", "research GPU-h"]
    rows = []
    for one in found.policies:
        score, regret = one.score, found.regret(one)
        over = max(one.over_nodes.values())
        rows.append(
            [
                one.name,
                *(f"{score.wait_s(share):.2g} s" for share in (0.95, 0.99)),
                share_text(score.attained),
                f"{score.held.sum()} of {score.cells.sum()}",
                f"{one.production_gpu_h:,.0f}" + (f" (needs {over} nodes too many)" if over else ""),
                f"{one.research_gpu_h:,.0f}",
                f"{one.lost_gpu_h:,.0f}",
                f"{one.moves:,}",
                "–" if regret is None else f"{regret:.1%}",
            ]
        )
    return table([*head, "lost", "moves", "regret"], rows)


def verdict(found: Backtested, troubled: Backtested) -> str:
    """In sentences, from the numbers."""
    of = {one.name: one for one in found.policies}
    ours, static, reactive, best = (of[name] for name in (EBBTIDE, STATIC, REACTIVE, HINDSIGHT))
    worse = [key for key in KEYS if ours.gpu_h[key] > reactive.gpu_h[key]]
    missed = sorted(KEYS, key=lambda key: held(ours, key) - held(static, key))
    fewer = 1 - ours.production_gpu_h / static.production_gpu_h
    hit = next(one for one in troubled.policies if one.name == EBBTIDE)
    tested = found.tested[0]
    paper = scheduled(found.fleet, tested.schedule, start_s=tested.fold.start_s, end_s=tested.fold.end_s)
    points = 100 * (static.score.attained - ours.score.attained)
    return f"""\
- Against static, production holds {fewer:.0%} fewer GPU-hours and research gets
  {ours.research_gpu_h / static.research_gpu_h:.1f} times as many; of {ours.score.cells.sum()} windows
  {static.score.held.sum() - ours.score.held.sum()} more miss their target, and {points:.1f} points fewer requests are
  within it.
- Against the autoscaler, production holds {1 - ours.production_gpu_h / reactive.production_gpu_h:.0%} fewer GPU-hours
  with {1 - ours.moves / reactive.moves:.0%} fewer moves, although the autoscaler's nodes come without delay; windows
  held, it against ebbtide: {reactive.score.held.sum()} against {ours.score.held.sum()}.
- Where ebbtide loses: on {", ".join(worse) or "no service"} the autoscaler takes fewer
  GPU-hours of pods than the plan (it follows what a plan can only provide for). Most windows are lost on
  {missed[0]} ({held(ours, missed[0])} held, static {held(static, missed[0])}) and {missed[1]}
  ({held(ours, missed[1])}, static {held(static, missed[1])}).
- With the usual troubles {ours.score.held.sum() - hit.score.held.sum()} windows more are lost, and
  {100 * (ours.score.attained - hit.score.attained):.1f} points of requests. Research loses
  {ours.lost_gpu_h / ours.research_gpu_h:.1%} of what it gets to reclaims, with troubles
  {hit.lost_gpu_h / hit.research_gpu_h:.1%}.
- On paper, with every node there when its window starts, ebbtide's plan takes {paper.production_gpu_h:,.0f} GPU-hours
  of production and {paper.moves:,} moves; the controller took {ours.production_gpu_h:,.0f} and {ours.moves:,}: it
  starts reclaims early where moves were seen to be slow or demand runs above the plan, and keeps nodes that would
  have to come back at once.
- Below its plan for want of usable nodes, ebbtide stood: {shortages(ours)}. With troubles: {shortages(hit)}.
- Even hindsight misses {best.score.cells.sum() - best.score.held.sum()} windows: it is sized exactly at target by
  closed forms, one plan for all seven days, and what a burst leaves over waits into the next window.
"""


def shortages(policy: PolicyScore) -> str:
    """Which services, in one line."""
    return "; ".join(policy.shortages) or "never"


def held(policy: PolicyScore, key: str) -> int:
    """Windows of one service that kept the target."""
    return int(policy.of_workload(key).held.sum())


def by_service(found: Backtested) -> str:
    """A column for each policy."""
    rows = []
    for key in KEYS:
        cells = [
            f"{held(one, key)}, {share_text(one.of_workload(key).attained)}, {one.gpu_h[key]:,.0f}"
            for one in found.policies
        ]
        rows.append([key, *cells])
    return table(["service", *(one.name for one in found.policies)], rows)


def say(name: str, done: int, total: int) -> None:
    """Progress on stderr."""
    if done in (0, total):
        print(f"{name} {done}/{total}", file=sys.stderr, flush=True)


def run(trial: Trial) -> Backtested:
    """One backtest of the study."""
    return backtested(fleet(), demand(), trial)


def main() -> int:
    started = time.perf_counter()
    with ProcessPoolExecutor(1) as beside:  # the two runs share nothing, and machines have two cores
        rough = Trial(against=(STATIC, CRON, HINDSIGHT), seed=SEED, troubles="usual", stage=say)
        running = beside.submit(run, rough)
        found = run(Trial(against=RIVALS, seed=SEED, stage=say))
        troubled = running.result()
    PAGE.write_text(page(found, troubled), encoding="utf-8")
    print(policies(found), policies(troubled), sep="\n")
    peak_mb = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    print(
        f"wrote {PAGE.relative_to(ROOT)} in {time.perf_counter() - started:.0f} s, peak {peak_mb} MB a process",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
