"""An API server that answers from a script, and objects decoded as a real one sends them."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx2
import msgspec
import pytest
from lightkube.config.kubeconfig import KubeConfig

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.pacing import Pace


class Script:
    """Answers by method and path, in turn; keeps what was asked. The last answer of a path is given again and again."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[tuple[int, object, dict[str, str]]]] = {}
        self.asked: list[httpx2.Request] = []
        self.broken = False

    def say(self, method: str, path: str, body: object, *, status: int = 200, **headers: str) -> None:
        self.answers.setdefault((method, path), []).append((status, body, headers))

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if self.broken:
            raise httpx2.ConnectError("connection refused")
        known = self.answers.get((request.method, request.url.path))
        if known is None:
            return httpx2.Response(404, json={"kind": "Status", "message": "not found", "code": 404})
        status, body, headers = known.pop(0) if len(known) > 1 else known[0]
        return httpx2.Response(status, json=body, headers=headers)

    @property
    def bodies(self) -> list[object]:
        return [json.loads(request.content) for request in self.asked if request.content]


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def connected():
    """Makes connections to a server that is a function of the request."""
    made: list[Cluster] = []

    def connect(answer: Callable[[httpx2.Request], httpx2.Response], **more: object) -> Cluster:
        pace = Pace(per_s=1e6, silence_s=0.001)
        made.append(Cluster(_config(), transport=httpx2.MockTransport(answer), pace=pace, **more))
        return made[-1]

    yield connect
    for one in made:
        one.close()


@pytest.fixture
def cluster(script: Script, connected):
    return connected(script.answer)


def _config():
    config = KubeConfig.from_dict(
        {
            "current-context": "prod",
            "clusters": [{"name": "prod", "cluster": {"server": "https://api.example"}}],
            "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
        }
    ).get()
    assert config is not None
    return config


@pytest.fixture
def read() -> Callable[..., object]:
    """An object of a kind, from what a server would send."""

    def make(kind: type, body: object) -> object:
        return msgspec.json.decode(json.dumps(body).encode(), type=kind)

    return make
