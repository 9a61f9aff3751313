"""How long things take where nothing is wrong, and what goes wrong how often. Numbers are assumptions, and say so.

They were chosen to lie within what fleet operators report; none was measured. A world with ``Troubles()`` is quiet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

_HOUR_S = 3600.0
_USUAL_MOVE_S = 2820.0  # nine moves in ten at the pace below take no longer: deliveries' P90 and the means of the rest
Span = tuple[float, float]  # least and most, spread evenly in the logarithm


class Provider(StrEnum):
    """How a machine changes sides. Cloud: given back, and another one comes. Metal: the same one, newly named.
    Relabel: the same one under the same name."""

    CLOUD = "cloud"
    METAL = "metal"
    RELABEL = "relabel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Times where nothing is wrong. From being asked for until whole, a node takes 17 to 52 minutes.

    ``crowd_factor``: how much longer each doubling of the nodes asked for at once makes it. ``pod_grace_s``: what a
    serving pod gets to finish its requests, of which it takes a part. ``pod_gc_s``: how long a Deployment goes without
    replacing pods whose Node object is gone (seen: 20 s and more). ``as_told``: a pool's moves take what its Fleet says
    of them, instead: nine in ten at most its yield or reclaim time, beside draining and the controller's looks.
    """

    removal_s: Span = (60.0, 300.0)
    delivery_s: Span = (900.0, 2700.0)
    ready_s: Span = (30.0, 120.0)
    gpus_s: Span = (30.0, 240.0)
    crowd_factor: float = 0.05
    startup_factor: Span = (0.7, 1.1)
    pod_grace_s: float = 120.0
    pod_gc_s: float = 60.0
    autoscaler_period_s: float = 15.0
    gitops_period_s: float = 180.0
    as_told: bool = False

    def toward(self, told_s: float) -> Pace:
        """The pace of moves that take ``told_s``: all their steps longer or shorter by one factor.

        >>> Pace(as_told=True).toward(1410.0).delivery_s, Pace().toward(1410.0).delivery_s
        ((450.0, 1350.0), (900.0, 2700.0))
        """
        if not self.as_told:
            return self
        factor = max(told_s, 1.0) / _USUAL_MOVE_S

        def scaled(span: Span) -> Span:
            return span[0] * factor, span[1] * factor

        return replace(
            self,
            removal_s=scaled(self.removal_s),
            delivery_s=scaled(self.delivery_s),
            ready_s=scaled(self.ready_s),
            gpus_s=scaled(self.gpus_s),
        )


class Trouble(StrEnum):
    """What strikes at an instant; ``SimulatedWorld.strike`` names the object it strikes, or leaves it to chance."""

    CORDON = "a person cordons a node"
    UNCORDON = "a person uncordons a node"
    EDIT_REPLICAS = "a person edits replicas"
    EDIT_QUOTA = "a person edits quota"
    EDIT_BOUNDS = "a person edits an autoscaler's bounds"
    ROLLOUT = "a team rolls out a new revision"
    DEACTIVATE = "a person deactivates research work"
    GITOPS_REPLICAS = "GitOps puts replicas back"
    GITOPS_QUOTA = "GitOps puts quota back"
    GITOPS_BOUNDS = "GitOps puts bounds back"
    AUTOSCALER = "a cluster autoscaler removes an empty node"
    DELETE_NODE = "somebody deletes a Node object"
    STRANGE_NODE = "somebody joins a node that is not ours"
    NOT_READY = "a node stops being Ready"
    SICK_GPU = "a node loses a GPU"
    STOCK_OUT = "the cloud has no capacity"
    DARK_PRODUCTION = "the production cluster cannot be reached"
    DARK_RESEARCH = "the research cluster cannot be reached"


