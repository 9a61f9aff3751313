"""What tests against the real control plane share: the lab's fixtures, which start it once in a worker."""

from __future__ import annotations

import pytest

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

RERUNS = 2  # eight servers on two shared cores: what a loaded machine did once it doesn't do three times


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests against the lab may be run again; pytest prints each rerun (R), and a rerun is looked at."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
