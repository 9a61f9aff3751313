"""A clock-work Kueue: Workloads in a held and a live queue, admitted by quota, that end when their time is up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from batchlab import H
from ebbtide.batch.admission import Verdict
from ebbtide.batch.door.decide import Decision, decide
from ebbtide.batch.door.following import Following, followed
from ebbtide.batch.door.wishes import Wishes
from ebbtide.batch.door.work import Stage, Told, Work
from ebbtide.batch.durations import Duration
from ebbtide.batch.hollows import Hollow, Tenure


def wishes(hours: float = 1.0, *, p90: float | None = None, **rest: object) -> Wishes:
    """A duration, exact unless ``p90`` is given."""
    duration = Duration(expected_s=hours * H, p90_s=(hours if p90 is None else p90) * H)
    return Wishes(**({"duration": duration} | rest))


def work(name: str, gpus: int = 2, stage: Stage = Stage.HELD, **rest: object) -> Work:
    """A Workload of one pod, submitted at 0, that any flavor takes."""
    made = {
        "name": name,
        "team": "team/live",
        "stage": stage,
        "created_s": 0.0,
        "pods": 1,
        "gpus_per_pod": gpus,
        "flavors": ("fixed", "tide"),
        "wishes": wishes(),
    }
    return Work(**(made | rest))


def steps(*counts: tuple[float, int], flavor: str = "tide", gpus: int = 4, until_h: float = 200.0) -> Hollow:
    """Nodes of a flavor: from which hour on how many; ``fixed`` is reserved."""
    tenure = Tenure.RESERVED if flavor == "fixed" else Tenure.EPHEMERAL
    edges = (*(hour * H for hour, _ in counts), until_h * H)
    return Hollow(
        pool=flavor, tenure=tenure, gpus_per_node=gpus, edges_s=edges, nodes=tuple(count for _, count in counts)
    )


@dataclass(slots=True)
class Kueue:
    """Quota as the hollows have nodes; ``real_s``: how long each Workload really runs."""

    hollows: Sequence[Hollow]
    works: dict[str, Work] = field(default_factory=dict)
    real_s: dict[str, float] = field(default_factory=dict)
    started_s: dict[str, float] = field(default_factory=dict)
    ended_s: dict[str, float] = field(default_factory=dict)
    retried: list[str] = field(default_factory=list)
    following: Following | None = None

    def submit(self, *works: Work, hours: float | None = None) -> None:
        for one in works:
            self.works[one.name] = one
            expected_s = one.wishes.duration.expected_s if one.wishes and one.wishes.duration else H
            self.real_s[one.name] = expected_s if hours is None else hours * H

    def turn(self, at_s: float) -> Decision:
        """One look of ours, and what follows from it in the queues."""
        from_now = [_cut(one, at_s) for one in self.hollows]
        works = list(self.works.values())
        self.following = followed(self.following, works, from_now, at_s=at_s)
        decision = decide(self.following, works, from_now, at_s=at_s)
        for answer in decision.answers:
            if answer.admission.verdict is Verdict.READY:
                self._start(answer.work.name, at_s)
            else:
                self.retried.append(answer.work.name)
                self._put(answer.work.name, stage=Stage.WAITING, flavor="")
        for note in decision.notes:
            if note.planned is not None and note.planned.place is not None:
                place = note.planned.place
                told = Told(promise=note.planned.promise, flavor=place.pool, finish_s=place.finish_s)
                self._put(note.work.name, told=told)
        for move in decision.moves:
            self._put(move.work.name, stage=Stage.WAITING if move.to_live else Stage.HELD, flavor="")
        return decision

    def admit(self, at_s: float) -> None:
        """Kueue's own part: end what is done, then give quota in the order of submission, the first that fits."""
        for one in list(self.works.values()):
            if one.stage is Stage.RUNNING and at_s >= one.since_s + self.real_s[one.name]:
                self.ended_s[one.name] = at_s
                del self.works[one.name]
        for one in list(self.works.values()):
            if one.stage is Stage.WAITING:
                self._reserve(one, at_s)

    def _reserve(self, one: Work, at_s: float) -> None:
        for hollow in self.hollows:
            if hollow.pool in one.flavors and self.free(hollow, at_s) >= one.gpus:
                self._put(one.name, stage=Stage.CHECKING, flavor=hollow.pool)
                if hollow.tenure is Tenure.RESERVED:
                    self._start(one.name, at_s)
                return

    def free(self, hollow: Hollow, at_s: float) -> int:
        """Quota that nobody holds."""
        held = sum(one.gpus for one in self.works.values() if one.flavor == hollow.pool)
        return hollow.nodes_at(at_s) * hollow.gpus_per_node - held

    def run(self, until_s: float, *, every_s: float = 60.0, from_s: float = 0.0) -> None:
        at_s = from_s
        while at_s <= until_s and self.works:
            self.admit(at_s)
            self.turn(at_s)
            self.admit(at_s)
            self.turn(at_s)  # the check is asked within seconds
            at_s += every_s

    def _start(self, name: str, at_s: float) -> None:
        assert name not in self.started_s, f"{name} was started twice"
        self.started_s[name] = at_s
        self._put(name, stage=Stage.RUNNING, since_s=at_s)

    def _put(self, name: str, **changes: object) -> None:
        self.works[name] = replace(self.works[name], **changes)


def _cut(hollow: Hollow, at_s: float) -> Hollow:
    """The same from now on."""
    later = [(edge, count) for edge, count in zip(hollow.edges_s, hollow.nodes, strict=False) if edge > at_s]
    return replace(
        hollow,
        edges_s=(at_s, *(edge for edge, _ in later), hollow.edges_s[-1]),
        nodes=(hollow.nodes_at(at_s), *(count for _, count in later)),
    )
