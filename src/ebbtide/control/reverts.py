"""Fields that somebody else sets back: twice in ten minutes, and we stop, say who, and leave them (§6.8)."""

from __future__ import annotations

from dataclasses import replace

from ebbtide.control.draft import Draft, why
from ebbtide.control.memory import Revert, Written


def may_write(draft: Draft, key: str, *, observed: str, wanted: str, who: str = "") -> bool:
    """Whether a field is to be written now: it is not as wanted, and nobody fights for it.

    Remembers what was there before us, what we write, and who changes it after our value was seen in place.
    """
    _notice(draft, key, observed, who)
    if observed == wanted:
        return False
    if left_alone(draft, key):
        by = draft.reverts[key].who or "somebody else"
        draft.withhold(key, why("6.8", f"{by} sets it back", observed=observed, wanted=wanted))
        return False
    kept = draft.written.get(key)
    before = observed if kept is None else kept.before
    if kept is None or kept.value != wanted:
        draft.written[key] = Written(before=before, value=wanted, at_s=draft.at_s)
    return True


def left_alone(draft: Draft, key: str) -> bool:
    """Whether a field was set back so often of late that it is left alone."""
    known = draft.reverts.get(key)
    limits = draft.limits
    if known is None or len(known.seen_s) < limits.reverts:
        return False
    last_s = known.seen_s[-1]
    often = last_s - known.seen_s[-limits.reverts] <= limits.revert_within_s
    return often and draft.at_s - last_s <= limits.leave_for_s


def forget(draft: Draft, key: str) -> None:
    """Drop what is known of a field that is no longer ours."""
    draft.written.pop(key, None)
    draft.reverts.pop(key, None)


def _notice(draft: Draft, key: str, observed: str, who: str) -> None:
    kept = draft.written.get(key)
    if kept is None:
        return
    if observed == kept.value:
        if not kept.seen:
            draft.written[key] = replace(kept, seen=True)
    elif kept.seen:
        earlier = draft.reverts[key].seen_s if key in draft.reverts else ()
        seen_s = (*earlier, draft.at_s)[-draft.limits.reverts :]
        draft.reverts[key] = Revert(who=who, seen_s=seen_s)
        draft.written[key] = replace(kept, seen=False)
