"""What an API server's refusal means: for the action (``control.world.Result``), and for whoever reads of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ebbtide.control.world import Result
from ebbtide.errors import WorldError


class Kind(StrEnum):
    """Why a call was not answered as asked."""

    CONFLICT = "conflict"  # the object changed since it was seen: look again
    MISSING = "missing"  # no such object
    FORBIDDEN = "forbidden"  # who we are may not do this, or we are nobody
    DENIED = "denied"  # by a webhook or policy, this write of this object: rights are there
    INVALID = "invalid"  # the server will never take it so
    BUDGET = "budget"  # a PodDisruptionBudget lets no pod go now
    BUSY = "busy"  # 429 and 5xx: back off
    UNREACHABLE = "unreachable"  # no answer at all
    DEPOSED = "deposed"  # never sent: another controller may hold the Lease by now (§6.1)


RESULTS = {
    Kind.CONFLICT: Result.CONFLICT,
    Kind.MISSING: Result.REFUSED,
    Kind.FORBIDDEN: Result.REFUSED,
    Kind.DENIED: Result.REFUSED,
    Kind.INVALID: Result.REFUSED,
    Kind.BUDGET: Result.REFUSED,
    Kind.BUSY: Result.FAILED,
    Kind.UNREACHABLE: Result.FAILED,
    Kind.DEPOSED: Result.REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call as RBAC speaks of it: who is missing which verb on which resource is read from here.

    >>> str(Asked(cluster="prod", verb="patch", resource="deployments/scale.apps", namespace="default"))
    'patch deployments/scale.apps in namespace default of prod'
    """

    cluster: str
    verb: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{where} of {self.cluster}"


class ApiError(WorldError):
    """A call that was not answered as asked. ``result`` is what an action that needed it comes to.

    >>> asked = Asked(cluster="prod", verb="patch", resource="nodes")
    >>> print(ApiError(Kind.FORBIDDEN, asked, "nodes is forbidden"))
    patch nodes of prod: forbidden: nodes is forbidden
    """

    def __init__(self, why: Kind, asked: Asked, message: str) -> None:
        super().__init__(f"{asked}: {why}: {message}", kind=f"api_{why}")
        self.why = why
        self.asked = asked

    @property
    def result(self) -> Result:
        """What the action comes to."""
        return RESULTS[self.why]


def kind_of(status: int, answer: dict[str, Any], *, evicting: bool = False) -> Kind:
    """What a status code means; ``answer`` is the server's Status object.

    An eviction is answered 429 by a budget (fact 19), and 500 where two budgets hold one pod. A JSON Patch whose
    ``test`` does not hold is answered 422, as an invalid object is: it says that the object is not as it was seen.
    403 is a missing right, unless the server says that its admission refused this very write.

    >>> kind_of(422, {"message": "the server rejected our request due to an error in our request", "reason": "Invalid"})
    <Kind.CONFLICT: 'conflict'>
    >>> str(kind_of(403, {"message": 'admission webhook "freeze.example.com" denied the request: no changes today'}))
    'denied'
    >>> str(kind_of(403, {"message": 'nodes "a" is forbidden: User "ebbtide" cannot patch resource "nodes" in API …'}))
    'forbidden'
    """
    message = str(answer.get("message", ""))
    if evicting and (status == 429 or (status == 500 and "more than one PodDisruptionBudget" in message)):
        return Kind.BUDGET
    if status == 422 and (_PATCH_REFUSED in message or "test failed" in message):
        return Kind.CONFLICT
    if status == 403 and _DENIED.search(message):
        return Kind.DENIED
    if status == 429 or status >= 500:
        return Kind.BUSY
    return _BY_STATUS.get(status, Kind.INVALID)


_PATCH_REFUSED = "the server rejected our request due to an error in our request"
# As API servers say it of webhooks, of ValidatingAdmissionPolicies (`binding`), and of a namespace that ends.
_DENIED = re.compile(
    r"^admission webhook .* denied the request|ValidatingAdmissionPolicy '.*' with binding '.*' denied request"
    r"|because it is being terminated"
)
_BY_STATUS = {401: Kind.FORBIDDEN, 403: Kind.FORBIDDEN, 404: Kind.MISSING, 409: Kind.CONFLICT, 410: Kind.CONFLICT}
