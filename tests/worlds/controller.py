"""The controller's loop over real clusters, tick by tick, in the test's own process."""

from __future__ import annotations

from collections.abc import Callable

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import schedule_of_object
from ebbtide.adapters.kubernetes.world import KubernetesWorld
from ebbtide.control.actions import SetReplicas
from ebbtide.control.limits import Limits
from ebbtide.control.loop import Tick, tick
from ebbtide.control.state import Side, State
from kubelab.waiting import until
from worlds.on_kubernetes import now_s
from worlds.run_process import Papers

# Minutes as seconds: nodes of the test double are there at once.
LIMITS = Limits(stable_s=0.5, retry_s=1.0, research_grace_s=5.0, drain_grace_s=30.0, stale_after_s=10.0)


class Controller:
    """The loop over a fleet, tick by tick; the plan can be exchanged, as by a new window."""

    def __init__(self, papers: Papers, world: KubernetesWorld, limits: Limits = LIMITS) -> None:
        self.papers, self.world, self.limits = papers, world, limits
        self.fleet = read_fleet(papers.fleet_file).fleet
        self.plan(replicas=4, production=3)
        self.told: list[str] = []
        self.wrote: list[tuple[str, int]] = []

    def plan(self, *, replicas: int, production: int) -> None:
        made = self.papers.schedule_object(replicas=replicas, production=production)
        self.schedule, _ = schedule_of_object(made)

    def tick(self) -> Tick:
        done = tick(self.world, self.fleet, self.schedule, now_s(), self.limits)
        self.told += [f"{one.what}: {one.why.text}" for one in done.decision.withheld]
        self.wrote += [(one.workload, one.replicas) for one, _ in done.results if isinstance(one, SetReplicas)]
        return done

    def until(self, holds: Callable[[State, Tick], object], what: str, within_s: float = 90.0) -> object:
        """Tick until it holds of the state that was seen."""

        def look() -> object:
            done = self.tick()
            return holds(self.world.last, done)

        return until(look, what, within_s=within_s, every_s=0.2)

    def rests(self) -> None:
        self.until(lambda state, done: not state.memory.moves and not done.results, "nothing is on its way")

    def heard(self, *words: str) -> bool:
        return any(all(word in line for word in words) for line in self.told)

    def ready(self) -> int:
        """Ready replicas of chat, by its Deployment."""
        return int(self.papers.fleet.api(Side.PRODUCTION).get(self.chat_path)["status"].get("readyReplicas", 0))

    @property
    def chat_path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.papers.fleet.space}/deployments/chat"
