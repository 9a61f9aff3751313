"""The CRDs: generated, structural, and of one mind with the reader about what a document is.

``faults`` is what apiextensions v1 asks of a schema, ``refusals`` how it holds a value against one: written anew here,
so that the suite without a control plane shows both.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ebbtide.adapters.documents.crd_rules import RULES
from ebbtide.adapters.documents.crds import COLUMNS, crd, crd_files, crd_text, openapi_schema
from ebbtide.adapters.documents.memory_document import memory_plain
from ebbtide.adapters.documents.model import DocumentModel, models_in
from ebbtide.adapters.documents.schedule import schedule_of_object
from ebbtide.adapters.documents.schedule_plain import explanation_plain, reasons_plain, schedule_plain
from ebbtide.adapters.documents.schema import FORMS
from ebbtide.adapters.documents.yaml_text import parse
from ebbtide.control.memory import Direction, Memory, Move, Stage
from ebbtide.errors import InputError
from ebbtide.fleet.operations import Override, OverrideKind, Pause
from ebbtide.fleet.schedule import Explanation, Schedule

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "day-and-night" / "fleet.yaml"
WORDS = "type description properties required items additionalProperties enum pattern format nullable"
BOUNDS = "minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems maxProperties"
ALLOWED = frozenset(f"{WORDS} {BOUNDS}".split())
BOUNDED = {"enum", "maxLength", "format"}
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def faults(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Everything for which apiextensions v1 refuses a schema or calls it not structural, and what lacks a bound."""
    foreign = {key for key in schema if key not in ALLOWED and not key.startswith("x-kubernetes-")}
    if foreign:
        yield f"{path}: {sorted(foreign)}"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    kind = schema.get("type")
    if kind not in KINDS:
        yield f"{path}: type {kind}"
    if kind == "array":
        yield from _list_faults(schema, path)
    elif kind == "object":
        yield from _object_faults(schema, path)
    elif kind == "string" and not BOUNDED & set(schema) and path not in (".apiVersion", ".kind"):
        yield f"{path}: text of any length"


def _object_faults(schema: dict[str, Any], path: str) -> Iterator[str]:
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties beside additionalProperties"
    for name in schema.get("required", ()):
        if name not in schema["properties"]:
            yield f"{path}: requires {name}, which is no field"
    for name, field in schema.get("properties", {}).items():
        yield from faults(field, f"{path}.{name}")
    if "additionalProperties" in schema:
        if "maxProperties" not in schema:
            yield f"{path}: map of any size"
        yield from faults(schema["additionalProperties"], f"{path}.*")


def _list_faults(schema: dict[str, Any], path: str) -> Iterator[str]:
    if "maxItems" not in schema:
        yield f"{path}: list of any length"
    items = schema["items"]
    if schema.get("x-kubernetes-list-type") == "map":
        for key in schema["x-kubernetes-list-map-keys"]:
            if key not in items["required"] or items["properties"][key]["type"] != "string":
                yield f"{path}: merged by {key}, which may be left out"
    elif schema.get("x-kubernetes-list-type") != "atomic":
        yield f"{path}: no list type"
    yield from faults(items, f"{path}[]")


