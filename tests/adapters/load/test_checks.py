"""Checks: what is right, what is wrong, and what is the checker's own fault."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ebbtide.adapters.documents.target import read_target
from ebbtide.adapters.load.checks import BROKEN, RIGHT, UNCHECKED, WRONG, quality_of
from ebbtide.adapters.load.items import Item
from ebbtide.errors import InputError

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {{name: service}}
spec:
  endpoint: {{url: "http://127.0.0.1:1/v1/x", api: {api}}}
  requests: {{prompts: prompts.jsonl}}
  targets: [{{latency: 1s}}]
  quality: {quality}
"""


def marks(folder: Path, quality: str, pairs: list[tuple[str, object]], *, api: str = "http") -> list[int]:
    (folder / "target.yaml").write_text(TARGET.format(quality=quality, api=api))
    items = [Item(body=b"", expected=expected, request={"n": 1}) for _, expected in pairs]
    found = quality_of(read_target(folder / "target.yaml"), items)
    assert found is not None
    try:
        return found.check.marks(items, [text for text, _ in pairs]).tolist()
    finally:
        found.check.close()


def test_exact_and_regex_and_numbers(tmp_path: Path) -> None:
    assert marks(tmp_path, "{exact: true}", [(" yes\n", "yes"), ("no", "yes")]) == [RIGHT, WRONG]
    assert marks(tmp_path, '{regex: "^a+$"}', [("aaa", None), ("ab", None)]) == [RIGHT, WRONG]
    assert marks(tmp_path, '{regex: "is {expected}"}', [("it is 1.5", "1.5"), ("it is 115", "1.5")]) == [RIGHT, WRONG]
    numbers: list[tuple[str, object]] = [("about 1,010", 1000), ("1011", 1000), ("none", 1000)]
    assert marks(tmp_path, "{numeric: {relative: 0.01}}", numbers) == [RIGHT, WRONG, WRONG]


def test_a_json_schema(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    (tmp_path / "city.json").write_text(json.dumps(schema))
    answers: list[tuple[str, object]] = [('{"city": "Bremen"}', None), ('{"city": 1}', None), ("Bremen", None)]
    assert marks(tmp_path, "{jsonSchema: {file: city.json}}", answers) == [RIGHT, WRONG, WRONG]


def test_embeddings_are_compared_as_they_are(tmp_path: Path) -> None:
    pairs: list[tuple[str, object]] = [("[1.0, 0.1]", [1.0, 0.0]), ("[0.0, 1.0]", [1.0, 0.0])]
    assert marks(tmp_path, "{similarity: {atLeast: 0.9}}", pairs, api="embeddings") == [RIGHT, WRONG]


def test_texts_are_compared_through_an_endpoint(tmp_path: Path, model: str) -> None:
    quality = f'{{similarity: {{atLeast: 0.95, url: "{model}/v1/embeddings"}}}}'
    pairs: list[tuple[str, object]] = [("the tide turns", "the tides turn"), ("quay", "lamp")]
    assert marks(tmp_path, quality, pairs) == [RIGHT, WRONG]
    nobody = quality.replace(model, "http://127.0.0.1:9")
    assert marks(tmp_path, nobody, pairs) == [BROKEN, BROKEN]


CHECKER = """\
import os, time

def check(request, answer, expected):
    print("what a checker prints is no verdict")
    if answer == "crash":
        raise RuntimeError("on purpose")
    if answer == "die":
        os._exit(3)
    if answer == "hang":
        time.sleep(3600)
    return answer == expected and request == {"n": 1}
"""


def test_a_checker_s_own_faults_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHECKER)
    pairs: list[tuple[str, object]] = [(one, "yes") for one in ("yes", "crash", "no", "die", "yes", "hang", "no")]
    found = marks(tmp_path, '{checker: {python: "mine:check", timeout: 8s}}', pairs)
    assert found == [RIGHT, BROKEN, WRONG, BROKEN, RIGHT, BROKEN, WRONG]


def test_a_checker_that_can_t_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No module named 'nowhere'"):
        marks(tmp_path, '{checker: {python: "nowhere:check"}}', [("yes", "yes")])


def test_a_command_as_checker(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import json, sys, time\n"
        "asked = json.load(sys.stdin)\n"
        "if asked['answer'] == 'hang': time.sleep(3600)\n"
        "sys.exit({'yes': 0, 'no': 1}.get(asked['answer'], 7))\n"
    )
    quality = json.dumps({"checker": {"command": [sys.executable, "mine.py"], "timeout": "8s"}})
    pairs: list[tuple[str, object]] = [(one, None) for one in ("yes", "no", "other", "hang")]
    assert marks(tmp_path, quality, pairs) == [RIGHT, WRONG, BROKEN, BROKEN]
    with pytest.raises(InputError, match="can't be run: No such file"):
        marks(tmp_path, '{checker: {command: ["./not-there"]}}', pairs)


def test_sampling_spreads_and_leaves_the_rest_unchecked(tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text(TARGET.format(quality="{exact: true, sample: 0.25}", api="http"))
    items = [Item(body=b"", expected="yes")]
    quality = quality_of(read_target(tmp_path / "target.yaml"), items)
    assert quality is not None
    found = quality.checked(items, [0] * 12, ["yes"] * 8 + [None] * 4)
    assert found.marks.tolist() == [-1, -1, -1, 0, -1, -1, -1, 0, -1, -1, -1, -1]
    assert found.tried == 2
    assert UNCHECKED == -1


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 of 2 requests have no expected answer"):
        marks(tmp_path, "{exact: true}", [("yes", "yes"), ("no", None)])
