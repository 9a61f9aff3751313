"""How like two embeddings are, and the endpoint that makes them of texts."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ebbtide.adapters.documents.target_models import SimilaritySpec
from ebbtide.adapters.load.items import Item

BATCH = 64
TIMEOUT_S = 30.0


class Embedder:
    """Compares answers with what was expected: as vectors that they are, or through an endpoint that makes them."""

    name = "similarity"

    def __init__(self, spec: SimilaritySpec) -> None:
        self._spec = spec
        self._known: dict[str, list[float]] = {}
        self.example = ""

    def marks(self, items: Sequence[Item], texts: Sequence[str]) -> NDArray[np.int8]:
        """One mark an answer; broken where the endpoint gave no embedding."""
        marks = np.full(len(texts), 2, dtype=np.int8)
        for start in range(0, len(texts), BATCH):
            part = slice(start, start + BATCH)
            try:
                pairs = self._vectors(items[part], texts[part])
            except (OSError, ValueError, KeyError, TypeError) as problem:
                self.example = f"the embeddings endpoint: {problem}"
                continue
            marks[part] = [0 if cosine(one, other) >= self._spec.at_least else 1 for one, other in pairs]
        return marks

    def close(self) -> None:
        """Nothing runs."""

    def _vectors(self, items: Sequence[Item], texts: Sequence[str]) -> list[tuple[list[float], list[float]]]:
        if self._spec.url is None:
            return [(json.loads(text), item.expected) for item, text in zip(items, texts, strict=True)]
        wanted = [item.expected if isinstance(item.expected, list) else str(item.expected) for item in items]
        self._learn([one for one in [*texts, *wanted] if isinstance(one, str)])
        found = [one if isinstance(one, list) else self._known[one] for one in wanted]
        return list(zip([self._known[text] for text in texts], found, strict=True))

    def _learn(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if not new:
            return
        asked = {"input": new} | ({"model": self._spec.model} if self._spec.model else {})
        request = urllib.request.Request(
            str(self._spec.url), data=json.dumps(asked).encode(), headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            data = json.loads(response.read())["data"]
        for text, one in zip(new, data, strict=True):
            self._known[text] = [float(value) for value in one["embedding"]]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine between two vectors; 0 where one of them is 0 or their lengths differ.

    >>> round(cosine([1.0, 1.0], [2.0, 2.0]), 6), cosine([1.0], [0.0])
    (1.0, 0.0)
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape:
        return 0.0
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0.0 else 0.0
