"""The Fleet: everything the planner knows of the hardware, the services and the horizon."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.fleet.horizon import DatedException, DayPattern
from ebbtide.fleet.operations import Clusters, LiveDemand, Mode
from ebbtide.fleet.pool import Pool, Research
from ebbtide.fleet.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A completed Fleet document without its demand sources (those are the adapters').

    ``mode``, ``clusters`` (None: the settings name them) and ``live_demand`` (None: none is observed) are the
    controller's; no plan reads them.
    """

    name: str
    digest: str
    time_zone: str
    confidence: float
    patterns: tuple[DayPattern, ...]
    pools: tuple[Pool, ...]
    workloads: tuple[Workload, ...]
    research: Research
    exceptions: tuple[DatedException, ...] = ()
    mode: Mode = Mode.SHADOW
    clusters: Clusters | None = None
    live_demand: LiveDemand | None = None

    def pool(self, name: str) -> Pool:
        """The pool of that name; ``KeyError`` where there is none (documents are checked before)."""
        for pool in self.pools:  # no dict: planning asks for every workload in every window
            if pool.name == name:
                return pool
        raise KeyError(name)

    def workload(self, name: str) -> Workload:
        """The workload of that name; ``KeyError`` where there is none."""
        for workload in self.workloads:
            if workload.name == name:
                return workload
        raise KeyError(name)

    def workloads_of(self, pool: str) -> tuple[Workload, ...]:
        """The workloads that stand in one pool, in the Fleet's order."""
        return tuple(workload for workload in self.workloads if workload.pool == pool)
