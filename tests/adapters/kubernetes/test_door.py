"""Kueue's door from what a server would send, and what is written there; no server."""

from __future__ import annotations

import json

import pytest

from ebbtide.adapters.kubernetes.door.acts import PLANNED, DoorActs
from ebbtide.adapters.kubernetes.door.objects import Queued
from ebbtide.adapters.kubernetes.door.owners import Owners
from ebbtide.adapters.kubernetes.door.queues import read_queues
from ebbtide.adapters.kubernetes.door.runs import LedgerHome, runs_of
from ebbtide.adapters.kubernetes.door.sight import Flavors, look
from ebbtide.adapters.kubernetes.door.told import PROMISE, SENT_BACK, annotations_of, told_of
from ebbtide.adapters.kubernetes.kinds import Kinds
from ebbtide.adapters.kubernetes.problems import ApiError
from ebbtide.batch.admission import Verdict
from ebbtide.batch.door.ledger import Ledger, Ran
from ebbtide.batch.door.work import Stage
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Tenure
from ebbtide.batch.job import Job
from ebbtide.batch.plan import Cause, Place, PlannedJob, Promise, Reason, Run

ROOT = "/apis/kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
FLAVORS = Flavors(resources={"fixed": GPU, "tide": GPU}, checkpoint_interval_s=3600.0)
TAINT = {"key": "ebbtide.dev/tenure", "value": "ephemeral", "effect": "NoSchedule"}
OPTED_IN = {"key": "ebbtide.dev/tenure", "operator": "Exists"}


def named(name, space="", **more):
    return {"name": name, "namespace": space, "uid": f"uid-{name}", **more}


def local(name, *, stop="None", live="", queue="research", **annotations):
    if live:
        annotations["ebbtide.dev/live-queue"] = live
    meta = named(name, "t", annotations=annotations)
    return {"metadata": meta, "spec": {"clusterQueue": queue, "stopPolicy": stop}}


