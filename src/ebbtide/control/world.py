"""What a world must be able to do: be seen, and take actions. One contract test-suite runs against every world."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from ebbtide.control.actions import Action
from ebbtide.control.state import State


class Result(StrEnum):
    """What became of one action.

    ``DONE`` (or already so); ``CONFLICT``: the object changed since it was seen, look again; ``REFUSED``: forbidden
    or impossible, say so; ``FAILED``: the network or the server, try again.
    """

    DONE = "done"
    CONFLICT = "conflict"
    REFUSED = "refused"
    FAILED = "failed"


class World(Protocol):
    """Two clusters and a home. Observing never changes them; an action done twice is done once."""

    def observe(self, at_s: float, /) -> State:
        """What can be seen now; a cluster that cannot be read keeps its last sight, with its time."""

    def apply(self, action: Action, at_s: float, /) -> Result:
        """Try one action."""
