"""A decision at Kueue's door carried out: releases and answers before talk, each Workload alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ebbtide.adapters.kubernetes.door.acts import DoorActs
from ebbtide.adapters.kubernetes.door.objects import Queued
from ebbtide.adapters.kubernetes.door.sight import Sight
from ebbtide.adapters.kubernetes.door.told import PROMISE, annotations_of
from ebbtide.adapters.kubernetes.events import Reference, Told
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.batch.door.decide import Answer, Decision, Move, Note
from ebbtide.batch.door.work import Stage
from ebbtide.workflows.door_words import answer_text, said
from ebbtide.workflows.run_told import Teller

AT_ONCE = 8  # writes under way: a server's disk takes several together
TALK_S = 1.0  # in a turn: no release waits long for others' annotations
TOLD_TOGETHER = 2 * AT_ONCE
TOLD_AGAIN_S = 300.0  # the same start for another reason: jobs come and go, and each would be a write for all others


class Acting:
    """Acts on what one look saw. ``goes_on`` is asked before each Workload: False leaves the rest undone.

    ``told``: when Workloads were told something last, by uid; kept by the caller from turn to turn. ``events``: what is
    to be told of what was done.
    """

    def __init__(
        self,
        acts: DoorActs,
        sight: Sight,
        teller: Teller,
        *,
        zone: str,
        goes_on: Callable[[], bool],
        told: dict[str, float],
    ) -> None:
        self._told = told
        self._acts, self._sight, self._teller, self._zone, self._goes_on = acts, sight, teller, zone, goes_on
        self._refused: dict[str, str] = {}  # what was refused in this turn, and the refusal
        self.events: list[Told] = []

    def all(self, decision: Decision) -> None:
        """Do all of it; what others changed meanwhile is looked at again. ``ApiError`` where the server is silent."""
        self._each([("checks", partial(self._acts.activate, one)) for one in self._sight.queues.inactive])
        self._each([(self._moves(one), partial(self._release, one)) for one in decision.moves if one.to_live])
        self._each([("answers", partial(self._answer, one)) for one in decision.answers])
        # After their Retry; those of an earlier turn have given up their quota by now.
        self._each([(self._moves(one), partial(self._send_back, one)) for one in decision.moves if not one.to_live])
        held = [work.name for work in self._sight.works if work.stage is Stage.HELD]
        self._each([("settling", partial(self._settle, name)) for name in held if not self._object(name).spec.active])
        ends_s = time.monotonic() + TALK_S
        notes = decision.notes
        while notes and time.monotonic() < ends_s:
            self._each([("notes", partial(self._note, one)) for one in notes[:TOLD_TOGETHER]])
            notes = notes[TOLD_TOGETHER:]
        self._teller.once("job writes", "; ".join(sorted(set(self._refused.values()))))

    def _each(self, acts: list[tuple[str, Callable[[], bool | None]]]) -> None:
        """Several at a time: a server takes tens of milliseconds for a write, and a window's start has hundreds."""
        if len(acts) == 1:
            self._try(*acts[0])
        elif acts:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for done in [pool.submit(self._try, *one) for one in acts]:
                    done.result()

    def _object(self, name: str) -> Queued:
        return self._sight.objects[name]

    def _moves(self, move: Move) -> str:
        owners = self._object(move.work.name).metadata.owner_references
        return f"moves of {owners[0].kind if owners else 'Workload'}"

    def _try(self, what: str, act: Callable[[], bool | None]) -> bool:
        """Whether something was written. What is forbidden once is forbidden to the others of its kind."""
        if what in self._refused or not self._goes_on():
            return False
        try:
            return bool(act())
        except ApiError as problem:
            if problem.why in (Kind.UNREACHABLE, Kind.BUSY, Kind.DEPOSED):
                raise
            if problem.why is Kind.FORBIDDEN:
                self._refused[what] = str(problem)
            elif problem.why not in (Kind.CONFLICT, Kind.MISSING):  # it changed, or was deleted, since it was seen
                self._teller.log.warning("job write failed", problem=str(problem))
            return False

    def _release(self, move: Move) -> None:
        """Into the live queue; what was sent back and is not settled yet waits for that."""
        one = self._object(move.work.name)
        live = self._sight.queues.live_of.get((one.metadata.namespace, one.spec.queue_name))
        if live is not None and self._acts.release(one, live):
            self._teller.log.info("released", workload=move.work.name, queue=live, why=str(move.why))
            self._tell(one, "Released", f"its start has come: into queue {live}")

    def _send_back(self, move: Move) -> None:
        one = self._object(move.work.name)
        held = self._sight.queues.held_of[one.metadata.namespace, one.spec.queue_name]
        self._acts.send_back(one, held)
        self._teller.log.info("sent back", workload=move.work.name, queue=held, why=str(move.why))
        self._tell(one, "SentBack", f"{move.why}: it waits for its time in queue {held}")

    def _answer(self, answer: Answer) -> None:
        one, verdict = self._object(answer.work.name), answer.admission.verdict
        if self._acts.answer(one, self._sight.queues, verdict, answer_text(answer.admission, self._zone)):
            why = str(answer.admission.why)
            self._teller.log.info("answered", workload=answer.work.name, verdict=str(verdict), why=why)

    def _settle(self, name: str) -> None:
        """What was sent back and holds no quota any more goes to its held queue."""
        one = self._object(name)
        held = self._sight.queues.held_of.get((one.metadata.namespace, one.spec.queue_name))
        if held is not None:
            self._acts.settle(one, held)

    def _note(self, note: Note) -> bool:
        one, text = self._object(note.work.name), said(note, self._zone)
        annotations = annotations_of(note.planned, text.waits_for)
        if self._acts.says(one, annotations, planned=text.planned, reason=text.reason) and self._lately(one):
            return False  # another reason for the same start is told when there is time
        # The condition first: it may stand on the version that was seen, which an annotation changes.
        told = self._acts.tell(one, planned=text.planned, reason=text.reason, message=text.message)
        written = self._acts.annotate(one, annotations)
        self._told[one.metadata.uid] = time.monotonic()
        if annotations[PROMISE] != one.metadata.annotations.get(PROMISE) or not text.planned:
            self._tell(one, text.reason, text.message, warning=not text.planned)
        return written or told

    def _tell(self, one: Queued, reason: str, note: str, *, warning: bool = False) -> None:
        meta = one.metadata
        about = Reference(
            api_version=self._acts.api_version, kind="Workload", name=meta.name, namespace=meta.namespace, uid=meta.uid
        )
        self.events.append(Told(about=about, reason=reason, action="Admit", note=note, warning=warning))

    def _lately(self, one: Queued) -> bool:
        return time.monotonic() - self._told.get(one.metadata.uid, float("-inf")) < TOLD_AGAIN_S