def workload(name="w", *, queue="held", said=None, gpus="4", pods=1, tolerations=(), selector=None, **status):
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": at, "reason": reason}
        for kind, (at, reason) in status.pop("conditions", {}).items()
    ]
    template = {
        "metadata": {"annotations": dict(said or {})},
        "spec": {
            "containers": [{"resources": {"limits": {GPU: gpus}, "requests": {"cpu": "1"}}}],
            "tolerations": list(tolerations),
            "nodeSelector": dict(selector or {}),
        },
    }
    owner = {"kind": "Job", "apiVersion": "batch/v1", "name": "j", "uid": f"owner-{name}", "controller": True}
    return {
        "metadata": named(
            name,
            "t",
            creationTimestamp="2026-09-10T04:00:00Z",
            resourceVersion="7",
            ownerReferences=[owner],
            annotations=status.pop("annotations", {}),
        ),
        "spec": {
            "active": status.pop("active", True),
            "queueName": queue,
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
        "status": {"conditions": conditions, **status},
    }


@pytest.fixture
def kueue(script, cluster):
    """Answers for queues; ``look`` at the Workloads given."""

    def make(*workloads, queues=None, checks=("tide",)):
        research = {"resourceGroups": [{"flavors": [{"name": "fixed"}, {"name": "tide"}]}]}
        answers = {
            "localqueues": queues or [local("held", stop="Hold", live="live"), local("live")],
            "clusterqueues": [
                {"metadata": named("research"), "spec": research},
                {"metadata": named("foreign"), "spec": {"resourceGroups": [{"flavors": [{"name": "cpu"}]}]}},
            ],
            "resourceflavors": [
                {"metadata": named("fixed"), "spec": {"nodeLabels": {"tenure": "reserved"}}},
                {"metadata": named("tide"), "spec": {"nodeLabels": {"tenure": "ephemeral"}, "nodeTaints": [TAINT]}},
            ],
            "admissionchecks": [
                {"metadata": named(name), "spec": {"controllerName": "ebbtide.dev/tide"}} for name in checks
            ],
            "workloads": list(workloads),
        }
        for plural, items in answers.items():
            script.say("GET", f"{ROOT}/{plural}", {"items": items})
        owners = Owners(cluster, Kinds(cluster))
        owners.begin()
        return look(cluster, ROOT, FLAVORS, owners.annotations)

    return make


RESERVED = {"QuotaReserved": ("2026-09-10T05:00:00Z", "")}
ADMITTED = RESERVED | {"Admitted": ("2026-09-10T05:00:10Z", "")}
ON_TIDE = {"clusterQueue": "research", "podSetAssignments": [{"flavors": {GPU: "tide", "cpu": "tide"}}]}


@pytest.mark.parametrize(
    ("body", "stage"),
    [
        (workload(), Stage.HELD),
        (workload(queue="live"), Stage.WAITING),
        (
            workload(
                queue="live",
                conditions=RESERVED,
                admission=ON_TIDE,
                admissionChecks=[{"name": "tide", "state": "Pending"}],
            ),
            Stage.CHECKING,
        ),
        (
            workload(
                queue="live",
                conditions=RESERVED,
                admission=ON_TIDE,
                admissionChecks=[{"name": "tide", "state": "Ready"}, {"name": "other", "state": "Pending"}],
            ),
            Stage.RUNNING,
        ),
        (workload(queue="live", conditions=ADMITTED, admission=ON_TIDE), Stage.RUNNING),
        (workload(queue="live", active=False, annotations={SENT_BACK: "held"}), Stage.HELD),
    ],
)
def test_how_far_it_has_come(kueue, body, stage):
    (one,) = kueue(body).works
    assert one.stage is stage
    assert (one.name, one.team, one.gpus) == ("t/w", "t/live", 4)
    assert one.flavor == ("tide" if stage in (Stage.CHECKING, Stage.RUNNING) else "")


@pytest.mark.parametrize(
    "body",
    [
        workload(active=False),  # somebody's own wish
        workload(annotations={"ebbtide.dev/managed": "false"}),
        workload(conditions={"Finished": ("2026-09-10T05:00:00Z", "Succeeded")}),
        workload(queue="foreign"),
    ],
)
def test_what_is_none_of_our_business(kueue, body):
    queues = [local("held", stop="Hold", live="live"), local("live"), local("foreign", queue="foreign")]
    assert kueue(body, queues=queues).works == ()


def test_flavors_by_taint_selector_and_order(kueue):
    plain, opted, bound = kueue(
        workload("a"),
        workload("b", tolerations=[OPTED_IN]),
        workload("c", tolerations=[OPTED_IN], selector={"tenure": "ephemeral", "arch": "x"}),
    ).works
    assert (plain.flavors, opted.flavors, bound.flavors) == (("fixed",), ("fixed", "tide"), ("tide",))


def test_annotations_in_layers_the_owner_asked_only_where_the_template_is_silent(script, kueue):
    job = {"metadata": named("j", annotations={"ebbtide.dev/duration": "3h", "ebbtide.dev/value-usd": "5"})}
    script.say("GET", "/apis/batch/v1/namespaces/t/jobs/j", job)
    queues = [
        local("held", stop="Hold", live="live", **{"ebbtide.dev/duration": "1h", "ebbtide.dev/deadline": "9h"}),
        local("live", **{"ebbtide.dev/duration": "2h", "ebbtide.dev/preemptible": "true"}),
    ]
    silent, spoken = kueue(workload("a"), workload("b", said={"ebbtide.dev/duration": "30m"}), queues=queues).works
    assert (silent.wishes.duration.expected_s, silent.wishes.value_usd) == (3 * 3600.0, 5.0)
    assert (spoken.wishes.duration.expected_s, spoken.wishes.value_usd) == (1800.0, 0.0)
    assert {one.wishes.deadline_s - one.created_s for one in (silent, spoken)} == {9 * 3600.0}
    assert {one.wishes.checkpoint_interval_s for one in (silent, spoken)} == {3600.0}
    assert sum(request.url.path.endswith("/jobs/j") for request in script.asked) == 1


def test_an_owner_that_may_not_be_read_is_done_without(script, kueue):
    script.say("GET", "/apis/batch/v1/namespaces/t/jobs/j", {"message": "no"}, status=403)
    first, second = kueue(workload("a"), workload("b")).works
    assert first.wishes is not None
    assert second.wishes is not None
    assert sum(request.url.path.endswith("/jobs/j") for request in script.asked) == 1


def test_an_annotation_that_cannot_be_read_is_said(kueue):
    (one,) = kueue(workload(said={"ebbtide.dev/duration": "soon"})).works
    assert one.wishes is None
    assert "ebbtide.dev/duration" in one.problem


def test_queues_that_do_not_work_are_said(cluster, kueue):
    queues = [
        local("a", live="live"),
        local("b", stop="Hold", live="gone"),
        local("c", stop="Hold", live="stopped"),
        local("stopped", stop="HoldAndDrain"),
        local("live"),
    ]
    kueue(queues=queues)
    found = read_queues(cluster, ROOT)
    assert dict(found.live_of) == {("t", "c"): "stopped"}
    assert len(found.problems) == 3
    assert "t/a" in found.problems[0]
    assert "gone" in found.problems[1]
    assert "HoldAndDrain" in found.problems[2]


# --- what is written


@pytest.fixture
def acts(script, cluster):
    for path in ("workloads/w", "workloads/w/status"):
        script.say("PATCH", f"{ROOT}/namespaces/t/{path}", {})
    script.say("PATCH", "/apis/batch/v1/namespaces/t/jobs/j", {})
    return DoorActs(cluster, ROOT, Owners(cluster, Kinds(cluster)))


def test_the_answer_goes_to_our_check_where_it_is_still_pending(script, kueue, acts, read):
    queues = kueue().queues
    states = [{"name": "other", "state": "Pending"}, {"name": "tide", "state": "Pending"}]
    assert acts.answer(read(Queued, workload(admissionChecks=states)), queues, Verdict.RETRY, "why")
    written = {one["path"]: one for one in script.bodies[-1]}
    assert {path.split("/")[3] for path in written} == {"1"}
    assert written["/status/admissionChecks/1/state"] == {
        "op": "replace",
        "path": "/status/admissionChecks/1/state",
        "value": "Retry",
    }
    assert [one for one in script.bodies[-1] if one["op"] == "test"] == [
        {"op": "test", "path": "/status/admissionChecks/1/name", "value": "tide"},
        {"op": "test", "path": "/status/admissionChecks/1/state", "value": "Pending"},
    ]
    states[1]["state"] = "Ready"
    assert not acts.answer(read(Queued, workload(admissionChecks=states)), queues, Verdict.RETRY, "why")


def test_a_release_is_the_owners_label_and_for_what_was_admitted_before_the_workload_too(script, acts, read):
    assert acts.release(read(Queued, workload()), "live")
    (label,) = script.bodies
    assert [one["value"] for one in label] == ["held", "live"]
    assert not acts.release(read(Queued, workload()), "live")  # Kueue has not followed yet
    evicted = workload(conditions={"Evicted": ("2026-09-10T05:00:00Z", "")})
    evicted["metadata"]["uid"] = "another"
    assert acts.release(read(Queued, evicted), "live")
    assert script.bodies[-1]["spec"] == {"queueName": "live"}
    assert script.bodies[-1]["metadata"]["resourceVersion"] == "7"


def test_what_others_deactivated_is_not_activated(script, acts, read):
    def seen(manager):
        fields = {"f:spec": {"f:active": {}}}
        meta = {"managedFields": [{"manager": manager, "time": "2026-09-10T05:00:00Z", "fieldsV1": fields}]}
        return {"metadata": {**workload()["metadata"], **meta}, "spec": {"active": False}}

    path = f"{ROOT}/namespaces/t/workloads/w"
    script.say("GET", path, seen("kubectl"))
    script.say("GET", path, seen("ebbtide"))
    acts.settle(read(Queued, workload()), "held")
    assert script.bodies == []
    acts.settle(read(Queued, workload()), "held")
    assert script.bodies[-1]["spec"] == {"queueName": "held", "active": True}


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ([], {"metadata": {"resourceVersion": "7"}}),
        ([{"type": "QuotaReserved", "status": "False"}], "/status/conditions/-"),
        ([{"type": "QuotaReserved"}, {"type": PLANNED, "status": "False", "reason": "Other"}], "/status/conditions/1"),
    ],
)
def test_the_condition_is_added_or_replaced_and_no_other_touched(script, acts, read, conditions, wanted):
    body = workload()
    body["status"]["conditions"] = conditions
    assert acts.tell(read(Queued, body), planned=True, reason="Planned", message="soon")
    written = script.bodies[-1]
    if isinstance(wanted, str):
        assert written[-1]["path"] == wanted
        assert written[-1]["value"]["message"] == "soon"
        assert all(one["value"] == PLANNED for one in written[:-1])
    else:
        assert written["metadata"] == wanted["metadata"]
        assert [one["type"] for one in written["status"]["conditions"]] == [PLANNED]
    body["status"]["conditions"] = [{"type": PLANNED, "status": "True", "reason": "Planned", "message": "soon"}]
    assert not acts.tell(read(Queued, body), planned=True, reason="Planned", message="soon")


