"""JSON Schema of a document, generated from its models: for editors, and the ground of the CRDs."""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo

from ebbtide.adapters.documents.claim_models import ClaimForm
from ebbtide.adapters.documents.fleet_models import FleetForm
from ebbtide.adapters.documents.jobs_models import BatchJobsForm
from ebbtide.adapters.documents.model import Document, default_plain, models_in
from ebbtide.adapters.documents.plan_models import BatchPlanForm
from ebbtide.adapters.documents.problems import nearest
from ebbtide.adapters.documents.schedule_models import ScheduleForm
from ebbtide.adapters.documents.target_models import TargetForm
from ebbtide.errors import InputError

FORMS: dict[str, type[Document]] = {
    "Fleet": FleetForm,
    "Schedule": ScheduleForm,
    "BatchJobs": BatchJobsForm,
    "BatchPlan": BatchPlanForm,
    "Target": TargetForm,
    "CapacityClaim": ClaimForm,
}


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a kind of document. ``x-unit`` and ``x-default`` are units and completed
    defaults in words. The kind may be in any case of letters; ``InputError`` (``unknown_kind``) where there is none.

    >>> json_schema("Fleet")["required"]
    ['apiVersion', 'metadata', 'kind', 'spec']
    """
    kind = next((known for known in FORMS if known.lower() == kind.lower()), kind)
    form = FORMS.get(kind)
    if form is None:
        near = nearest(kind, FORMS)
        raise InputError(
            f'no document has the kind "{kind}"',
            kind="unknown_kind",
            nearest=near,
            hint=None if near else f"there are {', '.join(FORMS)}",
        )
    schema = form.model_json_schema(by_alias=True)
    for model in models_in(form):
        described = schema if model is form else schema["$defs"][model.__name__]
        for name, info in model.model_fields.items():
            _write_default(described["properties"][info.alias or name], info)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://ebbtide.dev/schema/v1alpha1/{kind.lower()}.schema.json",
        **_without_titles(schema),
    }


def _write_default(described: dict[str, Any], info: FieldInfo) -> None:
    """The default as a document writes it; none where the reader completes it from elsewhere."""
    described["description"] = info.description  # pydantic leaves it out where the field's map says the same
    described.pop("default", None)
    plain = default_plain(info)
    if plain is not None and "x-default" not in described:
        described["default"] = plain


def _without_titles(value: Any) -> Any:
    """Drop pydantic's titles (a field's own name once more), except where ``title`` is a field."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != "title" or not isinstance(item, str)}
        return {key: _without_titles(item) for key, item in kept.items()}
    return [_without_titles(item) for item in value] if isinstance(value, list) else value
