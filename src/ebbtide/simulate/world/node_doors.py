"""What an action does to nodes and their pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ebbtide.control import actions as act
from ebbtide.control.state import Side
from ebbtide.control.world import Result
from ebbtide.simulate.world.cloud import Cloud
from ebbtide.simulate.world.kueue import Queue
from ebbtide.simulate.world.machines import Host, NodePool
from ebbtide.simulate.world.replicas import Replica
from ebbtide.simulate.world.tally import OURS, Tally
from ebbtide.simulate.world.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDoors:
    """The ways in to nodes. That one is not ours to touch is written down, and nothing prevents it."""

    clouds: dict[str, Cloud]
    queues: dict[str, Queue]
    tally: Tally
    line: Timeline

    def ways(self) -> dict[type, Callable[[Any], Result]]:
        """What is done for each kind of action."""
        return {
            act.Cordon: self._cordon,
            act.Quarantine: self._cordon,
            act.Uncordon: self._uncordon,
            act.Drain: self._drain,
            act.DeletePods: self._delete_pods,
            act.RemoveNodes: self._remove_nodes,
            act.GrowPool: self._grow_pool,
            act.Admit: self._admit,
        }

    def _find(self, side: Side, name: str) -> tuple[NodePool, Host] | None:
        """A Node object by its name; that it is not ours to touch is written down, and nothing prevents it."""
        for cloud in self.clouds.values():
            pool = cloud.sides[side]
            host = pool.hosts.get(name)
            if host is not None:
                if host.machine.reserved or host.tenure is None:
                    self._wrong("touched a node that is reserved, or not ours", name)
                return pool, host
        return None

    def _wrong(self, what: str, to: str) -> None:
        self.tally.wrong(what, to, self.line.now_s)

    def _cordon(self, action: act.Cordon | act.Quarantine) -> Result:
        """Whoever cordoned first is who uncordons: a person's cordon does not become ours."""
        found = self._find(action.side, action.node)
        if found is None:
            return Result.REFUSED
        pool, host = found
        if not host.cordoned:
            host.cordoned = host.cordoned_by_us = True
        host.marked = True
        pool.touch(host)
        return Result.DONE

    def _uncordon(self, action: act.Uncordon) -> Result:
        found = self._find(action.side, action.node)
        if found is not None:
            pool, host = found
            if host.cordoned_by_us:
                host.cordoned = host.cordoned_by_us = False
            host.marked = False
            pool.touch(host)
        return Result.DONE

    def _admit(self, action: act.Admit) -> Result:
        found = self._find(action.side, action.node)
        if found is None:
            return Result.REFUSED
        pool, host = found
        if host.joining:
            host.joining = host.marked = False
        pool.set_tenure(host, action.tenure)
        return Result.DONE

    def _drain(self, action: act.Drain) -> Result:
        """Evictions: budgets may refuse some, work that does not requeue is lost, daemons stay."""
        found = self._find(action.side, action.node)
        if found is None:
            return Result.DONE
        pool, host = found
        for job in self.queues[pool.name].here(host):
            self.queues[pool.name].evict(job)
        here = {one.deployment: None for one in host.residents if isinstance(one, Replica)}
        went = [deployment.evict(host) for deployment in here]
        return Result.DONE if all(went) else Result.REFUSED

    def _delete_pods(self, action: act.DeletePods) -> Result:
        found = self._find(action.side, action.node)
        if found is None:
            return Result.DONE
        pool, host = found
        for job in self.queues[pool.name].here(host):
            self.queues[pool.name].kill(job)
        for one in list(host.residents):
            if isinstance(one, Replica):
                one.deployment.kill(one)
        return Result.DONE

    def _remove_nodes(self, action: act.RemoveNodes) -> Result:
        cloud = self.clouds.get(action.pool)
        if cloud is None:
            return Result.REFUSED
        pool = cloud.sides[action.side]
        going = [found[1] for name in action.nodes if (found := self._find(action.side, name)) is not None]
        self._check_minimum(cloud, pool, [host for host in going if not host.leaving])
        self.tally.counts[OURS, "removed a node with pods"] += sum(bool(host.residents) for host in going)
        self._write_size(cloud, action.side, action.size, action.nodes)
        return Result.DONE

    def _check_minimum(self, cloud: Cloud, pool: NodePool, going: list[Host]) -> None:
        if not going or pool.side is Side.RESEARCH:
            return
        stay = len(pool.machines) - pool.strange - pool.leaving - len(going)
        if stay < cloud.pool.min_production_nodes:
            self._wrong(f"left {stay} nodes in production, at least {cloud.pool.min_production_nodes}", pool.name)

    def _grow_pool(self, action: act.GrowPool) -> Result:
        cloud = self.clouds.get(action.pool)
        if cloud is None:
            return Result.REFUSED
        self._write_size(cloud, action.side, action.size, ())
        return Result.DONE

    def _write_size(self, cloud: Cloud, side: Side, size: int, named: tuple[str, ...]) -> None:
        """Surplus that was there before is the provider's; what our size takes beyond those named is our wrong."""
        pool = cloud.sides[side]
        surplus = max(len(pool.machines) - pool.leaving - pool.size, 0)
        leaving = pool.leaving
        new = sum(not host.leaving for name in set(named) if (host := pool.hosts.get(name)) is not None)
        cloud.write_size(side, size, named)
        if pool.leaving - leaving - new > surplus:
            self._wrong(f"a size of {size} took nodes that nobody named", f"{side}/{cloud.pool.name}")
