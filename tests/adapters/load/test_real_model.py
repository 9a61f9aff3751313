"""A real model on the CPU: digits that are read rightly or wrongly, over HTTP, and both gates shown to bind.

``uv run python -m benchmarks.real_model`` is the whole measurement.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ebbtide.adapters.documents.target_models import QualitySpec
from ebbtide.adapters.load.calls import Fault
from ebbtide.adapters.load.checks import Quality, Simple
from ebbtide.adapters.load.crew import Crew
from ebbtide.adapters.load.endpoint import Api, Endpoint
from ebbtide.adapters.load.gaps import Law
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.messages import Setup
from ebbtide.capacity.limits import Limit, LimitKind, judged
from ebbtide.workflows.measure_steps import answers_of
from loopback import running

EXAMPLE = Path(__file__).parents[3] / "examples" / "ocr"
REQUESTS = 60
EXACT = Quality(
    Simple("exact", lambda text, item: text == item.expected), QualitySpec(exact=True, required=0.9, pointer="/text")
)
GOOD = Limit(kind=LimitKind.QUALITY, bad_share=0.1)


@pytest.fixture(scope="module")
def example() -> Iterator[tuple[ModuleType, ModuleType]]:
    """The example's two modules."""
    sys.path.insert(0, str(EXAMPLE))
    import digits
    import serve

    yield digits, serve
    sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def reader(example: tuple[ModuleType, ModuleType]) -> Iterator[str]:
    """The model's address."""
    with running(example[1].Reader().app()) as address:
        yield f"{address}/read"


@pytest.mark.parametrize(("noise", "holds"), [(40.0, True), (160.0, False)])
def test_both_gates_bind(example: tuple[ModuleType, ModuleType], reader: str, noise: float, holds: bool) -> None:
    items = tuple(
        Item(body=image, content_type="image/png", expected=text)
        for text, image in example[0].pictures(REQUESTS, noise)
    )
    endpoint = Endpoint(url=reader, api=Api.HTTP, timeout_s=300.0)
    with Crew(Setup(endpoint=endpoint, items=items, law=Law(), keep_texts=True)) as crew:
        crew.begin(20.0, REQUESTS, (1, 1))
        sent = crew.decided()
    assert (sent.calls.fault == Fault.NONE).all()
    checked = EXACT.checked(items, sent.calls.item.tolist(), sent.texts)
    answers = answers_of(sent.calls, checked.marks)

    def bad_share(limit: Limit) -> float:
        return float(np.mean(judged(limit, answers)[1]))

    assert (bad_share(GOOD) <= GOOD.bad_share) == holds
    # No model reads a picture in a tenth of a millisecond, and none waits for ten minutes here.
    assert bad_share(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=1e-4)) == 1.0
    assert bad_share(Limit(kind=LimitKind.LATENCY, bad_share=0.05, bound_s=600.0)) == 0.0
