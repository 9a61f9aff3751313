"""The page of the backtest study, Markdown: tables and sentences from what was measured."""

from __future__ import annotations

import textwrap

import numpy as np
from servegen import KEYS
from servegen_table import table
from whenever import Instant

from ebbtide.cli.render_backtest import share_text
from ebbtide.fleet.horizon import hours_label
from ebbtide.simulate.realised import Realised, scheduled, window_starts
from ebbtide.units import SECONDS_PER_HOUR
from ebbtide.workflows.backtest_trial import EBBTIDE, HINDSIGHT, REACTIVE, STATIC
from ebbtide.workflows.replay import Backtested, PolicyScore

DAY_S = 86_400

HEAD = """\
# Backtest on the ServeGen weeks

Written by `uv run python benchmarks/backtest_study.py` (within two minutes on two cores, 1 GiB); do not edit. Demand:
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


TROUBLED = """\
`--troubles usual`: about one node move in twenty goes wrong somehow (it fails, stalls, comes late or broken, or only a
part comes), pods start slowly or hang, writes fail, and a few times a day people and other controllers cordon nodes,
edit replicas and quota, roll out, or a cluster cannot be reached. The rates are assumptions. Reactive is left out:
nothing would go wrong with it.
"""

DRAWN = """\
Other arrivals and services at the same rates, other times of moves. Schedules do not depend on the draw; the
autoscaler's targets do, since they are tuned on simulated past days: {moved}.
"""


def page(found: Backtested, troubled: Backtested, drawn: Backtested) -> str:
    """The whole page, Markdown."""
    parts = [
        HEAD,
        "## Policies\n\n" + policies(found),
        RULES,
        "## On ordinary days, when things go wrong\n\n" + policies(troubled),
        TROUBLED,
        "## Another draw\n\n" + policies(drawn),
        textwrap.fill(DRAWN.format(moved=moved_targets(found, drawn)), 120) + "\n",
        "## What ebbtide gains, and where it loses\n\n" + verdict(found, troubled),
        "## Every day: windows held, GPU-hours of production\n\n" + by_day(found),
        "A window counts to the day on which it begins; weekdays are not published.\n",
        "## Every service: windows held, requests within target, GPU-hours of its pods\n\n" + by_service(found),
        "## Settings\n\n" + settings(found),
    ]
    return "\n".join(parts)


def settings(found: Backtested) -> str:
    """What every policy chose."""
    lines = [f"- **{one.name}**: {'; '.join(one.notes)}" for one in found.policies]
    schedule = found.tested[0].schedule
    nodes = zip(schedule.windows, schedule.pools[0].production_nodes, strict=True)
    lines.append("- **ebbtide's nodes**: " + ", ".join(f"{hours_label(window)} {count}" for window, count in nodes))
    return "\n".join(lines) + "\n"


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
    above = [key for key in KEYS if ours.gpu_h[key] > static.gpu_h[key]]
    pods = sum(ours.gpu_h.values()) / sum(static.gpu_h.values())
    text = f"""\
- Against static, production holds {fewer:.0%} fewer GPU-hours and research gets
  {ours.research_gpu_h / static.research_gpu_h:.1f} times as many; of {ours.score.cells.sum()} windows
  {static.score.held.sum() - ours.score.held.sum()} more miss their target, and {points:.1f} points fewer requests are
  within it.
- Against the autoscaler, production holds {1 - ours.production_gpu_h / reactive.production_gpu_h:.0%} fewer GPU-hours
  with {1 - ours.moves / reactive.moves:.0%} fewer moves, although the autoscaler's nodes come without delay; windows
  held, it against ebbtide: {reactive.score.held.sum()} against {ours.score.held.sum()}.
- Its pods take {pods:.0%} of static's GPU-hours, its nodes {1 - fewer:.0%}: the rest is nodes that wait for their
  window or are not yet given back.
- Where ebbtide loses: most windows on {missed[0]} ({held(ours, missed[0])} held, static {held(static, missed[0])}) and
  {missed[1]} ({held(ours, missed[1])}, static {held(static, missed[1])}). On {named(above)} its pods take more
  GPU-hours than static's (the margin costs more than the wave gives), on {named(worse)} more than the autoscaler's
  (which follows what a plan can only provide for).
- With the usual troubles {ours.score.held.sum() - hit.score.held.sum()} windows more are lost, and
  {100 * (ours.score.attained - hit.score.attained):.1f} points of requests. Research loses
  {ours.lost_gpu_h / ours.research_gpu_h:.1%} of what it gets to reclaims, with troubles
  {hit.lost_gpu_h / hit.research_gpu_h:.1%}.
- On paper, with every node there just when it is wanted, ebbtide's plan takes {paper.production_gpu_h:,.0f} GPU-hours
  of production and {paper.moves:,} moves; the controller took {ours.production_gpu_h:,.0f} and {ours.moves:,}. A lead
  is whole batches at the 90th percentile of a move, so most nodes come back earlier than they must; where a reclaim
  would begin before a yield is over, the node stays; and yields wait while demand runs above the plan.