LASTS_S: dict[Trouble, Span] = {
    Trouble.CORDON: (0.5 * _HOUR_S, 8 * _HOUR_S),
    Trouble.DEACTIVATE: (1 * _HOUR_S, 12 * _HOUR_S),
    Trouble.GITOPS_REPLICAS: (0.25 * _HOUR_S, 2 * _HOUR_S),
    Trouble.GITOPS_QUOTA: (0.25 * _HOUR_S, 2 * _HOUR_S),
    Trouble.GITOPS_BOUNDS: (0.25 * _HOUR_S, 2 * _HOUR_S),
    Trouble.AUTOSCALER: (1 * _HOUR_S, 8 * _HOUR_S),
    Trouble.DELETE_NODE: (300.0, 2 * _HOUR_S),
    Trouble.STRANGE_NODE: (2 * _HOUR_S, 24 * _HOUR_S),
    Trouble.NOT_READY: (120.0, 4 * _HOUR_S),
    Trouble.SICK_GPU: (2 * _HOUR_S, 24 * _HOUR_S),
    Trouble.STOCK_OUT: (0.5 * _HOUR_S, 6 * _HOUR_S),
    Trouble.DARK_PRODUCTION: (60.0, 0.5 * _HOUR_S),
    Trouble.DARK_RESEARCH: (60.0, 4 * _HOUR_S),
}
"""How long a trouble lasts until somebody undoes it; one that is not named here is done once and stays done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """What goes wrong. Probabilities are per node, pod, request or write; ``per_day`` are rates of strikes.

    A delivery may *fail* (and is tried again by the provider after a stall, or when the size is asked for anew),
    *stall*, be *late*, come *twice*; the nodes may come with too few GPUs or never be Ready; of several asked for at
    once a *part* may come while the rest waits for capacity. ``pods_hang``: Terminating long beyond their grace.
    Writes *fail* before, or *after* they took effect (the answer is lost), or *conflict*.
    After ``until_s`` nothing new goes wrong, and what is broken then is mended by ``SimulatedWorld.heal``.
    """

    delivery_fails: float = 0.0
    delivery_stalls: float = 0.0
    delivery_late: float = 0.0
    delivery_twice: float = 0.0
    delivery_part: float = 0.0
    broken_gpus: float = 0.0
    never_ready: float = 0.0
    removal_slow: float = 0.0
    removal_stalls: float = 0.0
    pods_slow: float = 0.0
    pods_hang: float = 0.0
    write_fails: float = 0.0
    answer_lost: float = 0.0
    write_conflicts: float = 0.0
    per_day: tuple[tuple[Trouble, float], ...] = ()
    until_s: float = math.inf
    stall_s: Span = (2 * _HOUR_S, 6 * _HOUR_S)
    late_factor: Span = (2.0, 3.0)
    slow_factor: Span = (3.0, 8.0)
    mended_s: Span = (3 * _HOUR_S, 12 * _HOUR_S)
    noticed_s: Span = (2 * _HOUR_S, 8 * _HOUR_S)

    @classmethod
    def usual(cls) -> Troubles:
        """A fleet on ordinary days: about one in twenty node moves goes wrong somehow, and a few strikes a day."""
        often = (Trouble.CORDON, Trouble.EDIT_REPLICAS, Trouble.ROLLOUT)
        return cls(
            delivery_fails=0.01,
            delivery_stalls=0.005,
            delivery_late=0.02,
            delivery_twice=0.001,
            delivery_part=0.02,
            broken_gpus=0.01,
            never_ready=0.003,
            removal_slow=0.02,
            removal_stalls=0.003,
            pods_slow=0.02,
            pods_hang=0.002,
            write_fails=0.005,
            answer_lost=0.002,
            write_conflicts=0.005,
            per_day=tuple((trouble, 0.5 if trouble in often else 0.1) for trouble in Trouble),
        )

    @classmethod
    def wild(cls) -> Troubles:
        """Worse than any real week: every trouble is met within a simulated day or two."""
        return cls(
            delivery_fails=0.1,
            delivery_stalls=0.05,
            delivery_late=0.1,
            delivery_twice=0.02,
            delivery_part=0.2,
            broken_gpus=0.1,
            never_ready=0.03,
            removal_slow=0.1,
            removal_stalls=0.03,
            pods_slow=0.1,
            pods_hang=0.03,
            write_fails=0.05,
            answer_lost=0.03,
            write_conflicts=0.05,
            per_day=tuple((trouble, 3.0) for trouble in Trouble),
        )
