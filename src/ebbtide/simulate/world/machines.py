"""Machines, the Node objects that stand for them, and which of them have room.

A machine exists once and for all; a host is the Node object of a machine on one side, from its coming to its going.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from ebbtide.control.state import Node, PoolSeen, Side, Tenure
from ebbtide.simulate.world.tally import Place, Tally
from ebbtide.simulate.world.timeline import Timeline


class Resident(Protocol):
    """What stands on hosts and holds their GPUs: a replica, or research work."""

    def host_changed(self, host: Host) -> None:
        """The host became Ready, stopped being so, or its Node object is gone."""

    def host_gone(self, host: Host) -> None:
        """The machine under it is gone, and what ran there is dead."""


@dataclass(slots=True, eq=False, kw_only=True)
class Machine:
    """One piece of hardware. ``extra``: sent although nobody asked, and taken back once that is noticed (``recalled``).

    ``ours`` False: somebody else's, joined by hand. ``host`` None: it travels, or has left for good (``place`` None).
    """

    number: int
    pool: str
    reserved: bool = False
    extra: bool = False
    ours: bool = True
    recalled: bool = False
    stocked_s: float = 0.0
    host: Host | None = None
    place: Place | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Host:
    """One Node object. ``taken`` GPUs are promised (admitted or standing); ``used`` ones are held by pods.

    ``there`` False: the machine runs on, but its Node object was deleted. ``residents``: GPUs held here by each. It
    lies on the ``shelf`` of those with as much ``room``; -1: it takes nothing.
    """

    name: str
    side: Side
    machine: Machine
    provider_id: str
    tenure: Tenure | None
    full_gpus: int
    gpus: int
    ready: bool = True
    since_s: float = 0.0
    startup_taint: bool = False
    joining: bool = False
    cordoned: bool = False
    cordoned_by_us: bool = False
    marked: bool = False
    leaving: bool = False
    there: bool = True
    standing: bool = True
    taken: int = 0
    used: int = 0
    hung: int = 0
    residents: dict[Resident, int] = field(default_factory=dict)
    room: int = -1
    shelf: dict[Host, None] | None = None

    @property
    def takes_pods(self) -> bool:
        """Whether a scheduler may place anything here."""
        return (
            self.there
            and self.ready
            and not (self.cordoned or self.joining or self.startup_taint or self.leaving)
            and self.tenure is not None
        )

    @property
    def serves(self) -> bool:
        """Whether what is Ready on it counts: an existing, Ready Node."""
        return self.there and self.ready

    def place(self) -> Place:
        """Where the books have its machine."""
        if self.leaving or self.joining:
            return Place.MOVING
        if not self.there or not self.ready or self.gpus < self.full_gpus:
            return Place.BROKEN
        return Place.PRODUCTION if self.side is Side.PRODUCTION else Place.RESEARCH

    def look(self) -> Node:
        """The Node object as it reads now."""
        return Node(
            name=self.name,
            tenure=self.tenure,
            provider_id=self.provider_id,
            gpus=self.gpus,
            ready=self.ready,
            since_s=self.since_s,
            startup_taint=self.startup_taint,
            joining=self.joining,
            cordoned=self.cordoned,
            cordoned_by_us=self.cordoned and self.cordoned_by_us,
            marked=self.marked,
            leaving=self.leaving,
            pods=len(self.residents),
            stuck_pods=self.hung,
        )


class NodePool:
    """The nodes of one pool on one side: what the provider was asked for, and what stands.

    ``hosts`` by name are Node objects; ``machines`` all that stand here, those without a Node object too. ``on_room``
    is called when a host has more room than before, or is gone.
    """

    def __init__(self, name: str, side: Side, full_gpus: int, line: Timeline, tally: Tally) -> None:
        self.name, self.side, self.full_gpus = name, side, full_gpus
        self.size = 0
        self.stock_out_s: float | None = None
        self.hosts: dict[str, Host] = {}
        self.machines: dict[Machine, Host] = {}
        self.leaving = self.strange = 0
        self.on_room: Callable[[], None] = _nobody
        self._line, self._tally = line, tally
        self._seen: PoolSeen | None = None
        self._views: dict[str, Node] = {}
        self._changed: dict[Host, None] = {}
        self._rooms: dict[Tenure, list[dict[Host, None]]] = {
            tenure: [{} for _ in range(full_gpus + 1)] for tenure in Tenure
        }

    def look(self) -> PoolSeen:
        """The pool as it reads now; the same value until something changes."""
        if self._seen is None:
            views = self._views
            for host in self._changed:
                if host.there:
                    views[host.name] = host.look()
                else:
                    views.pop(host.name, None)
            self._changed.clear()
            self._seen = PoolSeen(nodes=tuple(views.values()), size=self.size, stock_out_s=self.stock_out_s)
        return self._seen

    @property
    def changed(self) -> bool:
        """Whether it changed since it was looked at."""
        return self._seen is None

    def resize(self, size: int) -> None:
        """Write the size; what the provider makes of it is the provider's."""
        self.size, self._seen = size, None

    def stock(self, out_since_s: float | None) -> None:
        """Say that capacity is out, or back."""
        if self.stock_out_s is None or out_since_s is None:
            self.stock_out_s, self._seen = out_since_s, None

    def add(self, host: Host) -> None:
        """A Node object appears."""
        self.hosts[host.name] = host
        self.machines[host.machine] = host
        host.machine.host = host
        self.strange += not host.machine.ours
        self.touch(host)

    def hide(self, host: Host) -> None:
        """The Node object is deleted; the machine stands on."""
        host.there = False
        self.hosts.pop(host.name, None)
        self.touch(host)
        for resident in list(host.residents):
            resident.host_changed(host)

    def show(self, host: Host) -> None:
        """The machine registers anew: without cordons, its labels from the template."""
        host.there, host.cordoned, host.cordoned_by_us, host.since_s = True, False, False, self._line.now_s
        self.hosts[host.name] = host
        self.touch(host)
        for resident in list(host.residents):
            resident.host_changed(host)

    def remove(self, host: Host) -> None:
        """The machine is taken away from under its Node object; whatever ran there is dead."""
        self.hosts.pop(host.name, None)
        del self.machines[host.machine]
        self.leaving -= host.leaving
        self.strange -= not host.machine.ours
        host.there, host.standing = False, False
        host.machine.host = None
        self.touch(host)
        for resident in list(host.residents):
            resident.host_gone(host)
        self.on_room()

    def touch(self, host: Host) -> None:
        """Something about a host changed: it is to be seen anew, its room counted anew, the books kept."""
        self._see_anew(host)
        self._make_room(host)
        place = host.place() if host.standing else Place.MOVING
        if place is not host.machine.place and host.machine.ours:
            self._tally.stand(self.name, host.machine.place, place, self._line.now_s)
            host.machine.place = place

    def _see_anew(self, host: Host) -> None:
        self._changed[host] = None
        self._seen = None

    def _make_room(self, host: Host) -> None:
        room = max(host.gpus - host.taken, 0) if host.takes_pods else -1
        if room == host.room:
            return
        self._leave_room(host)
        if room >= 0 and host.tenure is not None:
            host.shelf = self._rooms[host.tenure][room]
            host.shelf[host] = None
        grew, host.room = room > host.room, room
        if grew:
            self.on_room()

    def _leave_room(self, host: Host) -> None:
        if host.shelf is not None:
            del host.shelf[host]
            host.shelf = None

    def set_ready(self, host: Host, ready: bool) -> None:
        """The kubelet reports, or is silent."""
        if host.ready is not ready:
            host.ready, host.since_s = ready, self._line.now_s
            self.touch(host)
            for resident in list(host.residents):
                resident.host_changed(host)

    def set_gpus(self, host: Host, gpus: int) -> None:
        """The device plugin reports so many GPUs."""
        host.startup_taint = False
        host.gpus, host.since_s = gpus, self._line.now_s
        self.touch(host)

    def set_tenure(self, host: Host, tenure: Tenure | None) -> None:
        """Write the tenure label."""
        self._leave_room(host)
        host.tenure, host.room = tenure, -1
        self.touch(host)

    def hold(self, host: Host, resident: Resident, gpus: int) -> None:
        """Pods come to stand on a host; their GPUs were taken before."""
        host.residents[resident] = gpus
        host.used += gpus
        self._see_anew(host)

    def take(self, host: Host, gpus: int) -> None:
        """Promise GPUs of a host, or give a promise back (negative)."""
        host.taken += gpus
        self._make_room(host)

    def free(self, host: Host, resident: Resident) -> None:
        """Pods are gone from a host."""
        host.used -= host.residents.pop(resident, 0)
        self._see_anew(host)

    def has_room(self, tenure: Tenure) -> bool:
        """Whether any host of that tenure has a GPU to give."""
        return any(self._rooms[tenure][1:])

    def find(self, tenure: Tenure, gpus: int) -> tuple[Host, ...] | None:
        """Hosts for one that needs ``gpus`` together: the fullest that has room, or as many empty ones as it fills."""
        rooms = self._rooms[tenure]
        if gpus <= self.full_gpus:
            for room in range(gpus, self.full_gpus + 1):
                if rooms[room]:
                    return (next(iter(rooms[room])),)
            return None
        wanted = -(-gpus // self.full_gpus)
        if len(rooms[self.full_gpus]) < wanted:
            return None
        return tuple(host for host, _ in zip(rooms[self.full_gpus], range(wanted), strict=False))

    def standing(self) -> Iterator[Host]:
        """Hosts in order of their coming, those on their way out left out."""
        return (host for host in self.machines.values() if not host.leaving)


def shares(gpus: int, hosts: Iterable[Host], full_gpus: int) -> dict[Host, int]:
    """GPUs that one holds on each of its hosts."""
    return {host: min(gpus - index * full_gpus, full_gpus) for index, host in enumerate(hosts)}


def _nobody() -> None:
    """Nobody wants to know."""
