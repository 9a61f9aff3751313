"""What is said of every tick in the clusters: status of Schedule and Fleet, Events, the noticeboard (§6.10).

Telling never stops acting: what cannot be told is a problem that is logged, and is told at the next tick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from whenever import Instant

from ebbtide.adapters.documents.exact_times import instant_text
from ebbtide.adapters.documents.status_document import fleet_status, schedule_status
from ebbtide.adapters.kubernetes.clients import MERGE_PATCH, Cluster
from ebbtide.adapters.kubernetes.events import Events, Reference, Told
from ebbtide.adapters.kubernetes.noticeboard import Noticeboard
from ebbtide.adapters.kubernetes.world import KubernetesWorld
from ebbtide.control.actions import Action, Record
from ebbtide.control.loop import Tick
from ebbtide.control.standing import Standing, standing
from ebbtide.control.state import Mode, Side, State
from ebbtide.control.world import Result
from ebbtide.errors import WorldError
from ebbtide.workflows.run_documents import ROOT, Documents
from ebbtide.workflows.run_record import action_plain

Plain = dict[str, Any]


class Journal:
    """Keeps what was told last, so that a quiet fleet writes nothing."""

    def __init__(self, clusters: dict[Side, Cluster], namespace: str, fleet: str, instance: str) -> None:
        production = clusters[Side.PRODUCTION]
        self._home, self._namespace = production, namespace
        self._board = Noticeboard(production, namespace, f"ebbtide-{fleet}-status")
        self._events = {side: Events(cluster=cluster, instance=instance) for side, cluster in clusters.items()}
        self._told: dict[str, Plain] = {}
        self._planned: frozenset[str] = frozenset()
        self._withheld: frozenset[str] = frozenset()

    def tick(
        self, world: KubernetesWorld, documents: Documents, tick: Tick, state: State, at_s: float
    ) -> tuple[WorldError, ...]:
        """Tell one tick; what could not be told."""
        assert documents.schedule is not None  # without one there is no tick
        problem = "" if documents.problem is None else str(documents.problem)
        found = standing(
            state,
            tick.decision,
            documents.fleet,
            documents.schedule,
            at_s,
            blocked=documents.blocked,
            problem=problem,
        )
        decided = self._decided(tick, state, at_s)
        problems: list[WorldError] = []
        tells: tuple[Callable[[], None], ...] = (
            lambda: self._board.show(_board(found, documents), decided),
            lambda: self._statuses(documents, found, at_s),
            lambda: self._tell(world, documents, tick, state, at_s),
        )
        for tell in tells:
            try:
                tell()
            except WorldError as one:
                problems.append(one)
        return tuple(problems)

    def blocked(self, documents: Documents, at_s: float) -> None:
        """Say on every Schedule of the Fleet that it is blocked, and why."""
        for name in documents.schedules:
            generation = documents.generations.get(f"schedules/{name}", 0)
            condition = {
                "type": "DocumentsRead",
                "status": "False",
                "observedGeneration": generation,
                "reason": "Blocked",
                "message": documents.blocked,
            }
            key = f"schedules/{name}"
            if self._told.get(key) != condition:
                since = {"lastTransitionTime": instant_text(float(round(at_s)))}
                status = {"phase": "Blocked", "conditions": [{**condition, **since}]}
                self._home.patch(f"{ROOT}/{self._namespace}/{key}/status", {"status": status}, MERGE_PATCH)
                self._told[key] = condition

    def _statuses(self, documents: Documents, found: Standing, at_s: float) -> None:
        """Of the resources, where there are any."""
        if not documents.schedules:
            return
        for key, make in (
            (f"schedules/{documents.schedules[0]}", schedule_status),
            (f"fleets/{documents.fleet.name}", fleet_status),
        ):
            before = self._told.get(key) or documents.statuses.get(key, {})
            status = make(found, generation=documents.generations.get(key, 0), at_s=at_s, before=before)
            if status != self._told.get(key):
                self._home.patch(f"{ROOT}/{self._namespace}/{key}/status", {"status": status}, MERGE_PATCH)
                self._told[key] = status

    def _decided(self, tick: Tick, state: State, at_s: float) -> list[Plain]:
        """What is new of this tick: acts tried, plans of a Shadow that were not there at the last tick, refusals."""
        at = Instant.from_timestamp(round(at_s)).format_iso()
        lines = [_line(at, one, str(result)) for one, result in tick.results if not isinstance(one, Record)]
        if state.mode is Mode.SHADOW:
            planned = {_named(one): one for one in tick.decision.actions if not isinstance(one, Record)}
            lines += [_line(at, one, "shadow") for name, one in planned.items() if name not in self._planned]
            self._planned = frozenset(planned)
        withheld = {f"{one.what}: {one.why.text}": one for one in tick.decision.withheld}
        lines += [
            {"at": at, "what": one.what, "result": "withheld", "why": one.why.text, "rule": one.why.rule}
            for text, one in withheld.items()
            if text not in self._withheld
        ]
        self._withheld = frozenset(withheld)
        return lines

    def _tell(self, world: KubernetesWorld, documents: Documents, tick: Tick, state: State, at_s: float) -> None:
        told: dict[Side, list[Told]] = {side: [] for side in Side}
        for action, result in tick.results:
            side, about = world.about(action)
            if about is not None and result is not Result.CONFLICT:
                told[side].append(_told(about, action, result))
        schedule = _schedule_reference(documents)
        if schedule is not None and state.mode is Mode.ACTIVE:
            told[Side.PRODUCTION] += [
                Told(
                    about=schedule,
                    reason="Withheld",
                    action="Decide",
                    note=f"{one.what}: {one.why.text} ({one.why.rule})",
                    warning=True,
                )
                for one in tick.decision.withheld
            ]
        for side, events in self._events.items():
            events.tell(tuple(told[side]), at_s)


def _schedule_reference(documents: Documents) -> Reference | None:
    if not documents.schedules:
        return None
    name = documents.schedules[0]
    uid = documents.uids.get(f"schedules/{name}", "")
    return Reference(
        api_version="ebbtide.dev/v1alpha1", kind="Schedule", name=name, namespace=documents.namespace, uid=uid
    )


def _told(about: Reference, action: Action, result: Result) -> Told:
    why = action.why
    done = result is Result.DONE
    text = f"{_named(action)}: {why.text} ({why.rule})" + ("" if done else f": {result}")
    return Told(about=about, reason=type(action).__name__, action=type(action).__name__, note=text, warning=not done)


def _named(action: Action) -> str:
    plain = ", ".join(f"{name} {value}" for name, value in action_plain(action).items())
    return f"{type(action).__name__} {plain}".strip()


def _line(at: str, action: Action, result: str) -> Plain:
    return {
        "at": at,
        "what": _named(action),
        "result": result,
        "why": action.why.text,
        "rule": action.why.rule,
    }


def _board(found: Standing, documents: Documents) -> Plain:
    """The standing as plain values for `ebbtide status`; what is infinite is null."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [plain(one) for one in value]
        if isinstance(value, float):
            return value if abs(value) < 1e300 else None
        return value

    fleet = documents.fleet
    result: Plain = plain(asdict(found))
    return {"fleet": fleet.name, "time_zone": fleet.time_zone, **result}
