"""The cheapest nodes to empty, where a node costs everything that stands on it and what ends frees all its nodes.

Choosing k nodes whose Workloads together cost least is the minimum k-union problem, which is NP-hard (Chlamtáč,
Dinitz and Makarychev, 2017). But Workloads rarely share nodes, so the fleet falls into small parts that do not touch:
each part's price list is exact where it is small, and the parts are joined exactly (a knapsack). A part with more
than ten Workloads on more than ten kinds of nodes is covered greedily: again and again what frees nodes at the least
price each.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

EXACT = 10  # 2^10 subsets of a part's Workloads: half a millisecond
TWO_WAYS = 20_000  # nodes times nodes: beyond it a second greedy cover costs too much time
SUBSETS = 1 << 14  # all parts together: a decision is to stay within milliseconds

Held = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes that are free for ``cost``; some of them are no cheaper than all."""

    cost: float
    names: tuple[str, ...]


def cheapest(count: int, held: Held, cost: Mapping[str, float]) -> list[str]:
    """``count`` names of ``held`` (all, where there are fewer) whose Workloads cost least together.

    ``held`` has each node's Workloads, in the order in which nodes are taken among equals.

    >>> gang = frozenset({"gang"})
    >>> cheapest(2, {"a": frozenset({"x"}), "b": gang, "c": gang}, {"x": 1.0, "gang": 3.0})
    ['b', 'c']
    """
    count = min(count, len(held))
    singles: list[Offer] = []
    lists: list[list[Offer]] = []
    budget = SUBSETS
    for part in _parts(held):
        if len(part) == 1:
            singles.append(Offer(math.fsum(cost[one] for one in held[part[0]]), (part[0],)))
            continue
        kinds = _kinds(part, held)
        size = min(len(kinds), len(set().union(*kinds)))
        if size <= EXACT and (1 << size) <= budget:
            budget -= 1 << size
            lists.append(_exact(kinds, cost))
        else:
            lists.append(_greedy(part, held, cost, count))
    return _joined(count, sorted(singles, key=lambda offer: offer.cost), _useful(count, lists))


