"""The real world: ``control.world.World`` over two API servers (one may be both sides), providers and a home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ebbtide.adapters.kubernetes.acts import Acts, side_of_action
from ebbtide.adapters.kubernetes.bindings import Bindings
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.events import Reference
from ebbtide.adapters.kubernetes.home import Home
from ebbtide.adapters.kubernetes.looks import Look, Looked
from ebbtide.adapters.kubernetes.problems import ApiError, Kind
from ebbtide.adapters.nodepools.protocol import NodePool
from ebbtide.control.actions import Action, Record
from ebbtide.control.memory import Memory
from ebbtide.control.state import Mode, Override, Side, Sight, State
from ebbtide.control.world import Result
from ebbtide.errors import PermanentError, TemporaryError, WorldError

BARRED_S = 60.0  # rights are mended by hand: asked at every tick, a refusal would be most of what an audit log holds
MOST_PROBLEMS = 200  # kept until they are taken; a world that nobody asks must not grow


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What people ask for, and live demand: read elsewhere, put into the state."""

    mode: Mode = Mode.SHADOW
    overrides: tuple[Override, ...] = ()
    paused: bool = False
    doubt: str = ""
    live_rps: Mapping[str, float] = field(default_factory=dict)
    live_at_s: float = float("-inf")


class KubernetesWorld:
    """Implements ``control.world.World``.

    ``clusters``: by side, the same object twice where one cluster is both. ``wishes`` is asked at every look.
    ``still_ours`` is asked before every write: False refuses it (§6.1, the Lease). ``problems`` are what calls failed
    with since they were last taken.
    """

    def __init__(
        self,
        clusters: Mapping[Side, Cluster],
        bindings: Bindings,
        home: Home,
        node_pools: Mapping[str, NodePool],
        *,
        wishes: Callable[[float], Wishes] = lambda _at_s: Wishes(),
        still_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._home, self._wishes, self._still_ours = home, wishes, still_ours
        self._look = Look(clusters, bindings, node_pools)
        self._acts = Acts(clusters, bindings, node_pools)
        self._sights = {side: Sight(seen_at_s=float("-inf")) for side in Side}
        self._memory: Memory | None = None
        self._last: State | None = None
        self._barred: dict[Side, float] = {}  # until when
        self._problems: list[WorldError] = []

    def observe(self, at_s: float, /) -> State:
        """What can be seen now; a cluster that cannot be read keeps its last sight.

        Raises ``TemporaryError`` while the memory was never read, ``DocumentError`` where it is not readable: without
        it nobody knows what is in motion.
        """
        self._barred = {side: until_s for side, until_s in self._barred.items() if until_s > at_s}
        self._read_home()
        for looked in self._look.at(at_s):
            self._keep(looked, at_s)
        if self._memory is None:
            raise TemporaryError("the controller's memory cannot be read", kind="no_memory", hint="see the log")
        wishes = self._wishes(at_s)
        self._last = State(
            production=self._sights[Side.PRODUCTION],
            research=self._sights[Side.RESEARCH],
            memory=self._memory,
            mode=wishes.mode,
            live_rps=wishes.live_rps,
            live_at_s=wishes.live_at_s,
            overrides=wishes.overrides,
            paused=wishes.paused,
            doubt=wishes.doubt,
        )
        return self._last

    @property
    def last(self) -> State:
        """What was observed last; ``observe`` comes first."""
        assert self._last is not None
        return self._last

    def _read_home(self) -> None:
        try:
            self._memory = self._home.read()
        except ApiError as problem:
            self._note(problem)

    def _keep(self, looked: Looked, at_s: float) -> None:
        if looked.problem is not None:
            self._note(looked.problem)
            if looked.problem.why is Kind.FORBIDDEN:
                self._barred[looked.side] = at_s + BARRED_S
        if looked.sight is not None:
            self._sights[looked.side] = looked.sight
            self._acts.know(looked)

    def apply(self, action: Action, at_s: float, /) -> Result:
        """Try one action. A cluster that forbade something is left alone for a minute (401 and 403).

        The record is tried in any case: without it the other cluster would stand still too.
        """
        if not self._still_ours():
            return Result.REFUSED
        side = side_of_action(action)
        if side in self._barred and not isinstance(action, Record):
            return Result.REFUSED
        try:
            if isinstance(action, Record):
                self._home.write(action.memory)
            else:
                self._acts.do(action)
        except ApiError as problem:
            self._note(problem)
            if problem.why is Kind.FORBIDDEN:
                self._barred[side] = at_s + BARRED_S
            return problem.result
        except PermanentError as problem:  # a memory that is too large to be kept
            self._note(problem)
            return Result.REFUSED
        return Result.DONE

    def about(self, action: Action) -> tuple[Side, Reference | None]:
        """The object that an action is about, and the cluster that holds it."""
        return side_of_action(action), self._acts.about(action)

    def _note(self, problem: WorldError) -> None:
        self._problems.append(problem)
        del self._problems[:-MOST_PROBLEMS]

    def take_problems(self) -> tuple[WorldError, ...]:
        """What calls failed with since this was last asked: for Events, conditions and the log."""
        taken = tuple(self._problems)
        self._problems.clear()
        return taken