def refusals(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where a value does not follow a structural schema, unknown fields included."""
    if (value is None and schema.get("nullable")) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    kind = schema["type"]
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{path}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str):
        yield from _text(value, schema, path)
    elif isinstance(value, dict):
        yield from _map(value, schema, path)
    elif isinstance(value, list):
        yield from _items(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number(value, schema, path)


def _items(value: list[Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
        yield f"{path}: {len(value)} items"
    for index, item in enumerate(value):
        yield from refusals(item, schema["items"], f"{path}[{index}]")


def _text(value: str, schema: dict[str, Any], path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: {len(value)} characters"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} has not the form {schema['pattern']}"
    if schema.get("format") == "date-time":
        try:
            assert datetime.fromisoformat(value).tzinfo is not None
        except (ValueError, AssertionError):
            yield f"{path}: {value!r} is no instant"


def _map(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: lacks {name}"
    fields, rest = schema.get("properties", {}), schema.get("additionalProperties")
    for name, item in value.items():
        if name in fields:
            yield from refusals(item, fields[name], f"{path}.{name}")
        elif rest is not None:
            yield from refusals(item, rest, f"{path}.{name}")
        elif path != ".metadata":
            yield f"{path}: unknown field {name}"


def _number(value: float, schema: dict[str, Any], path: str) -> Iterator[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        yield f"{path}: {value} is below {low}"
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        yield f"{path}: {value} is above {high}"


@pytest.mark.parametrize("output", crd_files(ROOT / "deploy" / "crds"), ids=lambda output: output.path.name)
def test_committed_crds_are_up_to_date(output: Any) -> None:
    assert output.path.read_bytes() == output.content, "run python -m ebbtide.adapters.documents.crds deploy/crds"


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_yaml_says_what_was_generated(kind: str) -> None:
    for version in ((1, 1), (1, 2)):  # kubectl reads the older one
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        assert yaml.load(crd_text(kind)) == crd(kind)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_schema_is_structural_and_bounded(kind: str) -> None:
    schema = openapi_schema(kind)
    assert list(faults(schema)) == []
    assert "'default'" not in str(schema)
    assert "$ref" not in str(schema)


def opened(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where a schema takes any value."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield path
    for name, field in schema.get("properties", {}).items():
        yield from opened(field, f"{path}.{name}")
    if "items" in schema:
        yield from opened(schema["items"], f"{path}[]")


def test_only_figures_of_the_explanation_are_open() -> None:
    # A number or the word "unstable" is no structural type; everything that is obeyed has one.
    assert list(opened(openapi_schema("Fleet"))) == []
    places = list(opened(openapi_schema("Schedule")))
    assert places
    assert all(place.startswith(".explanation.") for place in places)


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_rule_stands_in_the_schema_and_names_fields_that_there_are(kind: str) -> None:
    models = {model.__name__: model for form in FORMS.values() for model in models_in(form)}
    assert set(RULES) <= set(models)
    for name, rules in RULES.items():
        known = {info.alias for info in models[name].model_fields.values()}
        for rule in rules:
            assert set(re.findall(r"\bself\.([a-zA-Z]+)", rule["rule"])) <= known, (name, rule)
            assert "\n" not in rule["message"]


def standing(schema: Any) -> int:
    """How many rules stand in a schema."""
    if isinstance(schema, dict):
        return len(schema.get("x-kubernetes-validations", ())) + sum(standing(item) for item in schema.values())
    return sum(standing(item) for item in schema) if isinstance(schema, list) else 0


def test_no_rule_is_lost_on_the_way() -> None:
    found = sum(standing(openapi_schema(kind)) for kind in COLUMNS)
    # A target stands in the Fleet and in the explanation, a cluster twice.
    assert found == sum(map(len, RULES.values())) + len(RULES["TargetSpec"]) + len(RULES["ClusterSpec"])


def test_no_field_is_a_truth_value_to_yaml_1_1() -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    for form in FORMS.values():
        for model in models_in(form):
            for info in model.model_fields.values():
                assert yaml.load(f"{info.alias}: 1") == {info.alias: 1}


def test_named_things_merge_by_name_and_columns_do_not() -> None:
    fleet = openapi_schema("Fleet")["properties"]["spec"]["properties"]
    for name in ("demand", "pools", "workloads", "exceptions"):
        assert fleet[name]["x-kubernetes-list-map-keys"] == ["name"]
    assert (fleet["workloads"]["maxItems"], fleet["windows"]["x-kubernetes-list-type"]) == (2_000, "atomic")
    spec = openapi_schema("Schedule")["properties"]["spec"]["properties"]
    for name in ("windows", "workloads", "pools"):
        assert spec[name]["x-kubernetes-list-type"] == "atomic"
    assert spec["overrides"]["x-kubernetes-list-map-keys"] == ["name"]  # people write them beside each other
    assert spec["windows"]["maxItems"] == 336
    status = openapi_schema("Schedule")["properties"]["status"]["properties"]
    assert status["memory"]["x-kubernetes-map-type"] == "atomic"
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def path_holds(schema: dict[str, Any], path: str) -> bool:
    """Whether a column's path leads to a field of the schema."""
    for name in path.removeprefix(".").split("."):
        schema = schema.get("properties", {}).get(name)
        if schema is None:
            return False
    return schema["type"] != "object"


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_show_fields_that_there_are(kind: str) -> None:
    schema = openapi_schema(kind)
    for column in COLUMNS[kind]:
        assert column.path == ".metadata.creationTimestamp" or path_holds(schema, column.path), column
    assert crd(kind)["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_a_fleet_follows_the_schema(full_fleet: str) -> None:
    schema = openapi_schema("Fleet")
    for text in (full_fleet, EXAMPLE.read_text("utf-8")):
        assert list(refusals(parse(text).data, schema)) == []


MEMORY = Memory(
    moves=(
        Move(
            id="m-1",
            pool="h100",
            direction=Direction.RECLAIM,
            node="node-17",
            stage=Stage.JOINING,
            begun_s=1.8e9,
            since_s=1.8e9 + 0.25,
            due_s=1.8e9,
        ),
    ),
    next_move=2,
)
CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-09-15T08:00:00Z", "reason": "Ok"}
STATUS = {
    "observedGeneration": 3,
    "phase": "Reclaiming",
    "window": "all-0900",
    "nextChange": "2026-09-15T13:00:00+08:00",
    "shortage": "agents 2 replicas",
    "motion": [{"pool": "h100", "direction": "reclaim", "there": 8, "wanted": 14, "moving": 6}],
    "shortages": [{"workload": "agents", "missingReplicas": 2, "missingGpus": 4}],
    "conditions": [CONDITION],
    "memory": memory_plain(MEMORY),
}
OVERRIDES = [
    {"name": "a", "until": "2026-09-16T00:00:00+08:00", "reason": "launch", "hold": {}},
    {"name": "b", "until": "2026-09-16T00:00:00Z", "reason": "test", "window": "all-0900"},
    {"name": "c", "until": "2026-09-16T00:00:00Z", "reason": "by hand", "release": "chat"},
]


@pytest.fixture
def served(schedule: Schedule, explanation: Explanation) -> dict[str, Any]:
    """A Schedule as an API server gives it, with all that people and the controller write."""
    plain = schedule_plain(schedule)
    plain["spec"] |= {"overrides": copy.deepcopy(OVERRIDES), "pause": {"reason": "maintenance"}}
    plain["explanation"] = {**explanation_plain(explanation), "workloads": reasons_plain(explanation)}
    plain["metadata"] |= {"namespace": "ebbtide", "resourceVersion": "12", "uid": "7c"}
    return plain | {"status": copy.deepcopy(STATUS)}


def test_a_schedule_follows_the_schema(served: dict[str, Any]) -> None:
    assert list(refusals(served, openapi_schema("Schedule"))) == []


def test_a_schedule_is_read_with_its_overrides_and_memory(served: dict[str, Any], schedule: Schedule) -> None:
    read, memory = schedule_of_object(served, version=12)
    assert read.windows == schedule.windows
    assert read.pause == Pause(reason="maintenance")
    until_s = 1_789_488_000.0
    assert read.overrides == (
        Override(name="a", kind=OverrideKind.HOLD, until_s=until_s, reason="launch"),
        Override(name="b", kind=OverrideKind.WINDOW, until_s=until_s + 28_800, reason="test", what="all-0900"),
        Override(name="c", kind=OverrideKind.RELEASE, until_s=until_s + 28_800, reason="by hand", what="chat"),
    )
    assert (memory.version, memory.moves) == (12, MEMORY.moves)
    del served["status"]
    assert schedule_of_object(served, version=13)[1] == Memory(version=13)


def _without(*path: Any) -> Callable[[Any], None]:
    def change(here: Any) -> None:
        for part in path[:-1]:
            here = here[part]
        del here[path[-1]]

    return change


def _with(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(here: Any) -> None:
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = value

    return change


BOTH_REFUSE = [
    _with("tomorrow", "spec", "validUntil"),
    _with("now", "spec", "overrides", 0, "until"),
    _without("spec", "overrides", 0, "reason"),
    _with("", "spec", "overrides", 0, "reason"),
    _with([1.5] * 6, "spec", "workloads", 0, "replicas"),
    _with("Sleeping", "status", "phase"),
    _with("resting", "status", "memory", "moves", 0, "stage"),
    _with("2026-09-15", "status", "memory", "moves", 0, "begun"),
    _with(3, "spec", "workloads", 0, "variant"),
    _with("sha256:4b", "spec", "fleet", "digest"),
    _with("Day", "spec", "windows", 0, "name"),
]
READER_ALONE = [  # and CEL, where there is a server
    _with("all-9999", "spec", "overrides", 1, "window"),
    _with("chatt", "spec", "overrides", 2, "release"),
    _with({}, "spec", "overrides", 1, "hold"),
    _with([1], "spec", "workloads", 0, "replicas"),
]


@pytest.mark.parametrize("change", [*BOTH_REFUSE, *READER_ALONE])
def test_reader_and_schema_refuse_the_same(served: dict[str, Any], change: Callable[[Any], None]) -> None:
    change(served)
    with pytest.raises(InputError):
        schedule_of_object(served)
    refused = list(refusals(served, openapi_schema("Schedule")))
    assert bool(refused) == (change in BOTH_REFUSE), refused


def test_what_the_schema_leaves_out_is_seen(full_fleet: str) -> None:
    data = parse(full_fleet).data
    data["spec"]["pools"][0]["reservedNode"] = 1
    data["spec"]["confidence"] = 1
    found = sorted(refusals(data, openapi_schema("Fleet")))
    assert found == [".spec.confidence: 1 is above 1", ".spec.pools[0]: unknown field reservedNode"]


def required_of(model: type[DocumentModel]) -> set[str]:
    return {str(info.alias) for info in model.model_fields.values() if info.is_required()}


def test_the_schema_asks_for_what_the_reader_asks_for() -> None:
    spec = openapi_schema("Fleet")["properties"]["spec"]
    models = {model.__name__: model for model in models_in(FORMS["Fleet"])}
    assert set(spec["required"]) == required_of(models["FleetSpec"])
    assert set(spec["properties"]["workloads"]["items"]["required"]) == required_of(models["WorkloadSpec"])