def _useful(count: int, lists: Sequence[list[Offer]]) -> list[list[Offer]]:
    """The price lists that can be of use: of those with one offer of the same size, the cheapest that fill the count.

    Whatever takes a dearer one leaves a cheaper one out, and loses no more with that one.
    """
    by_size: dict[int, list[int]] = {}
    for number, offers in enumerate(lists):
        if len(offers) == 1:
            by_size.setdefault(len(offers[0].names), []).append(number)
    kept: set[int] = set()
    for size, numbers in by_size.items():
        kept.update(sorted(numbers, key=lambda number: lists[number][0].cost)[: -(-count // size)])
    return [offers for number, offers in enumerate(lists) if len(offers) > 1 or number in kept]


def _parts(held: Held) -> list[list[str]]:
    """Nodes that share Workloads, directly or through others."""
    on: dict[str, list[str]] = {}
    for name, works in held.items():
        for one in works:
            on.setdefault(one, []).append(name)
    seen: set[str] = set()
    parts: list[list[str]] = []
    for first in held:
        if first in seen:
            continue
        seen.add(first)
        part = [first]
        for name in part:  # grows while it is walked
            for one in held[name]:
                fresh = [other for other in on[one] if other not in seen]
                seen.update(fresh)
                part += fresh
                on[one] = []
        parts.append(part)
    return parts


def _kinds(part: Sequence[str], held: Held) -> dict[frozenset[str], list[str]]:
    """Nodes with the same Workloads are one kind."""
    kinds: dict[frozenset[str], list[str]] = {}
    for name in part:
        kinds.setdefault(held[name], []).append(name)
    return kinds


def _exact(kinds: Mapping[frozenset[str], list[str]], cost: Mapping[str, float]) -> list[Offer]:
    """The price list of a part: for every number of nodes the cheapest offer, by all subsets."""
    if len(kinds) == 1:
        ((kind, only),) = kinds.items()
        return [Offer(math.fsum(cost[one] for one in kind), tuple(only))]
    works = sorted(set().union(*kinds))
    bit = {one: 1 << k for k, one in enumerate(works)}
    masks = [(sum(bit[one] for one in kind), names) for kind, names in kinds.items()]
    ended: Iterable[int] = range(1, 1 << len(works))
    if len(works) > len(masks):
        ended = sorted({_union([mask for mask, _ in masks], some) for some in range(1, 1 << len(masks))})
    offers: list[tuple[float, int, int]] = []
    for subset in ended:
        freed = sum(len(names) for mask, names in masks if mask & ~subset == 0)
        if freed:
            offers.append((math.fsum(cost[one] for one in works if bit[one] & subset), -freed, subset))
    found: list[Offer] = []
    most = 0
    for price, minus_freed, subset in sorted(offers):
        if -minus_freed > most:
            most = -minus_freed
            names = tuple(name for mask, some in masks if mask & ~subset == 0 for name in some)
            found.append(Offer(price, names))
    return found


def _union(masks: Sequence[int], some: int) -> int:
    union = 0
    for k, mask in enumerate(masks):
        if some >> k & 1:
            union |= mask
    return union


def _joined(count: int, singles: Sequence[Offer], lists: Sequence[Sequence[Offer]]) -> list[str]:
    """One offer at most of each list, and the cheapest single nodes for the rest: the least cost for ``count``."""
    least = np.full(count + 1, np.inf)  # [n]: of the lists so far, for at least n nodes
    least[0] = 0.0
    taken: list[np.ndarray] = []
    for offers in lists:
        now, choice = least.copy(), np.full(count + 1, -1, dtype=np.int32)
        for number, offer in enumerate(offers):
            size = min(len(offer.names), count)
            price = np.concatenate([np.full(size, least[0]), least[: count + 1 - size]]) + offer.cost
            better = price < now
            now[better], choice[better] = price[better], number
        least = now
        taken.append(choice)
    prefix = np.full(count + 1, np.inf)
    prices = [0.0, *np.cumsum([offer.cost for offer in singles[:count]])]
    prefix[: len(prices)] = prices
    needed = int(np.argmin(least + prefix[::-1]))
    names = [offer.names[0] for offer in singles[: count - needed]]
    for offers, choice in zip(reversed(lists), reversed(taken), strict=True):
        if choice[needed] >= 0:
            some = offers[choice[needed]].names[:needed]
            names += some
            needed -= len(some)
    return names


def _greedy(part: Sequence[str], held: Held, cost: Mapping[str, float], count: int) -> list[Offer]:
    """Offers of a large part: what a greedy cover has taken after each step, by whole Workloads and node by node."""
    ways = (True, False) if count * len(part) <= TWO_WAYS else (True,)
    steps = [offer for whole in ways for offer in _cover(part, held, cost, count, whole)]
    found: list[Offer] = []
    for offer in sorted(steps, key=lambda one: (one.cost, -len(one.names))):
        if not found or len(offer.names) > len(found[-1].names):
            found.append(offer)
    return found


def _cover(part: Sequence[str], held: Held, cost: Mapping[str, float], count: int, whole: bool) -> list[Offer]:
    """Take groups of nodes at the least price each; where a Workload ends, its neighbours' prices change.

    A heap of prices, and the prices of the groups in which an ended Workload stands worked out anew.
    """
    groups = _groups(part, held) if whole else [[name] for name in part]
    concerned: dict[str, set[int]] = {}
    for number, names in enumerate(groups):
        for one in set().union(*(held[name] for name in names)):
            concerned.setdefault(one, set()).add(number)
    chosen: dict[str, None] = {}
    ended: set[str] = set()
    lost = 0.0
    offers: list[Offer] = []

    def price(group: int) -> tuple[float, list[str]]:
        fresh = [name for name in groups[group] if name not in chosen]
        if not fresh:
            return math.inf, fresh
        works = set().union(*(held[name] for name in fresh)) - ended
        return math.fsum(cost[one] for one in works) / min(len(fresh), count - len(chosen)), fresh

    current = [price(group)[0] for group in range(len(groups))]
    heap = [(cheap, group) for group, cheap in enumerate(current)]
    heapq.heapify(heap)
    while heap and len(chosen) < count:
        each, group = heapq.heappop(heap)
        if each != current[group] or math.isinf(each):
            continue
        now, fresh = price(group)
        if now > each:  # less is needed by now than the group frees
            current[group] = now
            heapq.heappush(heap, (now, group))
            continue
        works = set().union(*(held[name] for name in fresh)) - ended
        lost += math.fsum(cost[one] for one in works)
        chosen.update(dict.fromkeys(fresh))
        ended |= works
        offers.append(Offer(lost, tuple(chosen)))
        if len(chosen) >= count:
            break
        for other in {number for one in works for number in concerned[one]} | {group}:
            current[other] = price(other)[0]
            heapq.heappush(heap, (current[other], other))
    return offers


def _groups(part: Sequence[str], held: Held) -> list[list[str]]:
    """The nodes of each Workload, and each node for itself."""
    by_work: dict[str, list[str]] = {}
    for name in part:
        for one in held[name]:
            by_work.setdefault(one, []).append(name)
    return [*by_work.values(), *([name] for name in part)]
