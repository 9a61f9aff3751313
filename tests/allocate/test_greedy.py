"""The walk: what it takes lies on the nodes, is worth what it says, and leaves nothing that still fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.allocate.fit import pack
from ebbtide.allocate.greedy import walk
from ebbtide.allocate.hull import hull_steps
from ebbtide.allocate.packing import node_shape

NODE = 8


@st.composite
def pools(draw) -> tuple[list[int], list[list[float]], int]:
    widths = draw(st.lists(st.integers(1, 10), min_size=1, max_size=4))
    curves = [
        sorted(draw(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=7)), reverse=True) for _ in widths
    ]
    return widths, curves, draw(st.integers(0, 5))


@settings(max_examples=200)
@given(pools())
def test_a_walk_packs_and_adds_up(pool: tuple[list[int], list[list[float]], int]) -> None:
    widths, curves, nodes = pool
    shape = node_shape(NODE, widths)
    values = np.concatenate([np.array(one) for one in curves])
    start = np.cumsum([0, *[len(one) for one in curves[:-1]]])
    steps = hull_steps(values, start, np.array([len(one) for one in curves]), shape.width_units)
    walked = walk(
        steps,
        values=values,
        start=start,
        width=shape.width_units,
        free=np.zeros(shape.node_units + 1, dtype=np.int64),
        nodes=nodes,
        shared=shape.perfect,
    )
    before = np.zeros(len(widths), dtype=np.int64)
    for count in range(nodes + 1):
        more = walked.more(count, len(widths))
        assert (more >= before).all()
        assert pack(shape, more).nodes <= count
        saved = sum(one[0] - one[n] for one, n in zip(curves, more.tolist(), strict=True))
        assert walked.saved[count] == pytest.approx(saved)
        before = more
    if shape.perfect:
        room = nodes * shape.node_units - int(before @ shape.width_units)
        for w, one in enumerate(curves):
            n = int(before[w])
            better = n + 1 < len(one) and one[n + 1] < one[n]
            assert not (better and shape.width_units[w] <= room)
