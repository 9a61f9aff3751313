"""Requests from recorded prompts, templates and a trace's lengths; request logs; what is wrong with their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ebbtide.adapters.documents.target import read_target
from ebbtide.adapters.load.items import Item, item_of
from ebbtide.adapters.load.logs import arrival_gaps
from ebbtide.adapters.load.prompts import items_of
from ebbtide.errors import InputError

TARGET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Target
metadata: {{name: service}}
spec:
  endpoint: {{url: "http://127.0.0.1:1/v1/x", api: {api}, stream: {stream}}}
  requests: {requests}
  targets: [{{latency: 1s}}]
"""


def items(folder: Path, requests: str, *, api: str = "chat", stream: bool = False) -> tuple[Item, ...]:
    (folder / "target.yaml").write_text(TARGET.format(requests=requests, api=api, stream=str(stream).lower()))
    return items_of(read_target(folder / "target.yaml"), model="m")


def test_recorded_prompts(tmp_path: Path) -> None:
    lines = [
        '"bare"',
        json.dumps({"prompt": "one", "expected": "1", "max_tokens": 7}),
        json.dumps({"messages": [{"role": "system", "content": "s"}]}),
        json.dumps({"body": {"messages": [], "seed": 3}}),
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    found = items(tmp_path, "{prompts: p.jsonl, parameters: {temperature: 0}}", stream=True)
    bodies = [json.loads(one.body) for one in found]
    assert bodies[0]["messages"] == [{"role": "user", "content": "bare"}]
    assert bodies[1] == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "messages": [{"role": "user", "content": "one"}],
        "max_tokens": 7,
    }
    assert (found[1].expected, found[1].request) == ("1", {"prompt": "one", "max_tokens": 7})
    assert (bodies[3]["seed"], bodies[3]["model"]) == (3, "m")


def test_a_template_and_http_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text('{"word": "tide {x}", "expected": "Flut"}')
    (found,) = items(tmp_path, '{template: {text: "Translate {word}.", values: v.jsonl}}', api="completions")
    assert json.loads(found.body)["prompt"] == "Translate tide {x}."
    assert found.expected == "Flut"
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "pictures" / "p.jsonl").write_text('{"file": "a.png", "content_type": "image/png"}\n{"text": "raw"}')
    picture, raw = items(tmp_path, "{prompts: pictures/p.jsonl, contentType: text/plain}", api="http")
    assert (picture.body, picture.content_type) == (b"\x89PNG", "image/png")
    assert (raw.body, raw.content_type) == (b"raw", "text/plain")


def test_a_trace_s_own_lengths(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00,5,9\n2024-01-01,2,3\n"
    )
    found = items(tmp_path, "{lengths: {file: log.csv}}")
    bodies = [json.loads(one.body) for one in found]
    assert [len(body["messages"][0]["content"].split()) for body in bodies] == [5, 2]
    assert [body["max_tokens"] for body in bodies] == [9, 3]
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="has no column for input_tokens"):
        items(tmp_path, "{lengths: {file: log.csv}}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "is no JSON"),
        ("3", "is neither a map nor a text"),
        ('{"input": "x"}', "none of prompt or messages or body"),
        ('{"prompt": "x", "messages": []}', "has prompt and messages of"),
        ('{"body": 3}', "body is no map"),
    ],
)
def test_lines_that_are_wrong(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "p.jsonl").write_text(f'"good"\n{line}\n')
    with pytest.raises(InputError, match=said) as caught:
        items(tmp_path, "{prompts: p.jsonl}")
    assert (caught.value.place.line, caught.value.place.file) == (2, str(tmp_path / "p.jsonl"))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        items(tmp_path, "{prompts: none.jsonl}")
    (tmp_path / "p.jsonl").write_text('{"file": "none.png"}')
    with pytest.raises(InputError, match=r"none.png can't be read"):
        items(tmp_path, "{prompts: p.jsonl}", api="http")


def test_gaps_of_a_log(tmp_path: Path) -> None:
    times = np.cumsum(np.tile([1.0, 3.0], 60))
    (tmp_path / "log.csv").write_text("t_s\n" + "\n".join(str(one) for one in times))
    assert sorted(set(arrival_gaps(tmp_path / "log.csv"))) == [1.0, 3.0]
    (tmp_path / "log.csv").write_text("t_s\n1\n2\n")
    with pytest.raises(InputError, match="holds 2 arrival times"):
        arrival_gaps(tmp_path / "log.csv")


def test_every_item_is_sent_once_a_turn() -> None:
    turns = [[item_of(turn * 7 + place, 7, (1, 2)) for place in range(7)] for turn in range(3)]
    assert [sorted(turn) for turn in turns] == [list(range(7))] * 3
    assert turns[0] != turns[1] or turns[1] != turns[2]
