"""The CEL rules of the CRDs: rules between fields that an API server can check, by the model they stand on.

The reader checks all of them, and more: what needs a calendar, a zone database, or every workload against every other
costs more than the API server allows (10 million units a rule; lists count with their greatest length).
"""

from __future__ import annotations

from collections.abc import Sequence


def _rule(rule: str, message: str) -> dict[str, str]:
    return {"rule": rule, "message": message}


def _one_of(*names: str) -> dict[str, str]:
    given = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in names)
    return _rule(f"{given} == 1", f"give exactly one of {', '.join(names)}")


def _not_both(one: str, other: str) -> dict[str, str]:
    return _rule(f"!(has(self.{one}) && has(self.{other}))", f"has both {one} and {other}: give one of them")


def _columns(root: str, names: Sequence[str]) -> dict[str, str]:
    equal = " && ".join(f"item.{name}.size() == self.windows.size()" for name in names)
    return _rule(f"self.{root}.all(item, {equal})", f"every column of {root} has one entry per window")


def _reference(root: str, reference: str, held: str, known: str) -> dict[str, str]:
    """Every item names one that there is, or there is only one to mean."""
    word = reference.rsplit(".", 1)[-1]
    named = f"{known}.exists(one, one.name == item.{reference})"
    said = f"has(item.{held}) && has(item.{reference})" if held else f"has(item.{reference})"
    return _rule(
        f"self.{root}.all(item, {said} ? {named} : {known}.size() == 1)",
        f"a {word} of {root} names none that there is, or names none where there are several",
    )


_PLANNED = "self.demand.filter(one, !has(one.promql))"

RULES: dict[str, list[dict[str, str]]] = {
    "WindowsSpec": [
        _not_both("starts", "choose"),
        _rule("!has(self.starts) || self.starts.isSorted()", "starts are in order of the day"),
        _rule("!has(self.days) || self.days.size() > 0", "has no day"),
    ],
    "DemandSpec": [_one_of("file", "table", "promql")],
    "ColumnsSpec": [_not_both("rate", "count")],
    "PoolSpec": [
        _rule(
            "(has(self.reservedNodes) ? self.reservedNodes : 0) + "
            "(has(self.minProductionNodes) ? self.minProductionNodes : 0) <= self.nodes",
            "reservedNodes and minProductionNodes together are at most nodes",
        ),
        _rule("self.nodes * self.gpusPerNode <= 2000000", "a pool has at most 2,000,000 GPUs"),
    ],
    "ProviderSpec": [_one_of("relabel", "clusterapi")],
    "ClusterSpec": [
        _one_of("context", "inCluster"),
        _rule("!has(self.context) || !self.context.contains('://')", "no address belongs in a document"),
    ],
    "ServiceSpec": [
        _one_of("time", "observed", "claim"),
        _not_both("observed", "scv"),
        _not_both("claim", "scv"),
        _not_both("claim", "concurrency"),
    ],
    "TargetSpec": [_one_of("wait", "latency", "firstToken")],
    "WorkloadSpec": [
        _rule(
            "!has(self.maxReplicas) || (has(self.minReplicas) ? self.minReplicas : 1) <= self.maxReplicas",
            "minReplicas is at most maxReplicas",
        ),
        _rule(
            "has(self.service.claim) || self.targets.all(target, !has(target.firstToken))",
            "only a claim says when the first token comes",
        ),
        _rule("!has(self.expects) || has(self.service.claim)", "expects is what a claim must match: name one"),
        _rule(
            "!has(self.service.claim) || !has(self.waitingCostUsdPerRequestHour) "
            "|| self.waitingCostUsdPerRequestHour == 0.0",
            "a claim does not say how long requests wait, so waiting has no cost",
        ),
    ],
    "ExceptionSpec": [
        _rule("self.from < self.until", "until is the day after the last, so after from"),
        _rule("has(self.like) || (has(self.demandFactor) && self.demandFactor != 1.0)", "changes nothing"),
    ],
    "FleetSpec": [
        _rule("self.demand.exists(one, !has(one.promql))", "live demand alone is nothing to plan from"),
        _rule(
            "self.demand.all(one, !has(one.promql) || (has(self.liveDemand) && self.liveDemand == one.name))",
            "a source with promql is read for live demand only, and liveDemand names it",
        ),
        _rule(
            "!has(self.liveDemand) || self.demand.exists(one, has(one.promql) && one.name == self.liveDemand)",
            "liveDemand names a demand source with promql",
        ),
        _reference("workloads", "pool", "", "self.pools"),
        _reference("workloads", "demand.source", "demand", _PLANNED),
        _rule(
            "!has(self.research) || !has(self.research.quota) || self.research.quota.flavors.all("
            "flavor, self.pools.exists(pool, pool.name == flavor.pool))",
            "a flavor of research.quota names no pool that there is",
        ),
    ],
    "WindowSpec": [
        _rule("has(self.from) == has(self.until)", "a dated window has both from and until"),
        _rule(
            "!(has(self.from) && has(self.until)) || self.from < self.until",
            "until is the day after the last, so after from",
        ),
    ],
    "OverrideSpec": [_one_of("hold", "window", "release")],
    "ScheduleSpec": [
        _columns("workloads", ["replicas", "holdsRps"]),
        _columns("pools", ["productionNodes", "ephemeralNodes", "ephemeralQuotaGpus", "lead"]),
        _rule(
            "self.windows.all(one, self.windows.exists_one(other, other.name == one.name))",
            "the name of a window is given twice",
        ),
        _rule(
            "!has(self.overrides) || self.overrides.all(one, !has(one.window) || "
            "self.windows.exists(window, window.name == one.window))",
            "an override names no window that there is",
        ),
        _rule(
            "!has(self.overrides) || self.overrides.all(one, !has(one.release) || "
            "self.workloads.exists(workload, workload.name == one.release))",
            "an override names no workload that there is",
        ),
    ],
    "FinishedSpec": [
        _rule(
            "[has(self.pool) ? self.pool.size() : 0, has(self.direction) ? self.direction.size() : 0, "
            "has(self.batch) ? self.batch.size() : 0, has(self.took) ? self.took.size() : 0]"
            ".all(size, size == (has(self.at) ? self.at.size() : 0))",
            "the columns have unequal lengths",
        )
    ],
}
