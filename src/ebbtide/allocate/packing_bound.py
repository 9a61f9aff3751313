"""Proven prices of widths, in nodes: what a replica takes of a node at least, whatever stands beside it.

Prices y are dual feasible where no set of replicas that fits one node is priced above 1; then Σ y · replicas ≤ nodes
for every packing (S. Fekete, J. Schepers, New classes of fast lower bounds for bin packing problems, Mathematical
Programming 91, 2001; G. Lueker, 1983). Volume is one such price; the others see that replicas of 3 GPUs leave 2 of 8.
The pattern program's own dual (Gilmore and Gomory, 1961) is the best for one mix of counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ebbtide.fleet.demand import Floats
from ebbtide.fleet.planned import Ints


def packing_prices(node: int, widths: Sequence[int], mixes: Sequence[Ints]) -> list[Floats]:
    """Prices per width (nodes a replica) that are best for at least one mix of counts, volume first.

    >>> [prices.tolist() for prices in packing_prices(8, [5, 4], [np.array([3, 1])])]
    [[0.625, 0.5], [1.0, 0.5]]
    """
    known = [np.array(prices) for prices in _rounded(node, widths)]
    known += [_program_price(node, widths, mix) for mix in mixes]
    best = {int(np.argmax([float(prices @ mix) for prices in known])) for mix in mixes}
    return [known[0], *(known[i] for i in sorted(best - {0}))]


def _rounded(node: int, widths: Sequence[int]) -> Iterator[list[float]]:
    """Lueker's u(k) and Fekete and Schepers' U(ε), on widths as shares of a node; whole nodes are priced as such."""
    yield [width / node for width in widths]
    for k in range(1, node + 1):
        yield [_stretched(width, node, k) for width in widths]
    for small in range(1, node // 2 + 1):
        yield [_thresholded(width, node, small) for width in widths]


def _stretched(width: int, node: int, k: int) -> float:
    scaled = (k + 1) * width
    return width / node if scaled % node == 0 else (scaled // node) / k


def _thresholded(width: int, node: int, small: int) -> float:
    if width >= node:
        return width / node
    if width > node - small:
        return 1.0
    return 0.0 if width < small else width / node


def _program_price(node: int, widths: Sequence[int], mix: Ints) -> Floats:
    """The dual of the arc-flow relaxation for a mix of counts, made feasible beyond rounding."""
    # Most of a second to import, and fleets whose widths divide the node never need it.
    from scipy.optimize import linprog

    narrow = [i for i, width in enumerate(widths) if width < node]
    count = len(narrow)
    rows = []
    for place, i in enumerate(narrow):
        for point in range(node - widths[i] + 1):
            row = np.zeros(count + node + 1)
            row[place], row[count + point], row[count + point + widths[i]] = 1.0, 1.0, -1.0
            rows.append(row)
    for point in range(node):
        row = np.zeros(count + node + 1)
        row[count + point], row[count + point + 1] = 1.0, -1.0
        rows.append(row)
    bounds = [(0.0, 1.0)] * count + [(0.0, 0.0)] + [(0.0, 1.0)] * node
    gain = np.concatenate([-np.asarray(mix, dtype=float)[narrow], np.zeros(node + 1)])
    found = linprog(gain, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=bounds)
    prices = np.array([width // node if width >= node else 0 for width in widths], dtype=float)
    if found.x is not None:
        prices[narrow] = np.maximum(found.x[:count], 0.0)
        prices[narrow] /= max(1.0, dearest_node(node, [widths[i] for i in narrow], prices[narrow])) * (1 + 1e-12)
    return prices


def dearest_node(node: int, widths: Sequence[int], prices: Floats) -> float:
    """Greatest price of what fits one node: prices are dual feasible where it is at most 1.

    >>> dearest_node(8, [3, 5], np.array([0.5, 0.5]))
    1.0
    """
    best = [0.0] * (node + 1)
    for room in range(1, node + 1):
        reached = [
            best[room - width] + price for width, price in zip(widths, prices.tolist(), strict=True) if width <= room
        ]
        best[room] = max([best[room - 1], *reached])
    return best[node]
