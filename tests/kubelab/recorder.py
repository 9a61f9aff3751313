"""An unbroken record of what changed in clusters: list once, then watch from version to version, across outages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from kubelab.api import Api, ApiError, Json

_TURN_S = 2  # a watch is ended and taken up again at its last version this often, so that stopping is prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One event: when (monotonic clock), where, ADDED, MODIFIED or DELETED, and the object as it was then."""

    at_s: float
    cluster: str
    path: str
    kind: str
    thing: Json

    @property
    def key(self) -> tuple[str, str, str]:
        """Cluster, path of the collection, and namespace/name."""
        return _key(self.cluster, self.path, self.thing)


def _key(cluster: str, path: str, thing: Json) -> tuple[str, str, str]:
    meta = thing["metadata"]
    return cluster, path, f"{meta.get('namespace', '')}/{meta['name']}"


class Recorder:
    """Records collections of clusters for the length of a `with` block.

    ``holes`` says where states may be missing: a restarted server has forgotten what was before, so that the collection
    is listed anew and only the difference recorded. A test that restarts none asserts that there are none. Of two
    clusters the order between them is that of arrival.
    """

    def __init__(self, apis: Mapping[str, Api], paths: Sequence[str]) -> None:
        self.events: list[Seen] = []
        self.holes: list[str] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        for cluster, api in apis.items():
            for path in paths:
                version = self._list(api, cluster, path)
                start = (api, cluster, path, version)
                self._threads.append(threading.Thread(target=self._follow, args=start, daemon=True))

    def __enter__(self) -> Recorder:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def replay(self) -> Iterator[tuple[Seen, dict[tuple[str, str, str], Json]]]:
        """Each event with everything that stood right after it, by key."""
        with self._lock:
            events = list(self.events)
        standing: dict[tuple[str, str, str], Json] = {}
        for event in events:
            if event.kind == "DELETED":
                standing.pop(event.key, None)
            else:
                standing[event.key] = event.thing
            yield event, standing

    def standing(self) -> dict[tuple[str, str, str], Json]:
        """What stands now, as far as it was recorded."""
        return next((standing for _, standing in reversed(list(self.replay()))), {})

    def _add(self, cluster: str, path: str, kind: str, thing: Json) -> None:
        with self._lock:
            self.events.append(Seen(at_s=time.monotonic(), cluster=cluster, path=path, kind=kind, thing=thing))

    def _list(self, api: Api, cluster: str, path: str) -> str:
        """Record how what stands there differs from what was recorded; the version to watch from."""
        found: Json = api.get(path)
        known = {key: thing for key, thing in self.standing().items() if key[:2] == (cluster, path)}
        for thing in found["items"]:
            old = known.pop(_key(cluster, path, thing), None)
            if old is None or old["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
                self._add(cluster, path, "ADDED" if old is None else "MODIFIED", thing)
        for thing in known.values():
            self._add(cluster, path, "DELETED", thing)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, api: Api, cluster: str, path: str, version: str) -> None:
        while not self._ended.is_set():
            try:
                if not version:
                    version = self._list(api, cluster, path)
                version = self._watch(api, cluster, path, version)
            except ApiError as error:
                version = self._hole(cluster, path, error) if error.code == 410 else version
                self._ended.wait(0.2)
            except (OSError, ValueError):
                self._ended.wait(0.2)  # the server is away, or a line was cut: again from the last version

    def _watch(self, api: Api, cluster: str, path: str, version: str) -> str:
        """One turn; the version to go on from."""
        for event in api.watch(path, version, timeout_s=_TURN_S):
            if event["type"] == "ERROR":
                return self._hole(cluster, path, event["object"].get("message"))
            version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._add(cluster, path, event["type"], event["object"])
        return version

    def _hole(self, cluster: str, path: str, why: object) -> str:
        self.holes.append(f"{cluster} {path}: {why}")
        return ""