def test_a_promise_reads_back_as_it_was_written():
    promise = Promise(start_s=7200.0, given_s=60.0, moved_s=90.0, reason="the job changed")
    run = Run(start_s=7200.0, end_s=10800.0)
    job = Job(name="t/w", gpus_per_pod=4, duration=Duration.usual(60.0), earliest_start_s=0.0)
    planned = PlannedJob(
        job=job,
        place=Place(pool="tide", tenure=Tenure.EPHEMERAL, pods=1, gpus_per_pod=4, runs=(run,)),
        reason=Reason(cause=Cause.AT_ONCE),
        promise=promise,
    )
    written = annotations_of(planned, "")
    told = told_of({key: text for key, text in written.items() if text is not None})
    assert (told.promise, told.flavor, told.finish_s) == (promise, "tide", 10800.0)
    assert json.loads(written[PROMISE])["start"] == "1970-01-01T02:00:00Z"


# --- the ledger


def test_runs_that_succeeded_are_told_once_with_what_was_said_of_them(kueue, read):
    def ended(name, reason, **more):
        conditions = ADMITTED | {"Finished": ("2026-09-10T06:00:10Z", reason)}
        return workload(name, queue="live", conditions=conditions, admission=ON_TIDE, **more)

    sight = kueue(
        ended("good", "Succeeded", said={"ebbtide.dev/duration": "30m"}, accumulatedPastExecutionTimeSeconds=600),
        ended("bad", "Failed"),
        ended("known", "Succeeded"),
    )
    (run,) = runs_of(sight.ended, sight.queues, known={"uid-known"})
    assert (run.team, run.said_s, run.real_s) == ("t/live", 1800.0, 4200.0)


def test_the_ledger_is_kept_at_home_and_a_damaged_one_begins_anew(script, cluster):
    home = LedgerHome(cluster, "home", "l")
    root = "/api/v1/namespaces/home/configmaps"
    assert home.read() == Ledger()
    script.say("POST", root, {})
    ledger = Ledger().told([Ran(uid="u", team="t", said_s=None, real_s=1.0, ended_s=2.0)])
    home.write(ledger)
    script.say("GET", f"{root}/l", {**script.bodies[-1]})
    script.say("GET", f"{root}/l", {"metadata": {}, "data": {"ledger.json": "{"}})
    assert home.read() == ledger
    assert home.read() == Ledger()
    script.broken = True
    with pytest.raises(ApiError):
        home.read()
