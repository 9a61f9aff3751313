"""`pause`, `resume`, `override`, `status` and `history`: what people ask of the controller, kept in the cluster.

All of it works while no controller runs: it is read when one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whenever import Instant, OffsetDateTime, PlainDateTime, ZonedDateTime

from ebbtide.adapters.documents.fleet import fleet_of_object, read_fleet
from ebbtide.adapters.documents.schedule import read_schedule, schedule_of_object
from ebbtide.adapters.kubernetes.clients import Cluster
from ebbtide.adapters.kubernetes.connections import connect
from ebbtide.adapters.kubernetes.home import ConfigMapHome, Home, ScheduleHome
from ebbtide.adapters.kubernetes.lease import LeaseObject
from ebbtide.adapters.kubernetes.noticeboard import Noticeboard
from ebbtide.adapters.kubernetes.wishes import MapWishes, PeoplesWishes, ScheduleWishes, WishHome
from ebbtide.control.state import Side
from ebbtide.errors import InputError, PermanentError, Place
from ebbtide.fleet.fleet import Fleet
from ebbtide.fleet.operations import Override, OverrideKind, Pause
from ebbtide.fleet.schedule import Schedule
from ebbtide.settings import Settings
from ebbtide.workflows.run_documents import ROOT
from ebbtide.workflows.run_places import clusters_of, home_of

Plain = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which controller is meant: a Fleet's file, or a Fleet in the cluster (by name where there are several)."""

    fleet: Path | None = None
    schedule: Path | None = None
    fleet_name: str = ""
    namespace: str = ""
    kubeconfig: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The home of one controller, connected; ``schedule`` None where its file was not named."""

    home: Cluster
    clusters: dict[Side, Cluster]
    namespace: str
    fleet: Fleet
    schedule: Schedule | None
    wishes: WishHome
    memory: Home
    board: Noticeboard

    @property
    def name(self) -> str:
        """What its Lease and ConfigMaps begin with."""
        return f"ebbtide-{self.fleet.name}"


@contextmanager
def open_desk(where: Where, settings: Settings) -> Iterator[Desk]:
    """Connect. ``InputError`` where no Fleet is meant or several are; ``WorldError`` where home can't be reached."""
    desk = _from_files(where, settings) if where.fleet is not None else _from_cluster(where, settings)
    try:
        yield desk
    finally:
        for one in {id(one): one for one in (desk.home, *desk.clusters.values())}.values():
            one.close()


def _from_files(where: Where, settings: Settings) -> Desk:
    assert where.fleet is not None  # the caller asked
    fleet = read_fleet(where.fleet).fleet
    schedule = None if where.schedule is None else read_schedule(where.schedule, explained=False)[0]
    clusters = connect(clusters_of(fleet, settings), kubeconfig=where.kubeconfig)
    home, space, name = clusters[Side.PRODUCTION], where.namespace or "default", f"ebbtide-{fleet.name}"
    return Desk(
        home=home,
        clusters=clusters,
        namespace=space,
        fleet=fleet,
        schedule=schedule,
        wishes=MapWishes(home, space, f"{name}-wishes"),
        memory=ConfigMapHome(home, space, name),
        board=Noticeboard(home, space, f"{name}-status"),
    )


def _from_cluster(where: Where, settings: Settings) -> Desk:
    home, space = home_of(where.namespace, settings, kubeconfig=where.kubeconfig)
    found = home.list(f"{ROOT}/{space}/schedules", dict)
    ours = [one for one in found if where.fleet_name in ("", one["spec"]["fleet"]["name"])]
    if len(ours) != 1:
        names = ", ".join(sorted(f"{one['metadata']['name']} (Fleet {one['spec']['fleet']['name']})" for one in ours))
        raise InputError(
            f"{len(ours)} Schedules in namespace {space}{': ' + names if names else ''}",
            kind="which_schedule",
            place=Place(field="--fleet-name"),
            hint="name the Fleet with --fleet-name, its namespace with -n, or its file with --fleet",
        )
    (plain,) = ours
    schedule, name = schedule_of_object(plain)[0], plain["metadata"]["name"]
    fleet_plain = home.find(f"{ROOT}/{space}/fleets/{schedule.fleet_name}", dict)
    if fleet_plain is None:
        raise PermanentError(f"there is no Fleet {schedule.fleet_name} in namespace {space}", kind="no_fleet")
    fleet = fleet_of_object(fleet_plain)
    return Desk(
        home=home,
        clusters=connect(clusters_of(fleet, settings), kubeconfig=where.kubeconfig),
        namespace=space,
        fleet=fleet,
        schedule=schedule,
        wishes=ScheduleWishes(home, space, name),
        memory=ScheduleHome(home, space, name),
        board=Noticeboard(home, space, f"ebbtide-{fleet.name}-status"),
    )


