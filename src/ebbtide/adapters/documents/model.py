"""What every document model shares: camelCase, no unknown fields, strict types, and one way to describe a field."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from ebbtide.adapters.documents.quantities import Label

API_VERSION = "ebbtide.dev/v1alpha1"
_REQUIRED: Any = ...
Annotation = Annotated[str, Field(max_length=262_144)]  # `kubectl apply` keeps the whole document in one


class DocumentModel(BaseModel):
    """Base of all document models. Numbers are finite; text is not taken for a number, nor ``true`` for 1."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, allow_inf_nan=False, str_max_length=1024
    )


def described(
    meaning: str,
    *,
    default: Any = _REQUIRED,
    unit: str = "",
    completed: str = "",
    merge_by: str = "",
    **constraints: Any,
) -> Any:
    """A field of the one table: its meaning, unit, default and bounds.

    ``completed`` says in words what the reader puts where the field is absent and no fixed value can stand
    ("the only pool"). ``merge_by``: the field by which a list's items are told apart when documents are merged; without
    one the list is taken whole.
    """
    said = (("x-unit", unit), ("x-default", completed), ("x-merge-by", merge_by))
    extra: dict[str, Any] = {key: value for key, value in said if value}
    return Field(default, description=meaning, json_schema_extra=extra or None, **constraints)


class Metadata(DocumentModel):
    """The object's name, and what Kubernetes keeps beside it."""

    name: Label = described("The object's name.")
    namespace: Label | None = described("Its namespace, in a cluster.", default=None, completed="the current one")
    labels: dict[str, str] = described("Kubernetes labels; no plan reads them.", default={}, max_length=64)
    annotations: dict[str, Annotation] = described(
        "Kubernetes annotations; no plan reads them.", default={}, max_length=64
    )


class Document(DocumentModel):
    """The envelope of every document."""

    api_version: Literal["ebbtide.dev/v1alpha1"] = described("The version of the form.")
    metadata: Metadata = described("Name and, in a cluster, namespace.")


def nested_model(annotation: Any) -> type[DocumentModel] | None:
    """The document model inside an annotation such as ``list[PoolSpec]`` or ``ChooseSpec | None``; None where none is.

    >>> nested_model(list[Metadata]) is Metadata, nested_model(int) is None
    (True, True)
    """
    if isinstance(annotation, type) and issubclass(annotation, DocumentModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := nested_model(part))), None)


def aliases(model: type[DocumentModel]) -> dict[str, str]:
    """The documents' names of a model's fields → the names in Python.

    >>> aliases(Metadata)["namespace"]
    'namespace'
    """
    return {info.alias or name: name for name, info in model.model_fields.items()}


def models_in(model: type[DocumentModel]) -> list[type[DocumentModel]]:
    """A model and all models inside it, each once, outer before inner.

    >>> [found.__name__ for found in models_in(Document)]
    ['Document', 'Metadata']
    """
    found = [model]
    for one in found:
        inner = [nested_model(info.annotation) for info in one.model_fields.values()]
        found += [part for part in dict.fromkeys(inner) if part is not None and part not in found]
    return found


def default_plain(info: FieldInfo) -> Any:
    """A field's default as a document writes it (``2h``, not 7,200); None where it has none or it is completed.

    >>> default_plain(Metadata.model_fields["name"]) is None
    True
    """
    if info.is_required() or info.default is None:
        return None
    annotated: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    return TypeAdapter[Any](annotated).dump_python(info.default, mode="json", by_alias=True, exclude_defaults=True)


def model_at(model: type[DocumentModel], path: tuple[str | int, ...]) -> type[DocumentModel] | None:
    """The model that holds the field at a path, walking from ``model``; None where the path leaves the models.

    >>> model_at(Document, ("metadata", "nmae")) is Metadata
    True
    """
    for part in path[:-1]:
        if isinstance(part, int):
            continue
        names = aliases(model)
        found = nested_model(model.model_fields[names[part]].annotation) if part in names else None
        if found is None:
            return None
        model = found
    return model
