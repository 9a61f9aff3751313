"""Schema and reference pages are the models': what is committed equals what is generated, and what they say holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.adapters.documents.model import models_in
from ebbtide.adapters.documents.not_yet import NOT_YET
from ebbtide.adapters.documents.reference import reference_files
from ebbtide.adapters.documents.schema import FORMS, json_schema
from ebbtide.errors import InputError

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("output", reference_files(REFERENCE), ids=lambda output: output.path.name)
def test_committed_files_are_up_to_date(output: object) -> None:
    assert output.path.read_bytes() == output.content, (
        "run python -m ebbtide.adapters.documents.reference docs/reference"
    )


@pytest.mark.parametrize("kind", FORMS)
def test_every_field_says_what_it_means(kind: str) -> None:
    for model in models_in(FORMS[kind]):
        for name, info in model.model_fields.items():
            assert info.description, f"{model.__name__}.{name}"
            assert info.description.endswith((".", ")", "}.")), f"{model.__name__}.{name}: {info.description}"


def test_a_field_is_either_obeyed_or_not_yet() -> None:
    models = {model.__name__: model for form in FORMS.values() for model in models_in(form)}
    for name, fields in NOT_YET.items():
        known = {info.alias for info in models[name].model_fields.values()}
        assert not known & fields, name


def test_defaults_in_the_schema_are_as_documents_write_them() -> None:
    pool = json_schema("Fleet")["$defs"]["PoolSpec"]["properties"]
    assert (pool["yieldTime"]["default"], pool["movesAtOnce"]["default"]) == ("30m", 4)
    assert "default" not in json_schema("Fleet")["$defs"]["WorkloadSpec"]["properties"]["pool"]
    assert json_schema("Fleet")["$defs"]["PoolSpec"]["additionalProperties"] is False


def test_an_unknown_kind() -> None:
    with pytest.raises(InputError) as caught:
        json_schema("Flet")
    assert (caught.value.kind, caught.value.hint) == ("unknown_kind", "Fleet")