# --- wishes


def pause(desk: Desk, reason: str) -> None:
    """Nothing is begun from now on; what is in motion stands where it is."""
    desk.wishes.write(replace(desk.wishes.read(), pause=Pause(reason=reason)))


def resume(desk: Desk) -> bool:
    """Go on; False where nobody paused.

    ``PermanentError`` where the pause stands in the schedule's own document: whoever wrote it there takes it away.
    """
    before = desk.wishes.read()
    if before.pause is None:
        return False
    desk.wishes.write(replace(before, pause=None))
    if desk.wishes.read().pause is not None:
        raise PermanentError(
            "the Schedule is paused by its own document",
            kind="paused_elsewhere",
            hint="take `pause` out of it and apply it again",
        )
    return True


def override(
    desk: Desk, name: str, *, hold: bool, window: str, release: str, until: str, reason: str, now_s: float
) -> Override:
    """Add an override, or replace the one of that name; ``InputError`` where it means nothing here."""
    asked = [(OverrideKind.HOLD, "")] * hold
    asked += [(kind, what) for kind, what in ((OverrideKind.WINDOW, window), (OverrideKind.RELEASE, release)) if what]
    if len(asked) != 1:
        message = "needs one of --hold, --window and --release"
        raise InputError(message, kind="bad_override", place=Place(field="--hold"))
    kind, what = asked[0]
    _check(desk, kind, what)
    until_s = instant_of(until, desk.fleet.time_zone)
    if until_s <= now_s:
        raise InputError(f"{until} is past", kind="past_until", place=Place(field="--until"))
    made = Override(name=name, kind=kind, until_s=until_s, reason=reason, what=what)
    before = desk.wishes.read()
    kept = tuple(one for one in before.overrides if one.name != name and one.until_s > now_s)
    desk.wishes.write(PeoplesWishes(overrides=(*kept, made), pause=before.pause))
    return made


def lift(desk: Desk, name: str) -> bool:
    """Take an override away before its end; False where there is none of that name."""
    before = desk.wishes.read()
    kept = tuple(one for one in before.overrides if one.name != name)
    if len(kept) == len(before.overrides):
        return False
    desk.wishes.write(replace(before, overrides=kept))
    return True


def _check(desk: Desk, kind: OverrideKind, what: str) -> None:
    if kind is OverrideKind.RELEASE:
        known = [one.name for one in desk.fleet.workloads]
    elif kind is OverrideKind.WINDOW and desk.schedule is not None:
        known = [one.name for one in desk.schedule.windows]
    else:
        return
    if what not in known:
        word = "workload" if kind is OverrideKind.RELEASE else "window"
        raise InputError(
            f"no {word} is named {what}",
            kind=f"unknown_{word}",
            place=Place(field=f"--{kind}"),
            hint=f"one of {', '.join(known[:12])}",
        )


def instant_of(text: str, time_zone: str) -> float:
    """An instant as people write it: RFC 3339, or a local date and time in the Fleet's zone.

    >>> instant_of("2026-09-10T04:00:00Z", "UTC") == instant_of("2026-09-10T12:00", "Asia/Shanghai")
    True
    """
    try:
        return OffsetDateTime.parse_iso(text).timestamp()
    except ValueError:
        pass
    try:
        local: ZonedDateTime = PlainDateTime.parse_iso(text).assume_tz(time_zone)
        return local.timestamp()
    except ValueError:
        raise InputError(
            f"{text!r} is no instant", kind="bad_instant", place=Place(field="--until"), hint="2026-09-10T18:00"
        ) from None


# --- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the controller last told, whether it lives, and what people ask for."""

    fleet: str
    told: Plain | None
    holder: str
    renewed_s: float | None
    wishes: PeoplesWishes
    now_s: float

    @property
    def alive(self) -> bool:
        """Whether a controller renewed its Lease within the last two minutes: four times its duration."""
        return bool(self.holder) and self.renewed_s is not None and self.now_s - self.renewed_s < 120.0


def status(desk: Desk, now_s: float) -> Status:
    """Where it stands."""
    told, _ = desk.board.read()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{desk.namespace}/leases/{desk.name}"
    lease = desk.home.find(path, LeaseObject)
    renewed = None if lease is None or not lease.spec.renew_time else Instant.parse_iso(lease.spec.renew_time)
    return Status(
        fleet=desk.fleet.name,
        told=told,
        holder="" if lease is None else lease.spec.holder_identity or "",
        renewed_s=None if renewed is None else renewed.timestamp(),
        wishes=desk.wishes.read(),
        now_s=now_s,
    )


def history(desk: Desk, last: int) -> list[Plain]:
    """The last decisions, oldest first."""
    return desk.board.read()[1][-last:]
