"""What people write into a Schedule: overrides with an end, and the pause (§6.9); ``allocate`` never does."""

from __future__ import annotations

from ebbtide.adapters.documents.model import DocumentModel, described
from ebbtide.adapters.documents.quantities import Instant, Label


class HoldSpec(DocumentModel):
    """Nothing moves; an empty map."""


class OverrideSpec(DocumentModel):
    """A person's wish with an end: one of hold, window and release."""

    name: Label = described("The override's name.")
    until: Instant = described("After it the plan holds again.", unit="instant")
    reason: str = described("Why.", min_length=1)
    hold: HoldSpec | None = described("Nothing moves: {}.", default=None, completed="none")
    window: Label | None = described("This window's plan holds.", default=None, completed="none")
    release: Label | None = described("This workload is left alone.", default=None, completed="none")


class PauseSpec(DocumentModel):
    """Nothing is begun until somebody resumes."""

    reason: str = described("Why.", default="", completed="not said")
