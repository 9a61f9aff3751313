"""Replicas and autoscalers' bounds: what the usable nodes hold of what is wanted (§6.2, §6.3, §6.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ebbtide.control.actions import LowerDeletionCost, Restore, SetBounds, SetReplicas, Surge
from ebbtide.control.begin import dark
from ebbtide.control.draft import Draft, why
from ebbtide.control.handover import handed_over, leaving_nodes, pods_on, standing
from ebbtide.control.ledger import Ledger
from ebbtide.control.replica_wants import ReplicaWant
from ebbtide.control.reverts import forget, may_write
from ebbtide.control.state import Bounds, Replicas, Side
from ebbtide.fleet.workload import Workload


def scale(draft: Draft, book: Ledger) -> None:
    """Set the replicas of a pool's workloads: growth as far as usable nodes hold it, leaving nodes emptied first."""
    if not draft.fresh(Side.PRODUCTION):
        draft.withhold(f"replicas on {book.pool.name}", dark(draft, Side.PRODUCTION))
        return
    leaving = leaving_nodes(draft, book.pool.name)
    if not draft.wants.released and all(
        _rests(draft, workload, leaving) for workload, _ in draft.plan.workloads[book.pool.name]
    ):
        return  # at most looks
    ours: list[tuple[Workload, Replicas, ReplicaWant]] = []
    free_gpus = book.usable[Side.PRODUCTION] * book.pool.gpus_per_node
    for workload, _ in draft.plan.workloads[book.pool.name]:
        seen = draft.state.production.replicas.get(workload.name)
        # What runs and is not ours to set stands on the nodes all the same.
        free_gpus -= seen.wanted * workload.gpus_per_replica if seen is not None else 0
        if workload.name in draft.wants.released:
            _release(draft, workload, seen)
            continue
        want = draft.wants.replicas[workload.name]
        if seen is None:
            reason = why("6.8", "its scale is not there", wanted=want.replicas)
            draft.withhold(f"replicas of {workload.name}", reason)
        elif refusal := _hands_off(seen):
            reason = why("6.8", refusal, wanted=want.replicas, seen=seen.wanted)
            draft.withhold(f"replicas of {workload.name}", reason)
        else:
            ours.append((workload, seen, want))
            free_gpus += _given_back(seen, want) * workload.gpus_per_replica
    granted = _granted(ours, free_gpus)
    room_gpus = _room_gpus(draft, book, granted, leaving)
    spare_gpus = max(_window_gpus(draft, book) - sum(one.planned * w.gpus_per_replica for w, _, one in ours), 0)
    for workload, seen, want in ours:
        if _settled(draft, workload, seen, want, granted[workload.name], leaving):
            continue
        _short(draft, workload, want, granted[workload.name])
        _lower_costs(draft, workload, seen, leaving)
        asked = _asked(book, workload, seen, granted[workload.name], leaving, room_gpus)
        room_gpus -= max(asked - max(seen.wanted, granted[workload.name]), 0) * workload.gpus_per_replica
        if seen.autoscaler is None:
            _set_replicas(draft, workload, seen, granted[workload.name], asked, leaving)
        else:
            _set_bounds(draft, workload, seen, asked, spare_gpus)


def _rests(draft: Draft, workload: Workload, leaving: frozenset[str]) -> bool:
    """Whether a workload has what is wanted, and is ours to set: it would be granted just that."""
    seen, want = draft.state.production.replicas.get(workload.name), draft.wants.replicas[workload.name]
    if seen is None or seen.wanted != want.replicas or seen.paused or not seen.managed:
        return False
    return _settled(draft, workload, seen, want, want.replicas, leaving)


def _settled(
    draft: Draft, workload: Workload, seen: Replicas, want: ReplicaWant, granted: int, leaving: frozenset[str]
) -> bool:
    """Whether a workload is all it is to be, and nothing about it is to be remembered."""
    if seen.wanted != granted or granted < want.replicas or seen.autoscaler is not None or seen.lowered_cost:
        return False
    kept = draft.written.get(replicas_key(workload))
    if kept is not None and not (kept.seen and kept.value == str(granted)):
        return False
    return not leaving or leaving.isdisjoint(seen.on)


