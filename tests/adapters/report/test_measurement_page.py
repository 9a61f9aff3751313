"""The page of a measurement in a real browser: it loads nothing, draws the interval where it is, fits a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ebbtide.adapters.report.measurement import (
    LimitShares,
    MeasurementPage,
    StepPoint,
    drawing,
    render_measurement,
)
from ebbtide.adapters.report.render import Figure

POINTS = tuple(
    StepPoint(number=number, rate_rps=rate, share=share, low=0.5 * share, high=2.0 * share, block=number > 2)
    for number, (rate, share) in enumerate([(50.0, 0.0), (200.0, 0.6), (95.0, 0.03), (105.0, 0.07)], start=1)
)
PAGE = MeasurementPage(
    version="0.1.0",
    name="chat",
    headline="chat holds 97 to 103 requests a second",
    lede="Resolved.",
    low_rps=97.0,
    high_rps=103.0,
    figures=(Figure(name="limited by", value="latency", remark="fails first"),),
    warnings=("<script>alert(1)</script>",),
    limits=(
        LimitShares(name="errors", allowed=0.01, points=tuple(replace(one, share=0.0) for one in POINTS)),
        LimitShares(name="latency", allowed=0.05, points=POINTS, at_rps=100.0, slope=12.0),
    ),
    profile=((1.0, 10.0, 0.1), (8.0, 60.0, 0.3)),
    percentile=0.95,
    steps=(("1", "50", "400", "passes", "latency", "0 %", "5 %", "0.8 ms"),),
    facts=(("hardware", "not known"),),
)


def test_the_interval_and_the_fit_meet_the_limit() -> None:
    chart = drawing(PAGE.limits[1], PAGE.low_rps, PAGE.high_rps)
    assert chart.band is not None
    middle = chart.line.removeprefix("M").split("L")[10]
    x, y = map(float, middle.split(","))
    assert chart.band[0] < x < chart.band[1]
    assert y == pytest.approx(chart.limit_y, abs=0.2)
    assert [dot.look for dot in chart.dots] == ["bracket", "bracket", "block", "block"]
    assert chart.dots[0].y > chart.dots[2].y > chart.limit_y > chart.dots[3].y


def test_the_page_in_a_browser(chromium: Browser, tmp_path: Path) -> None:
    text = render_measurement(PAGE)
    assert "<script" not in text
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    asked: list[str] = []
    for width in (1080, 390):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "page.html").as_uri())
        assert [one for one in asked if not one.startswith(("file:", "data:"))] == []
        assert page.locator("section.limit").count() == 1
        assert page.locator("text=Never near their limit: errors.").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.close()


def test_without_an_interval_it_says_so() -> None:
    bare = replace(
        PAGE, low_rps=None, high_rps=None, limits=(replace(PAGE.limits[1], at_rps=None, slope=None),), profile=()
    )
    text = render_measurement(bare)
    assert 'class="interval"' not in text
    assert 'id="profile"' not in text
