"""The loops of ``table_window``: arrays in, arrays out; pairs of shortage and money are compared with units behind."""

from __future__ import annotations

import numpy as np
from numba import njit

from ebbtide.allocate.knapsack import UNREACHABLE


@njit(cache=True)
def _better(deficit, money, units, than_deficit, than_money, than_units):  # type: ignore[no-untyped-def]  # numba infers types
    if deficit != than_deficit:
        return deficit < than_deficit
    if money != than_money:
        return money < than_money
    return units < than_units


@njit(cache=True)
def _onward(at, starts, fits):  # type: ignore[no-untyped-def]  # numba infers types
    """To the next counts of all classes but the last; False after the last of them."""
    i = len(at) - 2
    if not fits:
        # More of the last one raised does not fit either: on to the one before it.
        while i >= 0 and at[i] == 0:
            i -= 1
        if i >= 0:
            at[i] = 0
            i -= 1
    while i >= 0 and at[i] + 1 == starts[i + 1] - starts[i]:
        at[i] = 0
        i -= 1
    if i >= 0:
        at[i] += 1
    return i >= 0


@njit(cache=True)
def placed(nodes_of, stride, widths, starts, counts, deficit, money, limit, columns):  # type: ignore[no-untyped-def]  # numba infers types
    """The best vector for every exact count of nodes (rows) and, with more columns than one, of units.

    Counts, deficit and money of class c are ``starts[c]:starts[c+1]``. What comes back: shortage, money, units, and the
    vector's place among all of them, −1 where there is none.
    """
    best_deficit = np.full((limit + 1, columns), UNREACHABLE)
    best_money = np.full((limit + 1, columns), np.inf)
    best_units = np.zeros((limit + 1, columns), dtype=np.int64)
    best_place = np.full((limit + 1, columns), -1)
    last = len(widths) - 1
    at = np.zeros(last + 1, dtype=np.int64)
    while True:
        cell, units, d, m, place = 0, 0, 0, 0.0, 0
        for c in range(last):
            k = starts[c] + at[c]
            cell += counts[k] * stride[c]
            units += counts[k] * widths[c]
            d += deficit[k]
            m += money[k]
            place = place * (starts[c + 1] - starts[c]) + at[c]
        place *= starts[last + 1] - starts[last]
        fits = False
        for k in range(starts[last], starts[last + 1]):
            nodes = nodes_of[cell + counts[k]]
            if nodes > limit:
                break
            fits = True
            used = units + counts[k] * widths[last]
            u = used if columns > 1 else 0
            if _better(
                d + deficit[k], m + money[k], used, best_deficit[nodes, u], best_money[nodes, u], best_units[nodes, u]
            ):
                best_deficit[nodes, u] = d + deficit[k]
                best_money[nodes, u] = m + money[k]
                best_units[nodes, u] = used
                best_place[nodes, u] = place + k - starts[last]
        if not _onward(at, starts, fits):
            return best_deficit, best_money, best_units, best_place


@njit(cache=True)
def filled(narrow, node, counts, deficit, money):  # type: ignore[no-untyped-def]  # numba infers types
    """The best for at most so many nodes: vectors of ``placed`` with the filler in the units that they leave.

    ``counts``, ``deficit`` and ``money`` are the filler's, each pair less than the one before; without a filler, empty.
    What comes back: shortage, money, units, the vector's place and the filler's.
    """
    d, m, u, place = narrow
    rows, columns = d.shape
    best_deficit, best_money = np.full(rows, UNREACHABLE), np.full(rows, np.inf)
    best_units, best_place, best_fill = np.zeros(rows, np.int64), np.full(rows, -1), np.zeros(rows, np.int64)
    for n in range(rows):
        fill = len(counts) - 1
        for c in range(min(columns, n * node + 1)):
            if n > 0 and _better(d[n - 1, c], m[n - 1, c], u[n - 1, c], d[n, c], m[n, c], u[n, c]):
                d[n, c], m[n, c], u[n, c], place[n, c] = d[n - 1, c], m[n - 1, c], u[n - 1, c], place[n - 1, c]
            while fill >= 0 and counts[fill] > n * node - c:
                fill -= 1
            if d[n, c] == UNREACHABLE or (columns > 1 and fill < 0):
                continue
            pair_deficit, pair_money, units = d[n, c], m[n, c], u[n, c]
            if fill >= 0:
                pair_deficit, pair_money, units = d[n, c] + deficit[fill], m[n, c] + money[fill], units + counts[fill]
            if _better(pair_deficit, pair_money, units, best_deficit[n], best_money[n], best_units[n]):
                best_deficit[n], best_money[n], best_units[n] = pair_deficit, pair_money, units
                best_place[n], best_fill[n] = place[n, c], fill
    return best_deficit, best_money, best_units, best_place, best_fill


@njit(cache=True)
def beside_whole(narrow, wide_deficit, wide_money, wide_base, node):  # type: ignore[no-untyped-def]  # numba infers types
    """``filled``, with classes of whole nodes: these take ``wide_base`` nodes, and i more for entry i of their pairs.

    What comes back, for every count of nodes: shortage, money, the vector's place, the filler's, the i.
    """
    d, m, u, place, fill = narrow
    rows = len(d)
    best_deficit, best_money, best_units = np.full(rows, UNREACHABLE), np.full(rows, np.inf), np.zeros(rows, np.int64)
    best_place, best_fill, best_whole = np.full(rows, -1), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for n in range(wide_base, rows):
        for whole in range(min(len(wide_deficit), n - wide_base + 1)):
            rest = n - wide_base - whole
            if wide_deficit[whole] == UNREACHABLE or d[rest] == UNREACHABLE:
                continue
            pair_deficit, pair_money = d[rest] + wide_deficit[whole], m[rest] + wide_money[whole]
            units = u[rest] + whole * node
            if _better(pair_deficit, pair_money, units, best_deficit[n], best_money[n], best_units[n]):
                best_deficit[n], best_money[n], best_units[n] = pair_deficit, pair_money, units
                best_place[n], best_fill[n], best_whole[n] = place[rest], fill[rest], whole
    return best_deficit, best_money, best_place, best_fill, best_whole
