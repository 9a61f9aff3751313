"""A small JSON client of an API server, so that the tests look at the cluster with other eyes than the controller's."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

Json = dict[str, Any]


class ApiError(Exception):
    """An answer above 399: ``code``, Kubernetes' ``reason`` ("Conflict", "Invalid", …) and its message."""

    def __init__(self, code: int, body: str) -> None:
        try:
            status = json.loads(body)
        except ValueError:
            status = {}
        self.code = code
        self.reason: str = status.get("reason", "")
        self.status: Json = status
        super().__init__(f"{code} {self.reason}: {status.get('message', body[:300])}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One user's way to one API server. Each request has its own connection, so threads may share it."""

    url: str
    context: ssl.SSLContext
    token: str = ""

    @classmethod
    def at(cls, url: str, ca_file: Path | None, token: str) -> Api:
        """With a bearer token."""
        return cls(url=url, context=ssl.create_default_context(cafile=ca_file), token=token)

    def _connect(self, timeout_s: float | None) -> http.client.HTTPSConnection:
        parts = urlsplit(self.url)
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=timeout_s, context=self.context
        )

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type, "Accept": "application/json", "User-Agent": "kubelab"}
        return headers | ({"Authorization": f"Bearer {self.token}"} if self.token else {})

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
        timeout_s: float = 30.0,
    ) -> Any:
        """The parsed answer (text where it is not JSON); ``ApiError`` where refused, OSError where nobody answers."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connect(timeout_s)
        try:
            headers = self._headers(content) | {"Accept": accept}
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise ApiError(answer.status, text)
        return json.loads(text) if text.startswith("{") else text

    def get(self, path: str) -> Any:
        """The object or list at a path."""
        return self.request("GET", path)

    def items(self, path: str, labels: str = "") -> list[Json]:
        """The items of a list, by label selector."""
        found: list[Json] = self.get(path + (f"?labelSelector={quote(labels)}" if labels else ""))["items"]
        return found

    def find(self, path: str) -> Json | None:
        """The object, or None where there is none."""
        try:
            found: Json = self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found

    def create(self, path: str, body: Json) -> Any:
        """POST to a collection."""
        return self.request("POST", path, body)

    def replace(self, path: str, body: Json) -> Any:
        """PUT: refused with Conflict where the body's resourceVersion is stale."""
        return self.request("PUT", path, body)

    def merge(self, path: str, body: Json, *, manager: str = "kubelab") -> Any:
        """JSON merge patch."""
        return self.request("PATCH", f"{path}?fieldManager={manager}", body, content="application/merge-patch+json")

    def edit(self, path: str, operations: Sequence[Json], *, manager: str = "kubelab") -> Any:
        """JSON Patch (RFC 6902), `test` operations included."""
        return self.request(
            "PATCH", f"{path}?fieldManager={manager}", list(operations), content="application/json-patch+json"
        )

    def apply(self, path: str, body: Json | bytes, *, manager: str = "kubelab", force: bool = True) -> Any:
        """Server-side apply at the object's own path."""
        query = f"fieldManager={manager}&force={str(force).lower()}"
        return self.request("PATCH", f"{path}?{query}", body, content="application/apply-patch+yaml")

    def delete(self, path: str, *, grace_s: int | None = None) -> Any:
        """DELETE, what is owned too, with its own grace unless told otherwise; what is not there is no error."""
        options = {"propagationPolicy": "Background"} | ({} if grace_s is None else {"gracePeriodSeconds": grace_s})
        try:
            return self.request("DELETE", path, options)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def evict(self, namespace: str, pod: str) -> Any:
        """The eviction API, as a drain uses it."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        return self.create(f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body)

    def watch(self, path: str, resource_version: str, *, timeout_s: int = 300) -> Iterator[Json]:
        """Events (`type`, `object`) after a version, bookmarks included, until the server ends the watch."""
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={resource_version}&timeoutSeconds={timeout_s}"
        connection = self._connect(timeout_s + 5)
        try:
            connection.request("GET", f"{path}?{query}", headers=self._headers("application/json"))
            answer = connection.getresponse()
            if answer.status >= 400:
                raise ApiError(answer.status, answer.read().decode())
            while line := answer.readline():
                yield json.loads(line)
        except http.client.HTTPException as error:
            raise OSError(f"watch of {path}: {error!r}") from error
        finally:
            connection.close()

    def answers(self, path: str = "/readyz", *, timeout_s: float = 2.0) -> bool:
        """Whether the server answers there, and well."""
        try:
            self.request("GET", path, timeout_s=timeout_s)
        except (OSError, ApiError):
            return False
        return True
