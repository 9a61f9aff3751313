"""What tests against the real control plane share: the lab's fixtures, which start it once in a worker."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide.adapters.kubernetes.world import Wishes
from ebbtide.control.state import Mode
from kubelab.cluster import Cluster, delete_quietly
from kubelab.fixtures import (
    _alone,
    lab,
    new_namespace,
    new_node,
    production,
    pytest_runtest_makereport,
    research,
)
from kubelab.waiting import until
from worlds.controller import Controller
from worlds.on_kubernetes import small_fleet
from worlds.run_process import Papers

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


@pytest.fixture
def small_papers(production: Cluster, research: Cluster, new_namespace: Any, tmp_path: Path) -> Iterator[Papers]:
    """Fleet and schedule of three production nodes, two of research, and four replicas of chat."""
    space = new_namespace(production)
    research.api.create("/api/v1/namespaces", {"metadata": {"name": space}})
    with small_fleet(production, research, space) as fleet:
        fleet.stand_nodes(3, 2)
        fleet.stand_chat(4)
        fleet.stand_queue(16)
        made = Papers(folder=tmp_path, fleet=fleet, nodes=5)
        made.write_fleet("Active")
        yield made
    delete_quietly(research.api, f"/api/v1/namespaces/{space}")


@pytest.fixture
def controller(small_papers: Papers) -> Iterator[Controller]:
    """The loop over them, at rest."""
    with small_papers.fleet.world(lambda _at_s: Wishes(mode=Mode.ACTIVE)) as world:
        made = Controller(small_papers, world)
        made.rests()
        until(lambda: made.ready() == 4, "chat")
        yield made


RERUNS = 2  # eight servers on two shared cores: what a loaded machine did once it doesn't do three times


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests against the lab may be run again; pytest prints each rerun (R), and a rerun is looked at."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