- What a window adds is late where its nodes are (a lead holds for nine moves in ten) and until its pods have started:
  {below_plan(found)}. With troubles: {below_plan(troubled)}. Nodes that leave take no service below its plan: pods are
  replaced before they go.
- Even hindsight misses {best.score.cells.sum() - best.score.held.sum()} windows: it is sized exactly at target by
  closed forms, one plan for all seven days, its nodes come with the same moves as anybody's, and what a burst leaves
  over waits into the next window. Regret is therefore against a plan that attains less.
"""
    return "".join(filled(one) for one in text.removeprefix("- ").split("\n- "))


def filled(text: str) -> str:
    """A bullet of the page, wrapped."""
    words = " ".join(text.split())
    lines = textwrap.wrap(f"- {words}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def named(keys: list[str]) -> str:
    """Some services in a sentence."""
    return ", ".join(keys) or "no service"


def moved_targets(found: Backtested, drawn: Backtested) -> str:
    """Services whose autoscaler was tuned to another target by the other draw."""
    notes = [one.policy(REACTIVE).notes[0].split("; ") for one in (found, drawn)]  # type: ignore[union-attr] # both have it
    moved = [
        f"{key} from {targets[0]} to {targets[1]}"
        for key, *targets in (
            (one.split(" at ")[0], *(note.split(" at ")[1].split(" of ")[0] for note in (one, other)))
            for one, other in zip(*notes, strict=True)
        )
        if targets[0] != targets[1]
    ]
    return ", ".join(moved) or "here none moved"


def below_plan(found: Backtested) -> str:
    """For how long ebbtide's services had fewer ready replicas than planned, and the worst of it, in a sentence."""
    tested = found.tested[0]
    given = tested.realised[EBBTIDE].capacity
    fold, windows = tested.fold, tested.schedule.windows
    starts_s, window = window_starts(windows, start_s=fold.start_s, end_s=fold.end_s, time_zone="UTC")
    hours, far, worst, both = {}, {}, {}, {}
    for column in tested.schedule.workloads:
        capacity = given[column.name]
        edges_s = np.unique(np.concatenate([starts_s, capacity.starts_s, [fold.end_s]]))
        edges_s = edges_s[(edges_s >= fold.start_s) & (edges_s <= fold.end_s)]
        now = np.searchsorted(starts_s, edges_s[:-1], side="right") - 1
        plans = np.array(column.replicas)[window]
        planned, before = plans[now], plans[np.maximum(now - 1, 0)]
        ready = capacity.replicas[np.searchsorted(capacity.starts_s, edges_s[:-1], side="right") - 1]
        lasted_h = np.diff(edges_s) / SECONDS_PER_HOUR
        hours[column.name] = float(lasted_h[ready < planned].sum())
        both[column.name] = float(lasted_h[ready < np.minimum(planned, before)].sum())
        far[column.name] = float(lasted_h[ready < 0.9 * planned].sum())
        worst[column.name] = float((1.0 - ready / np.maximum(planned, 1)).max())
    key = max(far, key=lambda name: far[name])
    return (
        f"below its plan a service stood {min(hours.values()):.1f} to {max(hours.values()):.1f} hours of the week, "
        f"more than a tenth below at most {far[key]:.1f} ({key}), and by {max(worst.values()):.0%} at worst; below "
        f"what the window before had planned too at most {max(both.values()):.1f} hours"
    )


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


def by_day(found: Backtested) -> str:
    """A column for each policy, a line for each tested day."""
    tested = found.tested[0]
    days = np.arange(tested.fold.start_s, tested.fold.end_s, DAY_S)
    begins = (tested.cells.starts_s - tested.fold.start_s) // DAY_S
    rows = []
    for number, start_s in enumerate(days.tolist()):
        cells = []
        for one in found.policies:
            scored = [~np.isnan(waits) & (begins == number) for waits in tested.waits_s[one.name].values()]
            missed = tested.missed[one.name].values()
            kept = sum(int((seen & ~miss).sum()) for seen, miss in zip(scored, missed, strict=True))
            gpu_h = production_gpu_h(tested.realised[one.name], start_s, start_s + DAY_S)
            cells.append(f"{kept} of {sum(int(seen.sum()) for seen in scored)}, {gpu_h:,.0f}")
        rows.append([f"{Instant.from_timestamp(start_s).to_tz('UTC').date()}, day {number + 8}", *cells])
    return table(["day", *(one.name for one in found.policies)], rows)


def production_gpu_h(given: Realised, start_s: float, end_s: float) -> float:
    """GPU-hours of production on a stretch."""
    return sum(
        float((one.production * np.diff(np.clip(one.edges_s, start_s, end_s))).sum())
        * (one.pool.gpus_per_node / SECONDS_PER_HOUR)
        for one in given.pools
    )
