"""A document's JSON Schema → the structural schema of a CRD: what apiextensions v1 takes, and what it means the same.

What belongs here: the translation, one schema at a time. What doesn't: rules between fields (``crd_rules``), names and
columns (``crds``). No default is written: the reader completes, and says in the description what it completes.
"""

from __future__ import annotations

from typing import Any

LONGEST_TEXT = 1_024  # as the models' own bound on text that has no other
_KEPT = (
    "enum",
    "pattern",
    "format",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
)


def structural(schema: dict[str, Any], defs: dict[str, Any], rules: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    """The structural form of a schema; ``defs`` are the models it names, ``rules`` their CEL rules by model."""
    if "$ref" in schema:
        return _of_model(schema, schema["$ref"], defs, rules)
    if "anyOf" in schema:
        return _described(_of_several(schema["anyOf"], defs, rules), schema)
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    kind = schema.get("type") or _type_of(schema["enum"][0])
    found: dict[str, Any] = {"type": kind, **{key: schema[key] for key in _KEPT if key in schema}}
    if kind == "object":
        found |= _of_map(schema, defs, rules)
    elif kind == "array":
        found |= _of_list(schema, defs, rules)
    elif kind == "integer":
        found["format"] = "int64"
    elif kind == "string" and "enum" not in found:
        found.setdefault("maxLength", LONGEST_TEXT)
    _exclusive(schema, found)
    return _described(found, schema)


def _of_model(
    schema: dict[str, Any], reference: str, defs: dict[str, Any], rules: dict[str, list[dict[str, str]]]
) -> dict[str, Any]:
    name = reference.rsplit("/", 1)[-1]
    found = structural(defs[name], defs, rules)
    if name in rules:
        found["x-kubernetes-validations"] = rules[name]
    if name == "MemorySpec":  # one writer, who replaces it whole; field by field its ownership would outgrow it
        found["x-kubernetes-map-type"] = "atomic"
    return _described(found, schema)


def _of_several(
    options: list[dict[str, Any]], defs: dict[str, Any], rules: dict[str, list[dict[str, str]]]
) -> dict[str, Any]:
    """One of several: null, texts of two forms, or a number and a word."""
    nullable = {"type": "null"} in options
    # An option may be one of several itself: a wait is a duration or "unstable", and a refused one may be null.
    flat = [part for one in options for part in one.get("anyOf", [one]) if part != {"type": "null"}]
    nullable = nullable or any({"type": "null"} in one.get("anyOf", []) for one in options)
    if len(flat) == 1:
        found = structural(flat[0], defs, rules)
    elif all(_is_text(one) for one in flat):
        found = {"type": "string", "pattern": "|".join(_pattern(one) for one in flat)}
        found["maxLength"] = max(one.get("maxLength", LONGEST_TEXT) for one in flat)
    else:  # a number or a word: no structural type is both
        found = {"x-kubernetes-preserve-unknown-fields": True}
    return found | ({"nullable": True} if nullable else {})


def _is_text(one: dict[str, Any]) -> bool:
    return one.get("type") == "string" or isinstance(one.get("const"), str)


def _pattern(one: dict[str, Any]) -> str:
    return f"^{one['const']}$" if "const" in one else str(one["pattern"])


def _of_map(schema: dict[str, Any], defs: dict[str, Any], rules: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    if isinstance(schema.get("additionalProperties"), dict):
        values = structural(schema["additionalProperties"], defs, rules)
        return {
            "additionalProperties": values,
            "maxProperties": schema["maxProperties"],
            "x-kubernetes-map-type": "atomic",
        }
    fields = {name: structural(field, defs, rules) for name, field in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    for name, field in fields.items():
        if name not in required:  # left out is enough where nothing is meant; null has to be said where a value is due
            field.pop("nullable", None)
    return ({"properties": fields} if fields else {}) | ({"required": required} if required else {})


def _of_list(schema: dict[str, Any], defs: dict[str, Any], rules: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    found: dict[str, Any] = {"items": structural(schema["items"], defs, rules), "x-kubernetes-list-type": "atomic"}
    if "x-merge-by" in schema:
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [schema["x-merge-by"]]}
    return found


def _exclusive(schema: dict[str, Any], found: dict[str, Any]) -> None:
    """Open bounds as OpenAPI v3.0 writes them: a bound, and a mark that it is not reached."""
    for bound, mark in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if mark in schema:
            found |= {bound: schema[mark], mark: True}


def _type_of(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "string"


def _described(found: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """With the field's meaning, unit and default in words, as ``kubectl explain`` shows them."""
    said = [str(schema.get("description", found.get("description", ""))).split("\n", 1)[0]]
    if "x-unit" in schema:
        said.append(f"Unit: {schema['x-unit']}.")
    default = schema.get("x-default", _plain(schema["default"]) if "default" in schema else "")
    if default:
        said.append(f"Default: {default}.")
    text = " ".join(part for part in said if part)
    rest = {key: value for key, value in found.items() if key != "description"}
    return ({"description": text} if text else {}) | rest


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_plain(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
