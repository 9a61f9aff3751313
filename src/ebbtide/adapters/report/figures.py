"""Numbers as people read them: three significant digits, thousands separators, shares in whole percent."""

from __future__ import annotations

import math


def whole(value: float) -> str:
    """No decimals, thousands separated.

    >>> whole(3656.4)
    '3,656'
    """
    return f"{value:,.0f}"


def static_nodes(static: int, missing: int) -> str:
    """The nodes of static peak, and how many it would need where the fleet has not got them all.

    >>> static_nodes(32, 0), static_nodes(32, 9), static_nodes(1, 0)
    ('32 nodes', '32 nodes; it needs 41', '1 node')
    """
    return f"{static:,} node{'s' if static != 1 else ''}" + (f"; it needs {static + missing:,}" if missing else "")


def figure(value: float) -> str:
    """Three significant digits, and never fewer than the whole number has.

    >>> figure(1221.4), figure(52.0), figure(8.24), figure(0.0712), figure(0.0), figure(math.inf)
    ('1,221', '52.0', '8.24', '0.0712', '0', 'unlimited')
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "unlimited" if value > 0 else "missing"
    decimals = 2 - math.floor(math.log10(abs(value)))
    if decimals <= 0:
        return f"{value:,.0f}"
    return f"{value:.{decimals}f}" if decimals <= 6 else f"{value:.2e}"


def percent(share: float, decimals: int = 0) -> str:
    """A share in percent.

    >>> percent(0.714), percent(0.9473, 1)
    ('71 %', '94.7 %')
    """
    return f"{share * 100:,.{decimals}f} %"


def share_kept(share: float) -> str:
    """A share in percent with the decimal that matters, rounded down: what was missed shows; missing without any.

    >>> share_kept(0.9783), share_kept(0.99996), share_kept(1.0), share_kept(math.nan)
    ('97.8 %', '99.9 %', '100 %', '–')
    """
    if math.isnan(share):
        return "–"
    return "100 %" if share == 1.0 else f"{math.floor(share * 1000 + 1e-9) / 10:.1f} %"


def percent_pair(share: float, against: float) -> tuple[str, str]:
    """Two shares with as many decimals as it takes to tell them apart (three at most).

    >>> percent_pair(0.9473, 0.95), percent_pair(0.71, 0.95)
    (('94.7 %', '95.0 %'), ('71 %', '95 %'))
    """
    for decimals in range(4):
        pair = percent(share, decimals), percent(against, decimals)
        if pair[0] != pair[1]:
            break
    return pair


def small_percent(share: float) -> str:
    """A small share in percent, two significant digits at most, none needless; rounding noise is 0.

    >>> small_percent(0.003), small_percent(0.00042), small_percent(0.123), small_percent(3e-6), small_percent(1e-15)
    ('0.3 %', '0.042 %', '12 %', '<0.001 %', '0 %')
    """
    value = share * 100.0
    if not math.isfinite(value):
        return "unknown"
    if abs(value) < 0.001:
        return "0 %" if abs(value) < 1e-9 else "<0.001 %"
    decimals = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"


def more_or_less(share: float) -> str:
    """A small share as what something costs more, or less, than something else.

    >>> more_or_less(0.123), more_or_less(0.0), more_or_less(-0.00083)
    ('12 % more', '0 % more', '0.083 % less')
    """
    return f"{small_percent(abs(share))} {'less' if share < -1e-11 else 'more'}"


def target_share(share: float) -> str:
    """Wait as a share of its target: rounded up above 100, so that a miss never reads as met; no space, for tables.

    >>> target_share(0.478), target_share(1.001), target_share(123.0), target_share(math.inf)
    ('48%', '101%', '>999%', 'unstable')
    """
    if not math.isfinite(share):
        return "unstable"
    value = math.ceil(share * 100.0 - 1e-9) if share > 1 else round(share * 100.0)
    return f"{value}%" if value <= 999 else ">999%"


def wait(seconds: float) -> str:
    """A wait in seconds, two significant digits and whole above ten.

    >>> wait(0.913), wait(71.2), wait(1534.0), wait(0.0004), wait(math.inf), wait(math.nan)
    ('0.91s', '71s', '1,534s', '<1ms', 'unstable', '–')
    """
    if not math.isfinite(seconds):
        return "–" if math.isnan(seconds) else "unstable"
    if seconds == 0:
        return "0s"
    if seconds < 0.001:
        return "<1ms"
    decimals = max(0, 1 - math.floor(math.log10(seconds)))
    return f"{seconds:,.{decimals}f}s"


def minutes(seconds: float) -> str:
    """A lead in whole minutes, rounded up; a dash where there is none.

    >>> minutes(5700), minutes(0), minutes(10)
    ('95m', '-', '1m')
    """
    return f"{math.ceil(seconds / 60 - 1e-9)}m" if seconds > 0 else "-"
