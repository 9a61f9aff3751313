"""Research's ephemeral quota: the usable nodes that are not leaving, and no more than the window gives (§6.2, §6.3)."""

from __future__ import annotations

from ebbtide.control.actions import Activate, SetQuota
from ebbtide.control.draft import Draft, why
from ebbtide.control.ledger import Ledger
from ebbtide.control.reverts import left_alone, may_write
from ebbtide.control.state import Side


def set_quota(draft: Draft, book: Ledger) -> None:
    """Lower at once, raise only where nodes add up; work that was ended for a move requeues when it is gone (§7.5)."""
    name = book.pool.name
    observed = draft.state.research.quota_gpus.get(name)
    if observed is None:
        return  # no quota object for this pool
    if not draft.fresh(Side.RESEARCH):
        draft.withhold(
            f"quota of {name}", why("6.6", "the research cluster is not seen", seen_at_s=draft.state.research.seen_at_s)
        )
        return
    nodes, wanted = book.usable[Side.RESEARCH], quota_wanted(draft, book)
    ticks = draft.difference_ticks.get(name, 0)
    if wanted > observed and ticks > draft.limits.difference_ticks:
        reason = why("6.6", "nodes do not add up", difference=book.difference, ticks=ticks, wanted_gpus=wanted)
        draft.withhold(f"quota of {name}", reason)
        return
    who = draft.state.research.quota_set_by.get(name, "")
    if may_write(draft, quota_key(name), observed=str(observed), wanted=str(wanted), who=who):
        rule = "6.2" if wanted < observed else "6.3"
        text = "what usable nodes hold" if wanted < draft.wants.pools[name].quota_gpus else "what the window gives"
        draft.do(SetQuota(pool=name, gpus=wanted, why=why(rule, text, nodes=nodes, was_gpus=observed)))


def quota_wanted(draft: Draft, book: Ledger) -> int:
    """GPUs of usable ephemeral nodes that are not leaving, no more than the window gives."""
    held = book.usable[Side.RESEARCH] * book.pool.gpus_per_node
    return min(held, draft.wants.pools[book.pool.name].quota_gpus)


def still_too_high(draft: Draft, book: Ledger) -> bool:
    """Whether the quota is yet to be lowered: what ends would only make room for more on the same nodes (§6.2)."""
    observed = draft.state.research.quota_gpus.get(book.pool.name)
    key = quota_key(book.pool.name)
    return observed is not None and observed > quota_wanted(draft, book) and not left_alone(draft, key)


def quota_key(pool: str) -> str:
    """The field of a pool's quota, as memory names it."""
    return f"quota/{pool}:gpus"


def activate_gone(draft: Draft) -> None:
    """Let Workloads that we parked requeue, once they hold neither quota nor a pod; never what others ended (§7.5)."""
    if not draft.fresh(Side.RESEARCH):
        return
    for one in draft.state.research.work:
        if one.parked_by_us and not one.active and one.gone and one.managed:
            draft.do(Activate(work=one.name, why=why("7.5", "ended and gone: it may requeue", gpus=one.gpus)))
