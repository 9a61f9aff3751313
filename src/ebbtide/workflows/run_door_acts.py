"""A decision at Kueue's door carried out: releases and answers before talk, each Workload alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ebbtide.adapters.kubernetes.door.acts import DoorActs
from ebbtide.adapters.kubernetes.door.sight import Sight
from ebbtide.adapters.kubernetes.door.told import annotations_of
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.batch.door.decide import Answer, Decision, Move, Note
from ebbtide.batch.door.work import Stage
from ebbtide.workflows.door_words import answer_text, said
from ebbtide.workflows.run_told import Teller

MOST_TOLD = 150  # Workloads that are told something in one turn: no release waits long for others' annotations


class Acting:
    """Acts on what one look saw. ``goes_on`` is asked before each Workload: False leaves the rest undone."""

    def __init__(self, acts: DoorActs, sight: Sight, teller: Teller, *, zone: str, goes_on: Callable[[], bool]) -> None:
        self._acts, self._sight, self._teller, self._zone, self._goes_on = acts, sight, teller, zone, goes_on
        self._refused: dict[str, str] = {}  # what was refused in this turn, and the refusal

    def all(self, decision: Decision) -> None:
        """Do all of it; what others changed meanwhile is looked at again. ``ApiError`` where the server is silent."""
        for check in self._sight.queues.inactive:
            self._try("checks", partial(self._acts.activate, check))
        self._let_in(decision)
        self._send_back_all(decision)
        told = 0
        for note in decision.notes:
            told += bool(self._try("notes", partial(self._note, note)))
            if told >= MOST_TOLD:
                break
        self._teller.once("job writes", "; ".join(sorted(set(self._refused.values()))))

    def _let_in(self, decision: Decision) -> None:
        for move in decision.moves:
            if move.to_live:
                self._try(f"{self._owner(move.work.name)} moves", partial(self._release, move))
        for answer in decision.answers:
            self._try("answers", partial(self._answer, answer))

    def _send_back_all(self, decision: Decision) -> None:
        """After their Retry; those of an earlier turn have given up their quota by now."""
        for move in decision.moves:
            if not move.to_live:
                self._try(f"{self._owner(move.work.name)} moves", partial(self._send_back, move))
        for work in self._sight.works:
            if work.stage is Stage.HELD:
                self._try("settling", partial(self._settle, work.name))

    def _owner(self, name: str) -> str:
        owners = self._sight.objects[name].metadata.owner_references
        return owners[0].kind if owners else ""

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
            elif problem.why is not Kind.CONFLICT:
                self._teller.log.warning("job write failed", problem=str(problem))
            return False

    def _release(self, move: Move) -> None:
        """Into the live queue; what was sent back and is not settled yet waits for that."""
        one = self._sight.objects[move.work.name]
        live = self._sight.queues.live_of.get((one.metadata.namespace, one.spec.queue_name))
        if live is not None:
            self._acts.release(one, live)
            self._teller.log.info("released", workload=move.work.name, queue=live, why=str(move.why))

    def _send_back(self, move: Move) -> None:
        one = self._sight.objects[move.work.name]
        held = self._sight.queues.held_of[one.metadata.namespace, one.spec.queue_name]
        self._acts.send_back(one, held)
        self._teller.log.info("sent back", workload=move.work.name, queue=held, why=str(move.why))

    def _answer(self, answer: Answer) -> None:
        one, verdict = self._sight.objects[answer.work.name], answer.admission.verdict
        if self._acts.answer(one, self._sight.queues, verdict, answer_text(answer.admission, self._zone)):
            why = str(answer.admission.why)
            self._teller.log.info("answered", workload=answer.work.name, verdict=str(verdict), why=why)

    def _settle(self, name: str) -> None:
        """What was sent back and holds no quota any more goes to its held queue."""
        one = self._sight.objects[name]
        held = self._sight.queues.held_of.get((one.metadata.namespace, one.spec.queue_name))
        if held is not None and not one.spec.active:
            self._acts.settle(one, held)

    def _note(self, note: Note) -> bool:
        one, text = self._sight.objects[note.work.name], said(note, self._zone)
        written = self._acts.annotate(one, annotations_of(note.planned, text.waits_for))
        told = self._acts.tell(one, planned=text.planned, reason=text.reason, message=text.message)
        return written or told
