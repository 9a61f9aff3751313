"""What tests against the real control plane share: the lab's fixtures, which start it once in a worker."""

from __future__ import annotations

from kubelab.fixtures import (
    _alone,
    lab,
    new_namespace,
    new_node,
    production,
    pytest_runtest_makereport,
    research,
)

__all__ = [
    "_alone",
    "lab",
    "new_namespace",
    "new_node",
    "production",
    "pytest_runtest_makereport",
    "research",
]
