"""Pools: nodes of one shape that may stand in either cluster; and what research is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one shape, both sides together (§2).

    ``reserved_nodes`` are in research for good; ``min_production_nodes`` never leave production; the others may move.
    Times are per node; at most ``moves_at_once`` nodes are in motion together (§5.9).
    """

    name: str
    gpus_per_node: int
    nodes: int
    reserved_nodes: int = 0
    min_production_nodes: int = 0
    yield_time_s: float = 30 * 60.0
    reclaim_time_s: float = 60 * 60.0
    moves_at_once: int = 4

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
    Half a ``checkpoint_interval_s`` of work is lost on every reclaimed node (§5.9).
    """

    value_usd_per_gpu_h: float = 1.0
    checkpoint_interval_s: float = 3600.0
    value_given: bool = False
