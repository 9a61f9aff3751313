"""The answer of ``ebbtide allocate --least-gpus`` as text."""

from __future__ import annotations

from ebbtide.cli.columns import WIDTH, filled
from ebbtide.workflows.allocate import Fewest


def least_text(fewest: Fewest, *, width: int = WIDTH) -> str:
    """A line a pool: the fewest nodes, and the window that asks for them; then what no number of nodes can meet."""
    lines = []
    for pool in fewest.pools:
        most = max(pool.production_nodes, default=0)
        when = next((w.span for w, n in zip(fewest.windows, pool.production_nodes, strict=True) if n == most), "-")
        lines.append(
            f"{pool.name}: {pool.nodes:,} nodes, {pool.gpus:,} GPUs: {most:,} in production at {when}, "
            f"{pool.reserved_nodes:,} reserved"
        )
        lines += [f"{pool.name}: {name} misses its targets with any replicas it may have" for name in pool.unreachable]
    return "\n".join(part for line in lines for part in filled(line, width))
