"""What a provider of nodes must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ebbtide.adapters.kubernetes.objects import NodeObject
from ebbtide.control.state import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider can do. ``removes_named``: exactly the nodes that are named leave, and no other."""

    removes_named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a provider was asked for on one side: the size (None: cannot be read), and the nodes on their way out.

    ``stock_out``: it answers that it has no capacity.
    """

    size: int | None
    leaving: frozenset[str] = frozenset()
    stock_out: bool = False


class NodePool(Protocol):
    """One pool on both sides. Everything asked twice is asked once; problems are ``ApiError``."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    def look(self, side: Side, nodes: Sequence[NodeObject], /) -> Asked:
        """What it was asked for; ``nodes`` are the pool's Node objects in that side's cluster, just read."""

    def remove(self, side: Side, nodes: tuple[str, ...], size: int, /) -> None:
        """Take exactly these nodes out; the size becomes ``size``, in one write with their names (§6.1)."""

    def grow(self, side: Side, size: int, /) -> None:
        """Ask for ``size`` nodes: an absolute number."""
