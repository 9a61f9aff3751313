"""What a batch plan says in words: instants, lengths, probabilities, why a job waits, what would help.

What belongs here: phrases that the terminal and the page share. What doesn't: tables and pictures (``cli``,
``adapters.report``).
"""

from __future__ import annotations

from whenever import Instant

from ebbtide.batch.plan import Cause, PlannedJob, Relief, ReliefKind
from ebbtide.fleet.horizon import Weekday
from ebbtide.units import DAY_S, format_duration

MOST_LATER = 6  # jobs whose later deadlines are named


def share(value: float) -> str:
    """A probability in percent that never says 100 where it isn't, nor 0.

    >>> share(0.9996), share(1.0), share(0.874), share(0.001)
    ('>99 %', '100 %', '87 %', '<1 %')
    """
    if 0.995 <= value < 1.0:
        return ">99 %"
    return "<1 %" if 0.0 < value < 0.005 else f"{100 * value:.0f} %"


def rough(seconds: float) -> str:
    """A length of time in two units at most.

    >>> rough(45), rough(5400), rough(3 * 86400 + 7200), rough(0)
    ('45s', '1h30m', '3d2h', '0s')
    """
    if seconds < 60:
        return f"{seconds:.0f}s"
    if seconds < DAY_S:
        return format_duration(60.0 * (seconds // 60))
    days, rest = divmod(seconds, DAY_S)
    return f"{days:.0f}d" + (f"{rest // 3600:.0f}h" if rest >= 3600 else "")


def moment(at_s: float, zone: str, *, dated: bool = False) -> str:
    """``Mon 20:00`` by the clock of a zone, or with its date: ``09-07 20:00``.

    >>> moment(1789012800.0, "Asia/Shanghai"), moment(1789012800.0, "Asia/Shanghai", dated=True)
    ('Thu 12:00', '09-10 12:00')
    """
    local = Instant.from_timestamp(int(at_s)).to_tz(zone)
    day = f"{local.month:02}-{local.day:02}" if dated else Weekday.of(local.date()).value
    return f"{day} {local.hour:02}:{local.minute:02}"


def why_text(one: PlannedJob, zone: str) -> str:
    """Why a job waits, or has no place, in a phrase; empty where it waits for nothing."""
    reason = one.reason
    named = ", ".join(reason.jobs)
    match reason.cause:
        case Cause.AT_ONCE:
            return ""
        case Cause.PREDECESSOR:
            return f"comes after {named}"
        case Cause.TIDE:
            return "waits for the tide: no nodes are free for long enough before"
        case Cause.JOBS:
            alone = "" if reason.possible_s is None else f"; alone it could start {moment(reason.possible_s, zone)}"
            return f"waits for the GPUs of {named or 'other jobs'}{alone}"
        case Cause.PROMISE:
            return "starts when it was promised"
        case Cause.NO_ROOM:
            if reason.possible_s is None:
                return "never fits: its nodes are not there for so long at a stretch, and it must not be interrupted"
            return "has no place before the plan ends"
        case Cause.TOO_WIDE:
            return f"never fits: {one.job.pods} pods of {one.job.gpus_per_pod} GPUs are wider than what research gets"
        case Cause.LOST_PREDECESSOR:
            return f"comes after {named}, which has no place"


def relief_text(one: Relief, zone: str) -> str:
    """What would help, in a phrase."""
    less = "less is proven not to do" if one.proven else "with less nothing was found"
    if one.kind is ReliefKind.LATER_DEADLINE:
        moved = ", ".join(f"{name} {moment(at_s, zone, dated=True)}" for name, at_s in one.deadlines_s[:MOST_LATER])
        rest = len(one.deadlines_s) - MOST_LATER
        return f"later deadlines: {moved}{f' and {rest} more' if rest > 0 else ''}; {less}"
    nodes = f"{one.nodes} more node{'' if one.nodes == 1 else 's'} of {one.pool} ({one.gpus} GPUs) in research"
    if one.kind is ReliefKind.MORE_NODES:
        return f"{nodes}, for good; {less}"
    span = f"{moment(one.from_s, zone, dated=True)} to {moment(one.until_s, zone, dated=True)}"
    return f"a move: {nodes} from {span} ({one.gpu_hours:,.0f} GPU-hours); {less}"
