"""The controller's own limits: how old a sight may be, how long a step may take. Each number has its argument."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times and counts that ``decide`` keeps to.

    ``stale_after_s``: a sight older than this is not acted on; four ticks of fifteen seconds. ``stable_s``: how long
    a node must have been whole to be usable (§6.4). ``difference_ticks``: for how many ticks nodes may fail to add up
    before yields stop (§6.6). ``research_grace_s``: what ended work gets, checkpoint signal included (§6.5).
    ``lost_after_s``, ``lost_share``: how long nodes must have been missing, or two P90s of a move, before they are
    written down as lost, and up to which share of the pool (one at least): a machine that comes back has come by
    then, and more at once is a label that somebody took away, or a Fleet to be corrected. ``broken_share``: up to
    which share of a pool (or as many as may move at once) broken nodes are named and cordoned: more at once have one
    cause, and to cordon them all would leave nowhere to run. ``drain_grace_s``: what requests in flight get.
    ``late_factor``: a step beyond this many P90s of the whole move is late: its node no longer counts as being in
    motion, and is taken for broken where it stands. ``retry_s``: when a step that nobody answered is asked again.
    ``reverts``, ``revert_within_s``, ``leave_for_s``: a field that was set back so often in that time is left alone
    for this long (§6.8). ``live_after_s``: live demand older than this is not observed. ``guard_holds_s``: for how
    long demand above the plan is answered after it was last seen: twice the five minutes that an autoscaler usually
    waits. ``end_overrunning_work``: whether work that is not preemptible is ended when it overruns (§6.5).
    """

    stale_after_s: float = 60.0
    stable_s: float = 30.0
    difference_ticks: int = 3
    lost_after_s: float = 3600.0
    lost_share: float = 0.1
    broken_share: float = 0.1
    research_grace_s: float = 300.0
    drain_grace_s: float = 600.0
    late_factor: float = 2.0
    retry_s: float = 60.0
    broken_after_s: float = 600.0
    follow_up_s: float = 5.0
    reverts: int = 2
    revert_within_s: float = 600.0
    leave_for_s: float = 3600.0
    live_after_s: float = 300.0
    guard_holds_s: float = 600.0
    end_overrunning_work: bool = False
