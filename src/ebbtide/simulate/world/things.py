"""What strangers can lay their hands on, and who they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ebbtide.control.state import Side
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.deployments import Deployment
from ebbtide.simulate.world.kueue import Queue

PERSON = "alice"
GITOPS = "argocd"
AUTOSCALER = "cluster-autoscaler"

Deed = Callable[[str], Callable[[], None] | None]
"""What is done to the named object, or to one by chance; what undoes it, if anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """What there is to be struck. ``edited``: told of every object that a stranger wrote, as (kind, name)."""

    clouds: dict[str, Cloud]
    deployments: dict[str, Deployment]
    queues: dict[str, Queue]
    edited: Callable[[str, str], None]
    darken: Callable[[Side, float], None]
