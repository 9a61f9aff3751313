"""Text as YAML 1.2 has it; columns cut out and put back; damaged texts give a result or a refusal, never a crash."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbtide.adapters.documents.columns import Columns
from ebbtide.adapters.documents.emit import block, scalar
from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import read_schedule, write_schedule
from ebbtide.adapters.documents.yaml_text import YamlRefusedError, parse, resolve
from ebbtide.errors import InputError
from ebbtide.fleet.schedule import Explanation, Schedule

COLUMN = "[1, 2.5, 95s, null, unstable, 1h30m, 0, 12, 37]"
VALUES = [1, 2.5, "95s", None, "unstable", "1h30m", 0, 12, 37]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-7", -7),
        ("+3", 3),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-1.5E-2", -0.015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("9" * 5000, math.inf),
        ("null", None),
        ("~", None),
        ("true", True),
        ("FALSE", False),
        # text to YAML 1.2, other things to 1.1
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("10:00", "10:00"),
        ("1_000", "1_000"),
        ("2026-10-01", "2026-10-01"),
        ("<<", "<<"),
        ("1.2.3", "1.2.3"),
        ("٣", "٣"),
    ],
)
def test_the_core_schema(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_nan() -> None:
    assert math.isnan(resolve(".nan"))


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (f"a: {COLUMN}\n", {"a": VALUES}),
        (f"a: {COLUMN} # {COLUMN}\n", {"a": VALUES}),
        (f"- {COLUMN}\n- {{b: {COLUMN}, c: 1}}\n", [VALUES, {"b": VALUES, "c": 1}]),
        (f'a: "{COLUMN}"\n', {"a": COLUMN}),
        (f"a: '{COLUMN}'\n", {"a": COLUMN}),
        (f"a: see {COLUMN} there\n", {"a": f"see {COLUMN} there"}),
        (f"a: |\n  {COLUMN}\n", {"a": f"{COLUMN}\n"}),
        (f'"{COLUMN}": 1\n', {COLUMN: 1}),
        (f"\ue0eb0\ue0ec: {COLUMN}\n", {"\ue0eb0\ue0ec": VALUES}),
    ],
)
def test_columns_are_read_as_they_stand(text: str, data: object) -> None:
    assert parse(text).data == data


def test_lines_are_the_same_with_columns() -> None:
    tree = parse(f"a: {COLUMN}\nb:\n  c: 1\n  d: [x,\n    y]\n")
    assert (tree.lines[("a",)], tree.lines[("b", "c")], tree.lines[("b", "d", 1)]) == (1, 3, 5)
    assert tree.line_of(("b", "zzz")) == 2


def test_a_column_is_cut() -> None:
    assert len(Columns.cut(f"a: {COLUMN}").cuts) == 1
    assert Columns.cut("a: [1, 2, 3]").cuts == ()


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)
    | st.text(st.characters(blacklist_categories=["Cs"]), max_size=12)
    | st.sampled_from(["no", "0o1", "1e3", "09:00", "a: b", "- x", "95s", "#", "{", "'", '"', "unstable", "1h30m"]),
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(st.from_regex("[a-z][a-zA-Z]{0,5}", fullmatch=True), inner, max_size=4)
    ),
    max_leaves=20,
)


def rounded(value: object) -> object:
    """Values as the emitter writes them: 15 decimals, whole numbers without a point."""
    if isinstance(value, float) and not isinstance(value, bool):
        return pytest.approx(value, rel=1e-12, abs=1e-14)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(
    st.dictionaries(st.from_regex("[a-z][a-zA-Z]{0,5}", fullmatch=True), PLAIN, min_size=1, max_size=4), st.booleans()
)
@settings(max_examples=80)
def test_what_is_emitted_is_parsed_back(value: dict[str, object], tight: bool) -> None:
    # A list that mixes maps with other things is in no document, and the emitter takes lists of maps as such.
    text = block(value, open_keys=frozenset(), tight=tight) if not mixed(value) else "{}\n"
    if text != "{}\n":
        assert parse(text).data == rounded(value)


def mixed(value: object) -> bool:
    if isinstance(value, list):
        maps = [isinstance(item, dict) for item in value]
        return (any(maps) and not all(maps)) or {} in value or any(mixed(item) for item in value)
    return isinstance(value, dict) and any(mixed(item) for item in value.values())


@given(st.text(max_size=30))
@settings(max_examples=200)
def test_any_text_survives_quoting(text: str) -> None:
    legal = text.encode("utf-8", "replace").decode()
    assert parse(f"a: {scalar(legal)}\n").data == {"a": legal}


FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: two-models}
spec:
  timeZone: America/New_York
  windows:
  - days: [Mon, Tue, Wed, Thu, Fri]
    starts: ["00:00", "19:00"]
  - {days: [Sat, Sun], choose: {atMost: 3}}
  demand: [{name: log, file: requests.csv.gz, columns: {time: ts}}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 6}]
  workloads:
  - &w {name: chat, gpusPerReplica: 1, service: {time: 6s, concurrency: 64}, targets: [{wait: 2s}]}
  exceptions: [{name: launch, from: "2026-11-01", until: "2026-11-03", workloads: [chat], demandFactor: 1.8}]
"""
PIECES = [
    b"*w",
    b"&a ",
    b"!!int ",
    b"\x00",
    b"\xff",
    b"[",
    b"{",
    b"]",
    b"}",
    b": ",
    b"- ",
    b"\n",
    b'"',
    b"'",
    b".nan",
    b"|",
]


