"""Any Fleet, written down with or without its defaults, is read as the same values and the same digest."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel
from whenever import Date, Time

from ebbtide.adapters.documents.emit import block
from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.fleet.fingerprint import Fingerprint
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.horizon import WEEK, Choose, DatedException, DayPattern, Weekday, clock
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Balancing, Claimed, DemandRef, Service, Target, TargetKind, Workload
from ebbtide.units import format_duration

LABEL = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
SECONDS = st.integers(1, 86_400).map(float) | st.sampled_from([0.5, 0.25, 90.0])
SHARE = st.integers(1, 999).map(lambda n: n / 1000)
NUMBER = st.integers(1, 10**6).map(lambda n: n / 1000)  # the emitter writes figures, not every double


TEXT = st.none() | st.sampled_from(["H100-SXM-80GB", "sha256:1", "--tp 2 --name 'a b'", "no"])
EXPECTED = st.builds(Fingerprint, gpu_model=TEXT, driver=TEXT, image_digest=TEXT, model_revision=TEXT, flags=TEXT)


@st.composite
def pools(draw: st.DrawFn, name: str) -> Pool:
    nodes = draw(st.integers(1, 50))
    reserved = draw(st.integers(0, nodes - 1))
    return Pool(
        name=name,
        gpus_per_node=draw(st.integers(1, 16)),
        nodes=nodes,
        reserved_nodes=reserved,
        min_production_nodes=draw(st.integers(0, nodes - reserved)),
        yield_time_s=draw(SECONDS),
        reclaim_time_s=draw(SECONDS),
        moves_at_once=draw(st.integers(1, 9)),
    )


@st.composite
def workloads(draw: st.DrawFn, name: str, pool: Pool, source: str) -> Workload:
    observed = draw(st.booleans())
    time_s = None if observed else draw(SECONDS)
    scv = None if observed else draw(st.none() | NUMBER)
    claim = draw(st.none() | st.sampled_from([Claimed(name="chat"), Claimed(name="of/chat.yaml")]))
    known = [kind for kind in TargetKind if claim is not None or kind is not TargetKind.FIRST_TOKEN]
    kinds = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    targets = tuple(
        Target(kind=kind, bound_s=float(draw(st.integers(90_000, 200_000))), percentile=draw(SHARE)) for kind in kinds
    )
    least = draw(st.integers(0, 5))
    return Workload(
        name=name,
        demand=DemandRef(
            source=source, key=draw(st.just(name) | st.sampled_from(["m-small/c5", "日本", "a: b", "007"]))
        ),
        pool=pool.name,
        gpus_per_replica=draw(st.integers(1, pool.gpus_per_node * pool.max_production_nodes)),
        service=Service(time_s=time_s, scv=scv, concurrency=draw(st.integers(1, 99)))
        if claim is None
        else Service(time_s=None, claim=claim),
        targets=targets,
        balancing=draw(st.sampled_from(Balancing)),
        patience_s=draw(SECONDS | st.just(math.inf)),
        weight=draw(NUMBER),
        waiting_cost_usd_per_request_h=draw(NUMBER) if claim is None else 0.0,
        expects=draw(EXPECTED) if claim is not None else Fingerprint(),
        min_replicas=least,
        max_replicas=draw(st.none() | st.integers(max(1, least), 50)),
        startup_time_s=draw(SECONDS),
    )


@st.composite
def patterns(draw: st.DrawFn) -> tuple[DayPattern, ...]:
    cut = draw(st.integers(1, 7))
    parts = [WEEK[:cut], WEEK[cut:]] if cut < 7 else [WEEK]
    minutes = [sorted({0, *draw(st.lists(st.integers(0, 1439), max_size=5))}) for _ in parts]
    return tuple(
        DayPattern(days=days, starts=tuple(Time(m // 60, m % 60) for m in starts))
        if draw(st.booleans())
        else DayPattern(days=days, choose=Choose(at_most=draw(st.integers(1, 24)), shortest_s=draw(SECONDS)))
        for days, starts in zip(parts, minutes, strict=True)
    )


@st.composite
def exceptions(draw: st.DrawFn, name: str, names: list[str]) -> DatedException:
    day = draw(st.integers(1, 27))
    return DatedException(
        name=name,
        start=Date(2026, 10, day),
        until=Date(2026, 10, day + 1),
        like=draw(st.sampled_from(WEEK)),
        workloads=tuple(draw(st.lists(st.sampled_from(names), unique=True))),
        demand_factor=draw(NUMBER),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    pool_names = draw(st.lists(LABEL, min_size=1, max_size=3, unique=True))
    sources = draw(st.lists(LABEL, min_size=1, max_size=2, unique=True))
    count = max(len(pool_names), len(sources), draw(st.integers(1, 4)))
    names = draw(st.lists(LABEL, min_size=count, max_size=count, unique=True))
    hardware = [draw(pools(name)) for name in pool_names]
    services = [
        draw(workloads(name, hardware[n % len(hardware)], sources[n % len(sources)])) for n, name in enumerate(names)
    ]
    return Fleet(
        name=draw(LABEL),
        digest="",
        time_zone=draw(st.sampled_from(["Asia/Shanghai", "UTC", "America/New_York"])),
        confidence=draw(SHARE),
        patterns=draw(patterns()),
        pools=tuple(hardware),
        workloads=tuple(services),
        research=Research(value_usd_per_gpu_h=draw(NUMBER), checkpoint_interval_s=draw(SECONDS), value_given=True),
        exceptions=tuple(draw(exceptions(f"e-{n}", names)) for n in range(draw(st.integers(0, 2)))),
    )


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes a Fleet down; ``full`` with every default, else only what differs from one."""

    full: bool

    def document(self, fleet: Fleet) -> str:
        sources = dict.fromkeys(workload.demand.source for workload in fleet.workloads)
        spec = {
            "timeZone": fleet.time_zone,
            **self.unless({"confidence": fleet.confidence}, {"confidence": 0.95}),
            "windows": [self.pattern(pattern) for pattern in fleet.patterns],
            "demand": [{"name": name, "file": f"{name}.csv"} for name in sources],
            "pools": [self.pool(pool) for pool in fleet.pools],
            "workloads": [self.workload(workload, fleet, len(sources)) for workload in fleet.workloads],
            "research": {
                "valueUsdPerGpuHour": fleet.research.value_usd_per_gpu_h,
                "checkpointInterval": format_duration(fleet.research.checkpoint_interval_s),
            },
            "exceptions": [self.exception(exception) for exception in fleet.exceptions],
        }
        head = {"apiVersion": "ebbtide.dev/v1alpha1", "kind": "Fleet", "metadata": {"name": fleet.name}}
        return block({**head, "spec": spec}, open_keys=frozenset({"spec"}))

    def unless(self, values: dict[str, object], defaults: dict[str, object]) -> dict[str, object]:
        return {key: value for key, value in values.items() if self.full or value != defaults.get(key, object())}

    @staticmethod
    def pattern(pattern: DayPattern) -> dict[str, object]:
        days = [day.value for day in reversed(pattern.days)]
        if pattern.choose is None:
            return {"days": days, "starts": [clock(start) for start in pattern.starts]}
        shortest = format_duration(pattern.choose.shortest_s)
        return {"days": days, "choose": {"atMost": pattern.choose.at_most, "shortest": shortest}}

    def pool(self, pool: Pool) -> dict[str, object]:
        rest = {
            "reservedNodes": pool.reserved_nodes,
            "minProductionNodes": pool.min_production_nodes,
            "yieldTime": format_duration(pool.yield_time_s),
            "reclaimTime": format_duration(pool.reclaim_time_s),
            "movesAtOnce": pool.moves_at_once,
        }
        defaults = {
            "reservedNodes": 0,
            "minProductionNodes": 0,
            "yieldTime": "30m",
            "reclaimTime": "1h",
            "movesAtOnce": 4,
        }
        given = {"name": pool.name, "gpusPerNode": pool.gpus_per_node, "nodes": pool.nodes}
        return given | self.unless(rest, defaults)

    def workload(self, workload: Workload, fleet: Fleet, sources: int) -> dict[str, object]:
        demand = {"source": workload.demand.source, "key": workload.demand.key}
        only = {"source": workload.demand.source} if sources == 1 else {}
        patience = "unlimited" if math.isinf(workload.patience_s) else format_duration(workload.patience_s)
        rest: dict[str, object] = {
            "demand": self.unless(demand, {**only, "key": workload.name}),
            "pool": workload.pool,
            "balancing": workload.balancing.value,
            "patience": patience,
            "weight": workload.weight,
            "waitingCostUsdPerRequestHour": workload.waiting_cost_usd_per_request_h,
            "minReplicas": workload.min_replicas,
            "maxReplicas": workload.max_replicas,
            "startupTime": format_duration(workload.startup_time_s),
        }
        defaults: dict[str, object] = {
            "demand": {},
            "balancing": "leastLoaded",
            "patience": "unlimited",
            "weight": 1.0,
            "waitingCostUsdPerRequestHour": 0.0,
            "minReplicas": 1,
            "maxReplicas": None,
            "startupTime": "5m",
        } | ({"pool": workload.pool} if len(fleet.pools) == 1 else {})
        if workload.service.claim is not None:
            rest["expects"] = expects = {
                to_camel(one): value for one, value in asdict(workload.expects).items() if value is not None
            }
            defaults["expects"] = {} if not expects else None
        return {
            "name": workload.name,
            "gpusPerReplica": workload.gpus_per_replica,
            "service": self.service(workload.service),
            "targets": [
                {target.kind.value: format_duration(target.bound_s), "percentile": target.percentile}
                for target in workload.targets
            ],
        } | self.unless(rest, defaults)

    def service(self, service: Service) -> dict[str, object]:
        if service.claim is not None:
            return {"claim": service.claim.name}
        given: dict[str, object] = (
            {"observed": {}}
            if service.time_s is None
            else {"time": format_duration(service.time_s)} | self.unless({"scv": service.scv}, {"scv": None})
        )
        return given | self.unless({"concurrency": service.concurrency}, {"concurrency": 1})

    def exception(self, exception: DatedException) -> dict[str, object]:
        assert isinstance(exception.like, Weekday)
        return {
            "name": exception.name,
            "from": str(exception.start),
            "until": str(exception.until),
            "like": exception.like.value,
        } | self.unless(
            {"workloads": list(exception.workloads), "demandFactor": exception.demand_factor},
            {"workloads": [], "demandFactor": 1.0},
        )


@given(fleets())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_fleet_is_read_as_it_was_written(tmp_path: Path, fleet: Fleet) -> None:
    digests = set()
    for full in (False, True):
        path = tmp_path / "fleet.yaml"
        path.write_text(Writer(full).document(fleet))
        read = read_fleet(path).fleet
        digests.add(read.digest)
        expected = {name: getattr(fleet, name) for name in Fleet.__slots__ if name != "digest"}
        assert {name: getattr(read, name) for name in expected} == expected
    assert len(digests) == 1
