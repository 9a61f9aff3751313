"""People's overrides and pause ↔ their document: the same fields as in a Schedule's spec, by themselves (§6.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, ValidationError

from ebbtide.adapters.documents.exact_times import instant_text
from ebbtide.adapters.documents.findings import validation_problems
from ebbtide.adapters.documents.model import DocumentModel, described
from ebbtide.adapters.documents.override_models import OverrideSpec, PauseSpec
from ebbtide.adapters.documents.problems import document_errors, raise_errors
from ebbtide.adapters.documents.schedule_values import override_value
from ebbtide.adapters.documents.yaml_text import Tree
from ebbtide.fleet.operations import Override, OverrideKind, Pause


class WishesSpec(DocumentModel):
    """What people ask for; the rest of a Schedule's spec is not looked at."""

    model_config = ConfigDict(extra="ignore")

    overrides: list[OverrideSpec] = described("Dated wishes.", default=[], completed="none", max_length=64)
    pause: PauseSpec | None = described("Somebody paused it.", default=None, completed="not paused")


def wishes_plain(overrides: Sequence[Override], pause: Pause | None) -> dict[str, Any]:
    """The document of what people ask for.

    Raises ``DocumentError`` where one of them could not be read back, as a name that is no label.
    """
    found: dict[str, Any] = {"overrides": [_override(one) for one in overrides]} if overrides else {}
    if pause is not None:
        found["pause"] = {"reason": pause.reason}
    wishes_value(found, file="override")
    return found


def wishes_value(plain: Mapping[str, Any], *, file: str) -> tuple[tuple[Override, ...], Pause | None]:
    """The overrides and the pause in a document; ``file`` names it in errors. ``DocumentError`` where it is none."""
    tree = Tree(data=dict(plain))
    try:
        spec = WishesSpec.model_validate(tree.data)
    except ValidationError as error:
        raise_errors(document_errors(validation_problems(error, WishesSpec), tree, file))
        raise
    pause = None if spec.pause is None else Pause(reason=spec.pause.reason)
    return tuple(override_value(one) for one in spec.overrides), pause


def _override(one: Override) -> dict[str, Any]:
    asked: dict[str, Any] = {"hold": {}} if one.kind is OverrideKind.HOLD else {str(one.kind): one.what}
    return {"name": one.name, "until": instant_text(one.until_s), "reason": one.reason, **asked}
