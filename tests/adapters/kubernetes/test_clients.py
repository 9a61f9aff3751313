"""What a cluster's answers come to: pages, preconditions, refusals by kind, silence after failures."""

from __future__ import annotations

import time

import httpx2
import pytest

from ebbtide.adapters.kubernetes.clients import JSON_PATCH, config_of
from ebbtide.adapters.kubernetes.objects import NodeObject, Pod
from ebbtide.adapters.kubernetes.pacing import Pace, Silence
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.control.world import Result
from ebbtide.errors import PermanentError


def status(message: str) -> dict[str, str]:
    return {"kind": "Status", "message": message}


def test_a_list_is_read_page_by_page_with_its_selectors(script, cluster):
    page = {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
    script.say("GET", "/api/v1/nodes", page)
    script.say("GET", "/api/v1/nodes", {"metadata": {}, "items": [{"metadata": {"name": "b"}}]})
    found = cluster.list("/api/v1/nodes", NodeObject, labels="pool=h100")
    assert [one.metadata.name for one in found] == ["a", "b"]
    first, second = (request.url.params for request in script.asked)
    assert first["labelSelector"] == second["labelSelector"] == "pool=h100"
    assert "continue" not in first
    assert second["continue"] == "more"


def test_who_we_are_and_what_we_write_is_said_with_every_write(script, cluster):
    script.say("PATCH", "/api/v1/nodes/a", {"metadata": {"resourceVersion": "2"}})
    cluster.patch("/api/v1/nodes/a", [{"op": "test", "path": "/x", "value": 1}], JSON_PATCH)
    (request,) = script.asked
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["Content-Type"] == JSON_PATCH
    assert request.url.params["fieldManager"] == "ebbtide"


@pytest.mark.parametrize(
    ("code", "message", "why", "result"),
    [
        (409, "the object has been modified", Kind.CONFLICT, Result.CONFLICT),
        (422, "the server rejected our request due to an error in our request", Kind.CONFLICT, Result.CONFLICT),
        (422, 'ClusterQueue "q" is invalid: nominalQuota', Kind.INVALID, Result.REFUSED),
        (401, "Unauthorized", Kind.FORBIDDEN, Result.REFUSED),
        (403, "nodes is forbidden", Kind.FORBIDDEN, Result.REFUSED),
        (403, 'admission webhook "a.b" denied the request: frozen', Kind.DENIED, Result.REFUSED),
        (404, "not found", Kind.MISSING, Result.REFUSED),
        (429, "too many requests", Kind.BUSY, Result.FAILED),
        (503, "etcd is away", Kind.BUSY, Result.FAILED),
    ],
)
def test_a_refusal_has_its_kind_and_says_which_verb_on_which_resource(script, cluster, code, message, why, result):
    script.say("PATCH", "/apis/apps/v1/namespaces/x/deployments/chat/scale", status(message), status=code)
    with pytest.raises(ApiError, match=r"patch deployments/scale\.apps in namespace x of prod") as caught:
        cluster.patch("/apis/apps/v1/namespaces/x/deployments/chat/scale", [], JSON_PATCH)
    assert caught.value.why is why
    assert caught.value.result is result


@pytest.mark.parametrize(("code", "message"), [(429, "budget"), (500, "more than one PodDisruptionBudget")])
def test_a_budget_is_no_overload(script, cluster, code, message):
    path = "/api/v1/namespaces/x/pods/p/eviction"
    script.say("POST", path, status(message), status=code)
    for _ in range(2):  # asked again at once: nothing fell silent
        with pytest.raises(ApiError) as caught:
            cluster.create(path, {})
        assert caught.value.why is Kind.BUDGET
    assert len(script.asked) == 2


def test_after_a_failure_nothing_is_asked_for_a_while_and_then_again(script, cluster):
    script.broken = True
    with pytest.raises(ApiError) as caught:
        cluster.get("/api/v1/nodes/a", NodeObject)
    assert caught.value.why is Kind.UNREACHABLE
    cluster._silence.until_s = time.monotonic() + 60.0
    with pytest.raises(ApiError, match="not asked"):
        cluster.get("/api/v1/nodes/a", NodeObject)
    assert len(script.asked) == 1
    cluster._silence.until_s = 0.0
    script.broken = False
    script.say("GET", "/api/v1/nodes/a", {"metadata": {"name": "a"}})
    assert cluster.get("/api/v1/nodes/a", NodeObject).metadata.name == "a"


def test_a_server_that_is_too_busy_is_left_alone_for_as_long_as_it_says(script, cluster):
    script.say("GET", "/api/v1/pods", status("too many requests"), status=429, **{"Retry-After": "20"})
    with pytest.raises(ApiError):
        cluster.list("/api/v1/pods", Pod)
    assert cluster._silence.until_s - time.monotonic() > 10.0


def test_silence_doubles_with_every_failure_in_a_row_up_to_its_longest_and_ends_with_an_answer():
    silence = Silence(Pace(silence_s=1.0, longest_silence_s=30.0), lambda: 1.0)
    waits = []
    for _ in range(7):
        silence.after_failure(0.0, None)
        waits.append(silence.until_s)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    silence.after_success()
    silence.after_failure(0.0, None)
    assert silence.until_s == 1.0
    silence.after_failure(0.0, 3600.0)  # nobody makes us blind for an hour
    assert silence.until_s == 30.0


def test_an_object_that_reads_otherwise_is_said_and_not_guessed_at(script, cluster):
    script.say("GET", "/api/v1/nodes/a", {"metadata": {"name": 3}})
    with pytest.raises(ApiError, match="unreadable") as caught:
        cluster.get("/api/v1/nodes/a", NodeObject)
    assert caught.value.result is Result.REFUSED


def test_what_is_gone_is_deleted_and_what_is_not_there_is_not_found(script, cluster):
    cluster.delete("/api/v1/namespaces/x/pods/p")
    assert cluster.find("/api/v1/nodes/a", NodeObject) is None
    assert cluster.calls == {("delete", "pods"): 1, ("get", "nodes"): 1}


def test_a_context_that_is_not_there_is_the_users_to_mend(tmp_path):
    (tmp_path / "config").write_text("{clusters: [], contexts: []}")
    with pytest.raises(PermanentError, match="context nowhere cannot be used"):
        config_of(context="nowhere", kubeconfig=str(tmp_path / "config"))
    with pytest.raises(PermanentError, match="the current context cannot be used"):
        config_of(kubeconfig=str(tmp_path / "config"))


def test_a_dry_delete_says_so_where_the_server_looks_for_it(script, connected):
    """With options in the body a server reads none in the query: the pod would be gone."""
    dry = connected(script.answer, dry_run=True)
    dry.delete("/api/v1/namespaces/x/pods/p", {"gracePeriodSeconds": 1})
    dry.delete("/api/v1/namespaces/x/pods/q")
    assert [body["dryRun"] for body in script.bodies] == [["All"], ["All"]]
    assert script.bodies[0]["gracePeriodSeconds"] == 1


def test_no_error_holds_the_token(script, connected):
    def refuse(request):
        assert request.headers["Authorization"] == "Bearer secret"
        return httpx2.Response(401, json={"message": "Unauthorized"})

    with pytest.raises(ApiError) as caught:
        connected(refuse).list("/api/v1/nodes", dict)
    assert str(caught.value) == "list nodes of prod: forbidden: Unauthorized"
    assert "secret" not in repr(caught.value) + repr(caught.value.__context__)
