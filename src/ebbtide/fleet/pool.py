"""Pools: nodes of one shape that may stand in either cluster; and what research is worth."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.fleet.operations import RELABEL, Provider, QuotaRef

POOL_LABEL = "ebbtide.dev/pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one shape, both sides together (§2).

    ``reserved_nodes`` are in research for good; ``min_production_nodes`` never leave production; the others may move.
    Times are per node; at most ``moves_at_once`` nodes are in motion together (§5.9). ``node_selector``: the labels
    of its nodes, as pairs; a GPU is one of ``gpu_resource``.
    """

    name: str
    gpus_per_node: int
    nodes: int
    reserved_nodes: int = 0
    min_production_nodes: int = 0
    yield_time_s: float = 30 * 60.0
    reclaim_time_s: float = 60 * 60.0
    moves_at_once: int = 4
    node_selector: tuple[tuple[str, str], ...] = ()
    gpu_resource: str = "nvidia.com/gpu"
    provider: Provider = RELABEL

    def __post_init__(self) -> None:
        if not self.node_selector:
            object.__setattr__(self, "node_selector", ((POOL_LABEL, self.name),))

    @property
    def max_production_nodes(self) -> int:
        """Nodes that can stand in production at most: all but the reserved ones.

        >>> Pool(name="h100", gpus_per_node=8, nodes=40, reserved_nodes=8).max_production_nodes
        32
        """
        return self.nodes - self.reserved_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Research:
    """What the other side of the tide is worth.

    ``value_usd_per_gpu_h`` 1 makes the unit of money a GPU-hour; ``value_given`` says whether the Fleet named it.
    Half a ``checkpoint_interval_s`` of work is lost on every reclaimed node (§5.9). A run is of use
    from ``minimum_run_time_s`` on. ``quota`` None: no quota is kept.
    """

    value_usd_per_gpu_h: float = 1.0
    checkpoint_interval_s: float = 3600.0
    value_given: bool = False
    minimum_run_time_s: float = 0.0
    quota: QuotaRef | None = None
