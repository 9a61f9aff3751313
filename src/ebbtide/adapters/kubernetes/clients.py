"""One cluster's API server: found by kubeconfig context or from inside, asked within a budget, its errors named.

Answers are decoded into the few fields that are read (``objects``): five thousand pods cost a fraction of what whole
objects would. ``lightkube`` reads kubeconfigs and knows how to authenticate; its transport can be exchanged.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import httpx2
import msgspec
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from ebbtide.adapters.kubernetes.objects import Page
from ebbtide.adapters.kubernetes.pacing import Budget, Pace, Silence
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind, kind_of
from ebbtide.errors import PermanentError

FIELD_MANAGER = "ebbtide"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PAGE = 500  # objects in an answer: client-go's own; 2 MB of pods
TIMEOUT = httpx2.Timeout(15.0, connect=3.0)  # within a tick: a server that is silent longer is not seen this tick

T = TypeVar("T")
Json = dict[str, Any]


def config_of(*, context: str | None = None, in_cluster: bool = False, kubeconfig: str | None = None) -> SingleConfig:
    """Where a cluster is and who we are there.

    Raises ``PermanentError`` where the kubeconfig has no such context, or this is not inside a cluster.
    """
    try:
        if in_cluster:
            found = KubeConfig.from_service_account().get()
        else:
            path = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
            found = KubeConfig.from_file(path).get(context)
    except (ConfigError, KeyError) as error:
        what = "the service account" if in_cluster else f"context {context}" if context else "the current context"
        raise PermanentError(f"{what} cannot be used: {error}", kind="no_cluster", hint="see KUBECONFIG") from None
    assert found is not None  # without a default, lightkube raises instead
    return found


class Cluster:
    """One API server. ``name`` is for people; every call is an ``Asked`` and fails as an ``ApiError``.

    Several threads may call.

    ``calls`` counts them by verb and resource. ``may_write`` is asked last thing before a write is sent (§6.1: a
    process that was stopped in the middle of an action may wake when its Lease is another's); None: always.
    """

    def __init__(
        self,
        config: SingleConfig,
        *,
        name: str = "",
        pace: Pace | None = None,
        transport: httpx2.BaseTransport | None = None,
        dry_run: bool = False,
        may_write: Callable[[], bool] | None = None,
        timeout: httpx2.Timeout = TIMEOUT,
    ) -> None:
        self.name = name or config.context_name
        self.calls: dict[tuple[str, str], int] = {}
        # The body is not compressed: within a data centre unpacking costs more than the wire.
        self._http: httpx2.Client = Client(config, ConnectionParams(timeout=timeout, transport=transport))
        self._http.headers.update(
            {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "ebbtide"}
        )
        self._pace = pace if pace is not None else Pace()
        self._counting = threading.Lock()
        self._budget = Budget(self._pace, time.monotonic())
        self._silence = Silence(self._pace, random.Random().random)
        self._dry_run = dry_run
        self._may_write = may_write

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def get(self, path: str, kind: type[T]) -> T:
        """One object."""
        return self._decode("GET", path, self._send("GET", path), kind)

    def find(self, path: str, kind: type[T]) -> T | None:
        """One object; None where it is not there."""
        try:
            return self.get(path, kind)
        except ApiError as problem:
            if problem.why is Kind.MISSING:
                return None
            raise

    def list(self, path: str, kind: type[T], *, labels: str = "", fields: str = "") -> list[T]:
        """All objects of a collection, page by page."""
        params: dict[str, str] = {"limit": str(PAGE)}
        params.update({key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value})
        found: list[T] = []
        while True:
            content = self._send("GET", path, params=params)
            page = self._decode("GET", path, content, Page[kind])  # type: ignore[valid-type] # known when it runs
            found += page.items or []
            if not page.metadata.continue_:
                return found
            params["continue"] = page.metadata.continue_

    def changes(self, path: str, *, for_s: float) -> Iterator[None]:
        """Yields for every change of a collection from now on, and ends after so long, or when the server ends it."""
        version = self._decode("GET", path, self._send("GET", path, params={"limit": "1"}), Page[Json])
        params = {"watch": "1", "resourceVersion": version.metadata.resource_version, "timeoutSeconds": f"{for_s:.0f}"}
        asked = asked_of(self.name, "WATCH", path)
        try:
            with self._http.stream("GET", path, params=params, timeout=httpx2.Timeout(for_s + 5.0, connect=3.0)) as it:
                if not it.is_success:
                    it.read()
                    self._checked(it, asked)
                for _line in it.iter_lines():
                    yield
        except (httpx2.HTTPError, OSError) as error:
            raise ApiError(Kind.UNREACHABLE, asked, str(error) or type(error).__name__) from None

    def patch(self, path: str, body: Any, how: str) -> Json:
        """Change an object; a JSON Patch's ``test`` or a resourceVersion in the body is the precondition."""
        return self._decode("PATCH", path, self._send("PATCH", path, body=body, content_type=how), Json)

    def apply(self, path: str, body: Json, *, manager: str) -> Json:
        """Server-side apply under a field manager of its own, which takes the fields over from others."""
        params = {"fieldManager": manager, "force": "true"}
        content = self._send("PATCH", path, params=params, body=body, content_type=APPLY_PATCH)
        return self._decode("PATCH", path, content, Json)

    def create(self, path: str, body: Json) -> Json:
        """Make an object, or ask a subresource such as ``eviction``."""
        return self._decode("POST", path, self._send("POST", path, body=body), Json)

    def replace(self, path: str, body: Json) -> Json:
        """Write a whole object; its resourceVersion is the precondition."""
        return self._decode("PUT", path, self._send("PUT", path, body=body), Json)

    def delete(self, path: str, body: Json | None = None) -> None:
        """Delete an object; one that is gone is gone."""
        if self._dry_run:  # a server that gets options in the body reads none in the query
            body = {"apiVersion": "v1", "kind": "DeleteOptions", **(body or {}), "dryRun": ["All"]}
        try:
            self._send("DELETE", path, body=body)
        except ApiError as problem:
            if problem.why is not Kind.MISSING:
                raise

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        asked = asked_of(self.name, method, path)
        now_s = time.monotonic()
        if now_s < self._silence.until_s:
            raise ApiError(Kind.UNREACHABLE, asked, "not asked: it failed just now")
        with self._counting:
            wait_s = self._budget.take(now_s)
            self.calls[asked.verb, asked.resource] = self.calls.get((asked.verb, asked.resource), 0) + 1
        time.sleep(wait_s)
        request = self._http.build_request(
            method,
            path,
            params=self._params(method, params),
            content=None if body is None else msgspec.json.encode(body),
            headers={"Content-Type": content_type} if body is not None else None,
        )
        if method != "GET" and self._may_write is not None and not self._may_write():
            raise ApiError(Kind.DEPOSED, asked, "not sent: the Lease is no longer ours")
        try:
            response = self._http.send(request)
        except (httpx2.HTTPError, OSError, ConfigError) as error:
            self._silence.after_failure(time.monotonic(), None)
            raise ApiError(Kind.UNREACHABLE, asked, str(error) or type(error).__name__) from None
        return self._checked(response, asked)

    def _params(self, method: str, params: Mapping[str, str] | None) -> dict[str, str]:
        given = dict(params or {})
        if method != "GET":
            given.setdefault("fieldManager", FIELD_MANAGER)
            if self._dry_run:
                given["dryRun"] = "All"
        if method == "DELETE":
            del given["fieldManager"]
        return given

    def _checked(self, response: httpx2.Response, asked: Asked) -> bytes:
        if response.is_success:
            self._silence.after_success()
            return response.content
        try:
            answer = msgspec.json.decode(response.content, type=Json)
        except msgspec.DecodeError:
            answer = {"message": response.text[:200]}
        why = kind_of(response.status_code, answer, evicting=asked.resource == "pods/eviction")
        if why is Kind.BUSY:
            after = response.headers.get("Retry-After", "")
            self._silence.after_failure(time.monotonic(), float(after) if after.isdigit() else None)
        else:
            self._silence.after_success()
        raise ApiError(why, asked, str(answer.get("message", response.status_code)))

    def _decode(self, method: str, path: str, content: bytes, kind: type[T]) -> T:
        """An object that reads otherwise than it should is said, never guessed at."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise ApiError(Kind.INVALID, asked_of(self.name, method, path), f"unreadable: {error}") from None


def asked_of(cluster: str, method: str, path: str) -> Asked:
    """What a call is in the words of RBAC.

    >>> str(asked_of("prod", "PATCH", "/apis/apps/v1/namespaces/default/deployments/chat/scale"))
    'patch deployments/scale.apps in namespace default of prod'
    >>> str(asked_of("prod", "GET", "/api/v1/nodes")), str(asked_of("prod", "GET", "/api/v1/nodes/a"))
    ('list nodes of prod', 'get nodes of prod')
    """
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = "/".join(rest[:1] + rest[2:3]) or "discovery"
    named = len(rest) > 1
    verb = {"GET": "get" if named or not rest else "list", "POST": "create", "PUT": "update"}.get(
        method, method.lower()
    )
    return Asked(cluster=cluster, verb=verb, resource=f"{resource}.{group}" if group else resource, namespace=namespace)