def replicas_key(workload: Workload) -> str:
    """The field of a workload's scale, as memory names it."""
    return f"workload/{workload.name}:replicas"


def _hands_off(seen: Replicas) -> str:
    """What people are doing with a workload that we are not to disturb."""
    if not seen.managed:
        return "it has opted out"
    if seen.paused:
        return "its owner paused it"
    return ""


def _given_back(seen: Replicas, want: ReplicaWant) -> int:
    """Replicas that go when we say so; an autoscaler may keep what it has above the plan."""
    return max(seen.wanted - want.replicas, 0) if seen.autoscaler is None else 0


def _granted(ours: Iterable[tuple[Workload, Replicas, ReplicaWant]], free_gpus: int) -> dict[str, int]:
    """Replicas that usable nodes hold: what runs and is still wanted, then growth into ``free_gpus`` by weight."""
    kept = {workload.name: min(want.replicas, seen.wanted) for workload, seen, want in ours}
    left_gpus = free_gpus
    for workload, _, want in sorted(ours, key=lambda one: (-one[0].weight, one[0].name)):
        more = min(want.replicas - kept[workload.name], max(left_gpus, 0) // workload.gpus_per_replica)
        # A minimum is asked for whatever is there: its pods wait, and whoever looks sees why.
        kept[workload.name] = max(kept[workload.name] + more, workload.min_replicas)
        left_gpus -= more * workload.gpus_per_replica
    return kept


def _window_gpus(draft: Draft, book: Ledger) -> int:
    return draft.wants.pools[book.pool.name].settled * book.pool.gpus_per_node


def _room_gpus(draft: Draft, book: Ledger, granted: Mapping[str, int], leaving: frozenset[str]) -> int:
    """GPUs of usable nodes that nothing stands on, and nothing that is granted will stand on."""
    if not leaving:
        return 0
    room_gpus = book.usable[Side.PRODUCTION] * book.pool.gpus_per_node
    for workload, _ in draft.plan.workloads[book.pool.name]:
        seen = draft.state.production.replicas.get(workload.name)
        if seen is not None:
            stay = max(seen.wanted, granted.get(workload.name, 0)) - pods_on(seen, leaving)
            room_gpus -= max(stay, 0) * workload.gpus_per_replica
    return max(room_gpus, 0)


def _asked(
    book: Ledger, workload: Workload, seen: Replicas, granted: int, leaving: frozenset[str], room_gpus: int
) -> int:
    """What to ask for now: what is granted, and while pods of it stand on leaving nodes their replacements."""
    nodes_each = -(-workload.gpus_per_replica // book.pool.gpus_per_node)
    room = room_gpus // workload.gpus_per_replica
    if workload.max_replicas is not None:
        room = min(room, max(workload.max_replicas - max(seen.wanted, granted), 0))
    return handed_over(seen, granted, leaving, room, nodes_each=nodes_each)


def _short(draft: Draft, workload: Workload, want: ReplicaWant, granted: int) -> None:
    if granted < want.replicas:
        draft.withhold(
            f"replicas of {workload.name}",
            why("6.2", "usable nodes hold no more", wanted=want.replicas, granted=granted),
        )
    if granted < want.planned:
        draft.shortages[workload.name] = want.planned - granted


def _lower_costs(draft: Draft, workload: Workload, seen: Replicas, leaving: frozenset[str]) -> None:
    """Pods on leaving nodes go first, whoever scales down."""
    nodes = standing(seen, leaving)
    if nodes != seen.lowered_cost:
        reason = why("6.3", "pods on leaving nodes go first", nodes=len(nodes))
        draft.do(LowerDeletionCost(workload=workload.name, nodes=nodes, why=reason))


def _set_replicas(
    draft: Draft, workload: Workload, seen: Replicas, granted: int, asked: int, leaving: frozenset[str]
) -> None:
    if asked < seen.wanted:
        refused = _no_shrink(draft, seen)
        if refused:
            draft.withhold(f"replicas of {workload.name}", why("6.3", refused, wanted=asked, seen=seen.wanted))
            asked = seen.wanted
        elif not standing(seen, leaving) <= seen.lowered_cost:
            return  # first their cost is seen to be lowered; then the right pods go
    numbers = {"wanted": asked, "seen": seen.wanted}
    if may_write(draft, replicas_key(workload), observed=str(seen.wanted), wanted=str(asked), who=seen.set_by):
        if asked > max(granted, seen.wanted):
            reason = why("6.3", "pods on leaving nodes are replaced before they go", granted=granted, **numbers)
            draft.do(Surge(workload=workload.name, replicas=asked, why=reason))
        else:
            reason = why("6.3" if asked < seen.wanted else "6.2", "the plan", **numbers)
            draft.do(SetReplicas(workload=workload.name, replicas=asked, why=reason))


def _no_shrink(draft: Draft, seen: Replicas) -> str:
    """Why nothing may be scaled down now; growth may not wait for a rollout that may hang."""
    if seen.rolling:
        return "a rollout is under way"
    if draft.wants.held_by:
        return f"held by {draft.wants.held_by}"
    return "the schedule is no longer valid" if draft.at_s >= draft.plan.valid_until_s else draft.state.doubt


def _set_bounds(draft: Draft, workload: Workload, seen: Replicas, granted: int, spare_gpus: int) -> None:
    """least = what is planned and fits, most = what the window's nodes hold beside the others' plans (§6.8).

    An autoscaler does nothing at 0 replicas: the first step out of it is a write of the scale, and where it takes no
    least of 0 (a HorizontalPodAutoscaler) the last one into it is too.
    """
    if seen.bounds is None:
        draft.withhold(f"bounds of {workload.name}", why("6.8", f"{seen.autoscaler} shows no bounds", wanted=granted))
        return
    if granted < seen.bounds.least and (refused := _no_shrink(draft, seen)):
        draft.withhold(f"bounds of {workload.name}", why("6.3", refused, wanted=granted, seen=seen.bounds.least))
        return
    most = granted + spare_gpus // workload.gpus_per_replica
    if workload.max_replicas is not None:
        most = min(most, workload.max_replicas)
    least = max(granted, seen.lowest_least)
    bounds = Bounds(least=least, most=max(most, least))
    if may_write(
        draft,
        f"workload/{workload.name}:bounds",
        observed=str(seen.bounds),
        wanted=str(bounds),
        who=seen.set_by,
    ):
        reason = why("6.8", f"bounds of {seen.autoscaler}", least=bounds.least, most=bounds.most)
        draft.do(SetBounds(workload=workload.name, bounds=bounds, why=reason))
    if seen.wanted == 0 < granted:
        reason = why("6.8", f"{seen.autoscaler} does nothing at 0 replicas", wanted=granted, seen=0)
        draft.do(SetReplicas(workload=workload.name, replicas=granted, why=reason))
    elif granted == 0 < min(seen.wanted, seen.lowest_least) and not _no_shrink(draft, seen):
        reason = why("6.8", f"{seen.autoscaler} goes no lower than {seen.lowest_least}", wanted=0, seen=seen.wanted)
        draft.do(SetReplicas(workload=workload.name, replicas=0, why=reason))


def _release(draft: Draft, workload: Workload, seen: Replicas | None) -> None:
    """Give a released workload its own bounds back, once."""
    key = f"workload/{workload.name}:bounds"
    kept = draft.written.get(key)
    if kept is None or seen is None or seen.bounds is None:
        return
    if str(seen.bounds) == kept.before:
        forget(draft, key)
    else:
        draft.do(Restore(what=key, value=kept.before, why=why("6.9", "released by an override", before=kept.before)))
