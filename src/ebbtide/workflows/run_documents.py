"""Fleet and Schedule while the controller runs: from files or from the cluster, read again when they change.

A document that can no longer be read leaves the last good one in force, in doubt: a slip in an editor must stop no
morning's reclaim, so production still grows as planned and what is in motion goes on, but nothing leaves production
any more. A document that is gone, or a second Schedule for one Fleet, blocks: nothing is begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from ebbtide.adapters.documents.fleet import fleet_of_object, read_fleet
from ebbtide.adapters.documents.schedule import read_schedule, schedule_of_object
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.problems import ApiError
from ebbtide.errors import EbbtideError, InputError, Place
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.schedule import Schedule

ROOT = "/apis/ebbtide.dev/v1alpha1/namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What is in force. ``blocked``: why nothing may be begun, "" where it may; ``problem``: why a newer one is not.

    ``schedules``: the names of the Schedules that are made for this Fleet (one, unless blocked); empty with files.
    ``generations``, ``uids`` and ``statuses`` of resources, as they were read, by ``plural/name``.
    """

    fleet: Fleet
    schedule: Schedule | None
    schedules: tuple[str, ...] = ()
    blocked: str = ""
    problem: EbbtideError | None = None
    namespace: str = ""
    generations: Mapping[str, int] = field(default_factory=dict)
    uids: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """Why nothing may leave production: what somebody wrote last cannot be read. "" where it can.

        A home that does not answer is no doubt: what it holds may well be as it was, and freshness is another rule.
        """
        return f"cannot be read: {self.problem}" if isinstance(self.problem, InputError) else ""


class DocumentSource(Protocol):
    """Where documents come from."""

    def read(self) -> Documents:
        """What is in force now; raises ``EbbtideError`` only while there never was a good Fleet."""


class Files:
    """Two files; looked at by their stat, read when that changed."""

    def __init__(self, fleet: Path, schedule: Path) -> None:
        self._paths = (fleet, schedule)
        self._stamp: tuple[object, ...] = ()
        self._last: Documents | None = None

    def read(self) -> Documents:
        stamp = tuple(_stamp(path) for path in self._paths)
        if self._last is None or stamp != self._stamp:
            self._last = self._read_again()
            self._stamp = stamp
        return self._last

    def _read_again(self) -> Documents:
        fleet, schedule = self._paths
        try:
            return Documents(fleet=read_fleet(fleet).fleet, schedule=read_schedule(schedule, explained=False)[0])
        except EbbtideError as problem:
            if self._last is None:
                raise
            gone = next((str(path) for path in self._paths if not path.exists()), "")
            return replace(self._last, problem=problem, blocked=f"{gone} is gone" if gone else "")


def _stamp(path: Path) -> object:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class Resources:
    """A Fleet and the one Schedule that is made for it, in a namespace of the production cluster."""

    def __init__(self, cluster: Cluster, namespace: str, fleet: str) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, fleet
        self._root = f"{ROOT}/{namespace}"
        self._versions: tuple[str, ...] = ()
        self._last: Documents | None = None

    def read(self) -> Documents:
        try:
            fleet = self._cluster.find(f"{self._root}/fleets/{self._name}", dict)
            found = self._cluster.list(f"{self._root}/schedules", dict)
        except ApiError as problem:
            return self._kept(problem)
        if fleet is None:
            return self._gone()
        ours = [one for one in found if one.get("spec", {}).get("fleet", {}).get("name") == self._name]
        versions = tuple(_version(one) for one in (fleet, *ours))
        if self._last is None or self._last.problem is not None or versions != self._versions:
            self._last = self._made(fleet, ours)
            self._versions = versions
        return self._last

    def _made(self, fleet: dict[str, Any], ours: list[dict[str, Any]]) -> Documents:
        names = tuple(sorted(str(one["metadata"]["name"]) for one in ours))
        objects = {f"fleets/{self._name}": fleet, **{f"schedules/{one['metadata']['name']}": one for one in ours}}
        try:
            found = Documents(
                fleet=fleet_of_object(fleet),
                schedule=None,
                schedules=names,
                namespace=self._namespace,
                generations={key: int(one["metadata"].get("generation", 0)) for key, one in objects.items()},
                uids={key: str(one["metadata"].get("uid", "")) for key, one in objects.items()},
                statuses={key: one.get("status") or {} for key, one in objects.items()},
            )
        except EbbtideError as problem:
            return self._kept(problem)
        if len(ours) != 1:
            many = f"{len(ours)} Schedules are made for Fleet {self._name}: {', '.join(names)}; delete all but one"
            return replace(found, blocked=many if ours else f"no Schedule is made for Fleet {self._name}")
        try:
            return replace(found, schedule=schedule_of_object(ours[0])[0])
        except EbbtideError as problem:
            if self._last is not None and self._last.schedule is not None and self._last.schedules == names:
                return replace(self._last, problem=problem)
            return replace(found, problem=problem, blocked=str(problem))

    def _kept(self, problem: EbbtideError) -> Documents:
        if self._last is None:
            raise problem
        return replace(self._last, problem=problem)

    def _gone(self) -> Documents:
        problem = InputError(
            f"there is no Fleet {self._name}",
            kind="no_fleet",
            place=Place(file=f"namespace {self._namespace}"),
            hint="kubectl apply --server-side -f fleet.yaml",
        )
        if self._last is None:
            raise problem
        return replace(self._last, problem=problem, blocked=problem.message)


def _version(found: dict[str, Any]) -> str:
    """Changes with the spec alone: the status is written at every turn."""
    meta = found["metadata"]
    return f"{meta['name']}/{meta.get('uid', '')}/{meta.get('generation', 0)}"
