"""What an unbroken record of Workloads and pods says about jobs: quota, queues, pods, evictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubelab.api import Json
from kubelab.recorder import Recorder, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Of one job: every state of its Workload, and of its pods, in order."""

    workload: tuple[Seen, ...]
    pods: tuple[Seen, ...]

    @property
    def quota(self) -> list[str]:
        """How quota came and went: ``took``, ``ran`` (admitted), ``gave``, in order, each once."""
        steps: list[str] = []
        for seen in self.workload:
            step = "gave"
            if seen.kind != "DELETED" and holds(seen.thing):
                step = "ran" if is_true(seen.thing, "Admitted") else "took"
            if (steps or step != "gave") and (not steps or steps[-1] != step):
                steps.append(step)
        return steps

    @property
    def queues(self) -> list[str]:
        """The queues that it was in, in order."""
        names = [seen.thing["spec"].get("queueName", "") for seen in self.workload]
        return [name for k, name in enumerate(names) if k == 0 or names[k - 1] != name]

    @property
    def evicted(self) -> bool:
        return any(is_true(seen.thing, "Evicted") for seen in self.workload)

    @property
    def stopped_pods(self) -> set[str]:
        """Pods that were deleted, or ended otherwise than by success, after they had begun."""
        bad = set()
        for seen in self.pods:
            meta, phase = seen.thing["metadata"], seen.thing.get("status", {}).get("phase")
            if phase == "Failed" or (meta.get("deletionTimestamp") and phase in ("Pending", "Running")):
                bad.add(meta["name"])
        return bad

    @property
    def started_pods(self) -> set[str]:
        return {seen.thing["metadata"]["name"] for seen in self.pods}

    def first(self, kind: str) -> float:
        """When a condition of the Workload first held (the record's clock); infinite where it never did."""
        return min((seen.at_s for seen in self.workload if is_true(seen.thing, kind)), default=float("inf"))


def story(record: Recorder, name: str) -> Story:
    """Of the Job of that name."""
    return Story(workload=tuple(_of(record, "Workload", name)), pods=tuple(_of(record, "Pod", name)))


def _of(record: Recorder, kind: str, job: str) -> Iterator[Seen]:
    for event in record.events:
        owners = event.thing["metadata"].get("ownerReferences", ())
        if event.thing.get("kind", kind) == kind and any(one["name"] == job for one in owners):
            where = "workloads" if kind == "Workload" else "pods"
            if event.path.endswith(where):
                yield event


def most_at_once(record: Recorder) -> int:
    """The most pods that ran at a time."""
    most = 0
    for _, standing in record.replay():
        pods = [one for key, one in standing.items() if key[1].endswith("/pods")]
        most = max(most, sum(one.get("status", {}).get("phase") == "Running" for one in pods))
    return most


def holds(workload: Json) -> bool:
    """Whether a Workload holds quota."""
    return is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")


def is_true(thing: Json, kind: str) -> bool:
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)
