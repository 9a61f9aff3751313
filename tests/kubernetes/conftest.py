"""What tests against the real control plane share: the lab's fixtures, which start it once in a worker."""

from __future__ import annotations

import socket

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


@pytest.fixture
def free_port() -> int:
    """A port of the loopback that nobody listens on just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


RERUNS = 2  # eight servers on two shared cores: what a loaded machine did once it doesn't do three times


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests against the lab may be run again; pytest prints each rerun (R), and a rerun is looked at."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
