"""Small hollows and jobs for the tests of `batch`, and a judge of placings that shares no code with the scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import strategies as st

from ebbtide.batch.durations import Duration
from ebbtide.batch.fitting import Placing
from ebbtide.batch.hollows import Hollow, Tenure
from ebbtide.batch.job import Job, Width
from ebbtide.batch.plan import Place, places_of

H = 3600


def hollow(nodes: int = 1, gpus: int = 4, *, until_h: float = 48.0, tenure: Tenure = Tenure.RESERVED) -> Hollow:
    """Nodes that are always there."""
    return Hollow(pool="h100", tenure=tenure, gpus_per_node=gpus, edges_s=(0.0, until_h * H), nodes=(nodes,))


def tide(steps: list[tuple[float, int]], *, until_h: float = 48.0, gpus: int = 4, pool: str = "h100") -> Hollow:
    """Ephemeral nodes: from which hour on how many."""
    edges = (*(hour * H for hour, _ in steps), until_h * H)
    counts = tuple(count for _, count in steps)
    return Hollow(pool=pool, tenure=Tenure.EPHEMERAL, gpus_per_node=gpus, edges_s=edges, nodes=counts)


def job(name: str, gpus: int = 2, hours: float = 1.0, **rest: object) -> Job:
    """A job whose duration is known exactly."""
    duration = Duration(expected_s=hours * H, p90_s=hours * H)
    return Job(**({"name": name, "gpus_per_pod": gpus, "duration": duration, "earliest_start_s": 0.0} | rest))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Job], list[Hollow]]:
    """A few jobs of all kinds and one to three hollows."""
    gpus = draw(st.sampled_from([1, 4, 8]))
    found = [hollow(draw(st.integers(1, 3)), gpus)] if draw(st.booleans()) else []
    hours = sorted(draw(st.sets(st.integers(1, 40), max_size=6)))
    counts = draw(st.lists(st.integers(0, 3), min_size=len(hours) + 1, max_size=len(hours) + 1))
    found.append(tide(list(zip([0, *hours], counts, strict=True)), gpus=gpus))
    if draw(st.booleans()):
        found.append(tide([(3, draw(st.integers(0, 2)))], gpus=4, pool="a100"))
    jobs: list[Job] = []
    for number in range(draw(st.integers(1, 9))):
        after = draw(st.sets(st.sampled_from([one.name for one in jobs]), max_size=2)) if jobs else set()
        width = Width(pods=draw(st.integers(5, 6)), speedup=draw(st.sampled_from([0.5, 1.5, 3.0])))
        start = draw(st.integers(0, 20))
        jobs.append(
            job(
                f"job-{number}",
                draw(st.integers(1, 5)),
                draw(st.sampled_from([0.5, 1, 2.5, 7, 11])),
                pods=draw(st.integers(1, 4)),
                earliest_start_s=float(start * H),
                deadline_s=draw(st.none() | st.integers(start + 1, 48).map(lambda hour: float(hour * H))),
                value_usd=float(draw(st.integers(0, 5))),
                checkpoint_interval_s=draw(st.none() | st.sampled_from([600.0, 3600.0])),
                after=tuple(sorted(after)),
                widths=(width,) if draw(st.booleans()) else (),
                pools=draw(st.sampled_from([(), (), ("h100",), ("a100",)])),
            )
        )
    return jobs, found


def broken_rules(placing: Placing) -> Iterator[str]:
    jobs, places = placing.instance.jobs, places_of(placing)
    by_name = dict(zip((one.name for one in jobs), places, strict=True))
    for one, place in zip(jobs, places, strict=True):
        if place is None:
            continue
        shapes = {shape.pods: shape for shape in one.shapes}
        if place.pods not in shapes or place.gpus_per_pod != one.gpus_per_pod:
            yield f"{one.name} has another shape"
        if one.pools and place.pool not in one.pools:
            yield f"{one.name} stands in {place.pool}"
        if place.start_s < one.earliest_start_s:
            yield f"{one.name} starts too early"
        for name in one.after:
            before = by_name[name]
            if before is None or before.finish_s > place.start_s:
                yield f"{one.name} starts before {name} has ended"
        yield from _broken_runs(placing, one, place)


def _broken_runs(placing: Placing, one: Job, place: Place) -> Iterator[str]:
    """Runs too short, at once, or interrupted where nothing may be, or where nothing turns."""
    hollow = next(h for h in placing.instance.hollows if (h.pool, h.tenure) == (place.pool, place.tenure))
    if len(place.runs) > 1 and (not one.preemptible or place.tenure is Tenure.RESERVED):
        yield f"{one.name} is interrupted"
    shapes = {shape.pods: shape for shape in one.shapes}
    need = shapes[place.pods].duration.quantile_s(placing.instance.confidence)
    lost = (one.checkpoint_interval_s or 0.0) * (len(place.runs) - 1)
    ran = sum(run.end_s - run.start_s for run in place.runs)
    if ran + 1e-6 < need + lost:
        yield f"{one.name} runs {ran} s, needs {need + lost}"
    for run, later in pairwise(place.runs):
        if later.start_s < run.end_s:
            yield f"{one.name} runs twice at once"
        if all(run.end_s not in [end for _, end in hollow.stays(k)] for k in range(hollow.most_nodes)):
            yield f"{one.name} is interrupted without a turn"


def crowded_nodes(placing: Placing) -> Iterator[str]:
    """Nodes that hold more than they have, or that are not there; gangs that are not whole."""
    instance = placing.instance
    held: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for run, number in enumerate(placing.run_job):
        way = placing.way_of[number]
        parts = range(placing.run_part[run], placing.run_part[run + 1])
        if sum(int(placing.part_pods[part]) for part in parts) != instance.way_pods[way]:
            yield f"{instance.jobs[number].name} is not whole"
        for part in parts:
            node, start, end = int(placing.part_node[part]), int(placing.run_start_s[run]), int(placing.run_end_s[run])
            if instance.node_hollow[node] != instance.way_hollow[way]:
                yield f"{instance.jobs[number].name} spans hollows"
            held[node].append((start, end, int(placing.part_pods[part] * instance.way_gpus[way])))
            own = instance.hollows[instance.node_hollow[node]]
            stays = own.stays(node - int(instance.hollow_first[instance.node_hollow[node]]))
            if not any(first <= start and end <= last for first, last in stays):
                yield f"{instance.jobs[number].name} runs on a node that is away"
    for node, uses in held.items():
        for at, _, _ in uses:
            if sum(gpus for start, end, gpus in uses if start <= at < end) > instance.node_gpus[node]:
                yield f"node {node} is overfull at {at}"
