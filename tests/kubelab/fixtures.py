"""Pytest fixtures over the lab: a room's conftest imports those that it needs, and the two hooks.

Each pytest-xdist worker starts a lab of its own, once, for the first test that asks: tests of two workers share no
object. A spare cluster (KUBELAB_KUBECONFIG) is one for all, so there a file lock lets one test in at a time.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubelab.api import Json
from kubelab.cluster import Cluster, delete_quietly
from kubelab.lab import Lab
from kubelab.nodes import add_node, remove_node

PRODUCTION, RESEARCH = "production", "research"
_LAB = pytest.StashKey[Lab]()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Both clusters, Kueue in research. Waits for the build where that still runs; a failed build fails the tests."""
    with Lab(tmp_path_factory.mktemp("kubelab")) as started:
        request.config.stash[_LAB] = started
        started.start([PRODUCTION, RESEARCH], kueue=[RESEARCH])
        yield started


@pytest.fixture
def _alone() -> Iterator[None]:
    """A spare cluster is shared by all workers."""
    if "KUBELAB_KUBECONFIG" not in os.environ:
        yield
        return
    with Path(os.environ["KUBELAB_KUBECONFIG"] + ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def production(lab: Lab, _alone: None) -> Cluster:
    """The production cluster."""
    return lab.clusters[PRODUCTION]


@pytest.fixture
def research(lab: Lab, _alone: None) -> Cluster:
    """The research cluster, with Kueue."""
    return lab.clusters[RESEARCH]


@pytest.fixture
def new_namespace() -> Iterator[Callable[[Cluster], str]]:
    """Makes a namespace in a cluster; it goes with the test, in the background."""
    with ExitStack() as cleaning:

        def make(cluster: Cluster) -> str:
            name = f"t-{uuid.uuid4().hex[:8]}"
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            cleaning.callback(delete_quietly, cluster.api, f"/api/v1/namespaces/{name}")
            return name

        yield make


@pytest.fixture
def new_node() -> Iterator[Callable[..., Json]]:
    """Makes nodes (see `nodes.add_node`) that are Ready; they go with the test, and the pods on them."""
    with ExitStack() as cleaning:

        def make(cluster: Cluster, name: str, **wishes: Any) -> Json:
            cleaning.callback(remove_node, cluster.api, name)
            return add_node(cluster.api, name, **wishes)

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test says where the lab's logs are, and how each ends."""
    report = yield
    started = item.config.stash.get(_LAB, None)
    if report.failed and started is not None and "lab" in getattr(item, "fixturenames", ()):
        report.sections.append(("kubelab", started.report()))
    return report