def mutated(content: bytes, draw: random.Random) -> bytes:
    """A few random edits: bytes changed, left out, doubled, or pieces of YAML put in."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(data))
        how = draw.randrange(4)
        if how == 0:
            data[at] = draw.randrange(32, 127) if draw.random() < 0.9 else draw.randrange(256)
        elif how == 1:
            del data[at : at + draw.randint(1, 8)]
        elif how == 2:
            data[at:at] = data[at : at + draw.randint(1, 40)]
        else:
            data[at:at] = draw.choice(PIECES)
    return bytes(data)


def refusal(read: Callable[[], object]) -> InputError | None:
    """How a reader refused, None where it read; anything else that it raises is a bug."""
    try:
        read()
    except InputError as refused:
        return refused
    return None


@given(st.integers(0, 2**32))
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_fleet_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(mutated(FLEET.encode(), random.Random(seed)))
    refused = refusal(lambda: read_fleet(path))
    assert refused is None or (refused.kind and str(refused) and "\n" not in refused.message)


@given(st.integers(0, 2**32))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_schedule_is_read_or_refused(
    tmp_path: Path, schedule: Schedule, explanation: Explanation, seed: int
) -> None:
    path = tmp_path / "schedule.yaml"
    if not path.exists():
        write_schedule(path, schedule, explanation)
        (tmp_path / "whole").write_bytes(path.read_bytes())
    path.write_bytes(mutated((tmp_path / "whole").read_bytes(), random.Random(seed)))
    refused = refusal(lambda: read_schedule(path))
    assert refused is None or str(refused)


@given(st.binary(max_size=300))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_junk_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "fleet.yaml").write_bytes(content)
    with pytest.raises(InputError):
        read_fleet(tmp_path / "fleet.yaml")


def test_a_huge_line_of_junk_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_bytes(b"kind: Fleet\nx: " + b"a" * 300_000 + b": [\n")
    with pytest.raises(InputError):
        read_fleet(tmp_path / "fleet.yaml")


def test_the_refusal_itself() -> None:
    with pytest.raises(YamlRefusedError) as caught:
        parse("a: 1\nb: [1\n")
    assert (caught.value.kind, caught.value.line) == ("not_yaml", 3)
