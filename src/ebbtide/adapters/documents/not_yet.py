"""Fields of the agreed form that no code obeys yet: known, and refused by name until some code does."""

from __future__ import annotations

MESSAGE = "known, but this version does not obey it yet: remove it until it does"

# By the name of the model that would hold them.
NOT_YET: dict[str, frozenset[str]] = {
    "PoolSpec": frozenset({"gpuModel", "priceUsdPerGpuHour", "stockRisk"}),
    "ProviderSpec": frozenset({"eks"}),
    "WorkloadSpec": frozenset({"variants"}),
    "ServiceSpec": frozenset({"profile"}),
    "ScheduleWorkloadSpec": frozenset({"variant"}),
}


def is_not_yet(model_name: str, field: str) -> bool:
    """Whether a model's field is agreed on but not obeyed.

    >>> is_not_yet("PoolSpec", "gpuModel"), is_not_yet("PoolSpec", "nodes")
    (True, False)
    """
    return field in NOT_YET.get(model_name, frozenset())
