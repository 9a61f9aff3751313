"""What passes between the process that measures and those that send."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.adapters.load.gaps import Law
from ebbtide.adapters.load.items import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """All that a sending process needs to know."""

    endpoint: Endpoint
    items: tuple[Item, ...]
    law: Law
    keep_texts: bool
    share: int = 1
    part: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """How far a process is: requests sent of the step, known of it, and under way in all."""

    sent: int
    known: int
    in_flight: int
