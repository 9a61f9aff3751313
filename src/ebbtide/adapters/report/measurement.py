"""From a measurement to its page: bad share against rate with the interval, the profile, the steps, the facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, log10

from markupsafe import Markup

from ebbtide.adapters.report.figures import figure
from ebbtide.adapters.report.render import Figure, page_environment, page_source

WIDTH, HEIGHT = 1000, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 22, 46
SMALL_WIDTH, SMALL_HEIGHT = 480, 230
# Bad shares are drawn on a logarithmic axis from this share of what is allowed; what is less lies on its floor.
FLOOR = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPoint:
    """One step as one limit saw it: its bad share with the interval of it, and whether it belongs to the fit."""

    number: int
    rate_rps: float
    share: float
    low: float
    high: float
    block: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitShares:
    """All steps against one limit; ``slope`` of the fitted line in the log odds by the rate, where it binds."""

    name: str
    allowed: float
    points: tuple[StepPoint, ...]
    at_rps: float | None = None
    slope: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPage:
    """What the page says; ``low_rps`` and ``high_rps`` None: no bound on both sides."""

    version: str
    name: str
    headline: str
    lede: str
    low_rps: float | None
    high_rps: float | None
    figures: tuple[Figure, ...]
    warnings: tuple[str, ...]
    limits: tuple[LimitShares, ...]
    profile: tuple[tuple[float, float, float], ...]
    percentile: float
    steps: tuple[tuple[str, ...], ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A step drawn: its place, the ends of its bar, what the pointer is told."""

    x: float
    y: float
    low_y: float
    high_y: float
    look: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A limit's chart in pixels."""

    name: str
    description: str
    dots: tuple[Dot, ...]
    limit_y: float
    limit_text: str
    band: tuple[float, float] | None
    line: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of the profile in pixels."""

    title: str
    description: str
    path: str
    dots: tuple[tuple[float, float, str], ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


def render_measurement(page: MeasurementPage) -> str:
    """The whole page as text: one file without script or address; the same bytes for the same measurement."""
    drawn = sorted(page.limits, key=lambda one: one.slope is None)
    return (
        page_environment()
        .get_template("measurement.html")
        .render(
            page=page,
            style=Markup(page_source("report.css") + page_source("measurement.css")),  # our own, no input in them
            drawings=[drawing(one, page.low_rps, page.high_rps) for one in drawn if _worth_drawing(one)],
            quiet=[one.name for one in drawn if not _worth_drawing(one)],
            curves=list(_curves(page)),
            box=(LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM),
            small=(LEFT, SMALL_WIDTH - RIGHT, TOP, SMALL_HEIGHT - BOTTOM),
        )
    )


def _worth_drawing(limit: LimitShares) -> bool:
    """Whether any step came near it."""
    return limit.slope is not None or any(point.share > FLOOR * limit.allowed for point in limit.points)


def drawing(limit: LimitShares, low_rps: float | None, high_rps: float | None) -> Drawing:
    """The chart of one limit; the band is the claimed interval."""
    rates = [point.rate_rps for point in limit.points]
    most = 1.06 * max(rates, default=1.0)
    if high_rps is not None:
        most = min(most, 2.0 * high_rps)
    shown = [point for point in limit.points if point.rate_rps <= most]
    floor, top = FLOOR * limit.allowed, 1.0

    def x(rate: float) -> float:
        return round(LEFT + (WIDTH - RIGHT - LEFT) * min(rate / most, 1.0), 1)

    def y(share: float) -> float:
        part = (log10(max(share, floor)) - log10(floor)) / (log10(top) - log10(floor))
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(part, 1.0), 1)

    band = None if low_rps is None or high_rps is None else (x(low_rps), max(x(high_rps), x(low_rps) + 1.0))
    return Drawing(
        name=limit.name,
        description=f"{len(shown)} steps; {_percent(limit.allowed)} may be bad"
        + ("" if band is None else f"; the rate lies between {figure(low_rps or 0)} and {figure(high_rps or 0)}"),
        dots=tuple(_dot(point, x, y) for point in shown),
        limit_y=y(limit.allowed),
        limit_text=f"{_percent(limit.allowed)} allowed",
        band=band,
        line=_fitted(limit, x, y),
        x_ticks=tuple((x(value), f"{value:g}") for value in ticks(most)),
        y_ticks=tuple((y(share), _percent(share)) for share in _decades(floor)),
    )


def _dot(point: StepPoint, x, y) -> Dot:  # type: ignore[no-untyped-def] # two scales of this module
    return Dot(
        x=x(point.rate_rps),
        y=y(point.share),
        low_y=y(point.low),
        high_y=y(point.high),
        look="block" if point.block else "bracket",
        text=f"step {point.number}: {figure(point.rate_rps)} a second, {_percent(point.share)} bad "
        f"({_percent(point.low)} to {_percent(point.high)})",
    )


def _fitted(limit: LimitShares, x, y) -> str:  # type: ignore[no-untyped-def] # two scales of this module
    """The fitted line, over the tenth on both sides that it is fitted on."""
    if limit.slope is None or limit.at_rps is None:
        return ""
    points = []
    for step in range(-10, 11):
        rate = limit.at_rps * (1.0 + 0.01 * step)
        odds = log(limit.allowed / (1.0 - limit.allowed)) + limit.slope * 0.01 * step
        points.append(f"{x(rate)},{y(1.0 / (1.0 + exp(-odds)))}")
    return "M" + "L".join(points)


def _curves(page: MeasurementPage) -> Iterator[Curve]:
    if len(page.profile) < 2:
        return
    concurrency = [row[0] for row in page.profile]
    throughput, latency = [row[1] for row in page.profile], [row[2] for row in page.profile]
    yield curve("answers a second", concurrency, throughput)
    yield curve(f"P{100 * page.percentile:g} latency, s", concurrency, latency)


def curve(title: str, xs: Sequence[float], ys: Sequence[float]) -> Curve:
    """One quantity against requests in flight.

    >>> curve("answers a second", [1.0, 2.0], [10.0, 15.0]).path
    'M260.0,76.0L456.0,22.0'
    """
    most_x, most_y = max(xs), max(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        right, bottom = SMALL_WIDTH - RIGHT, SMALL_HEIGHT - BOTTOM
        return (
            round(LEFT + (right - LEFT) * x / max(most_x, 1e-12), 1),
            round(bottom - (bottom - TOP) * y / max(most_y, 1e-12), 1),
        )

    places = [place(x, y) for x, y in zip(xs, ys, strict=True)]
    return Curve(
        title=title,
        description=f"{title}: {figure(ys[0])} at {figure(xs[0])} in flight, {figure(ys[-1])} at {figure(xs[-1])}",
        path="M" + "L".join(f"{x},{y}" for x, y in places),
        dots=tuple((*at, f"{figure(x)} in flight: {figure(y)}") for at, x, y in zip(places, xs, ys, strict=True)),
        x_ticks=tuple((place(value, 0.0)[0], f"{value:g}") for value in ticks(most_x)),
        y_ticks=tuple((place(0.0, value)[1], f"{value:g}") for value in ticks(most_y)),
    )


def ticks(most: float) -> list[float]:
    """Four to nine round values from 0 up.

    >>> ticks(130.0)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]
    """
    if not most > 0.0 or not isfinite(most):
        return [0.0]
    raw = most / 6.0
    power = 10.0 ** int(f"{raw:e}".split("e")[1])
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= 0.9 * raw)
    return [step * number for number in range(int(most / step) + 1)]


def _decades(floor: float) -> list[float]:
    shares, share = [], 1.0
    while share >= floor:
        shares.append(share)
        share = round(share / 10.0, 12)
    return shares


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}\N{NO-BREAK SPACE}%"
