"""What the process itself says of its turns: log lines when something changes, metrics, the record.

What stands in the clusters for people (status, Events) is ``run_journal``'s. No header, token or password gets here:
errors speak of verbs, resources and the servers' answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.problems import ApiError
from ebbtide.adapters.telemetry.metrics import Metrics
from ebbtide.control.actions import Action, Record
from ebbtide.control.loop import Tick
from ebbtide.control.state import State
from ebbtide.control.world import Result
from ebbtide.errors import WorldError
from ebbtide.workflows.run_documents import Documents
from ebbtide.workflows.run_record import Recorder, action_plain


class Teller:
    """Keeps what was said, so that nothing is said twice. ``record`` None: nothing is recorded."""

    def __init__(self, log: Any, metrics: Metrics, record: Recorder | None) -> None:
        self.log, self.metrics, self._record = log, metrics, record
        self._said: dict[str, str] = {}
        self._failed: dict[str, WorldError] = {}
        self._undone: dict[str, Result] = {}

    def once(self, about: str, text: str, *, level: str = "warning") -> None:
        """Say it when it changes, not at every turn; "": it is over."""
        if self._said.get(about, "") != text:
            self._said[about] = text
            getattr(self.log, level if text else "info")(about, now=text or "as it should be")

    def turned(self, documents: Documents, *, ours: bool, holder: str) -> None:
        """Documents were read, and the Lease asked for."""
        self.metrics.documents_ok.set(documents.problem is None and not documents.blocked)
        self.metrics.leader.set(ours)
        self.once("documents", str(documents.blocked or documents.problem or ""))
        standby = "" if ours else f"{holder} holds the Lease" if holder else "nobody holds the Lease yet"
        self.once("standby", standby, level="info")

    def tick(self, documents: Documents, tick: Tick, state: State, at_s: float, took_s: float) -> None:
        """One tick."""
        self.metrics.saw(tick, state, documents.fleet, documents.schedule, at_s=at_s, took_s=took_s)
        self._acted(tick)
        for one in tick.decision.withheld:
            self.once(f"withheld {one.what}", f"{one.why.text} ({one.why.rule})", level="info")
        self._forget("withheld ", {one.what for one in tick.decision.withheld})
        if self._record is not None:
            try:
                self._record.write(tick, state, documents, at_s)
                self.once("record", "")
            except OSError as refusal:  # a full disk stops no reclaim
                self.once("record", f"cannot be written: {refusal.strerror}")

    def _acted(self, tick: Tick) -> None:
        """What was done is said always; what is refused or fails, when it begins to."""
        undone: dict[str, Result] = {}
        for action, result in tick.results:
            kind, why, named = type(action).__name__, action.why, _named(action)
            if result is not Result.DONE:
                undone[named] = result
            if self._undone.get(named) is not result:
                self.log.info("action", kind=kind, result=str(result), rule=why.rule, why=why.text)
        self._undone = undone

    def failed(self, problems: Iterable[WorldError]) -> None:
        """Calls that failed in this tick: each is said when it begins to fail, counted always."""
        now: dict[str, WorldError] = {}
        for problem in problems:
            self.metrics.problems.labels(problem.kind).inc()
            now[_about(problem)] = problem
        for about, problem in now.items():
            if about not in self._failed:
                self.log.warning("call failed", kind=problem.kind, problem=str(problem))
        for about in self._failed.keys() - now.keys():
            self.log.info("call no longer fails", about=about)
        self._failed = now

    def asked(self, clusters: Iterable[Cluster]) -> None:
        """How often API servers were asked."""
        for cluster in {id(one): one for one in clusters}.values():
            self.metrics.called(cluster.name, cluster.calls)

    def close(self) -> None:
        """No more."""
        if self._record is not None:
            self._record.close()

    def _forget(self, prefix: str, still: set[str]) -> None:
        for about in [about for about in self._said if about.startswith(prefix)]:
            if about.removeprefix(prefix) not in still:
                del self._said[about]


def _named(action: Action) -> str:
    """One action in the words that do not change from tick to tick while it is asked for."""
    return f"{type(action).__name__} {'' if isinstance(action, Record) else action_plain(action)}"


def _about(problem: WorldError) -> str:
    """What failed, without the words that change from try to try."""
    return f"{problem.kind}: {problem.asked}" if isinstance(problem, ApiError) else problem.kind
