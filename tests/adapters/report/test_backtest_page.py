"""The backtest's page in a real browser: it loads nothing, its areas are the hours, it fits phones and dark rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from ebbtide.adapters.report.backtest import BacktestPage, ScoreTable, render_backtest_page
from ebbtide.adapters.report.timeline import PoolTimeline, Steps, StretchTimeline, WorkloadTimeline

DAYS = 7
HOUR_S = 3600.0
WINDOWS = np.arange(0, DAYS * 24 + 1, 8) * HOUR_S


def steps(values: list[float], edges: np.ndarray = WINDOWS) -> Steps:
    tiled = np.resize(np.asarray(values, dtype=np.float64), len(edges) - 1)
    return Steps(edges_s=edges, values=tiled)


def timeline(name: str) -> StretchTimeline:
    hours = np.arange(0, DAYS * 24 + 1) * HOUR_S
    busy = 60 + 40 * np.sin(np.arange(DAYS * 24) / 24 * 2 * np.pi)
    busy[30:33] = np.nan
    waits = np.resize([0.4, 1.2, 0.0], len(WINDOWS) - 1)
    pool = PoolTimeline(
        pool="h100",
        gpus=320.0,
        production=steps([80, 200, 160]),
        moving=steps([0, 16, 8]),
        research=steps([240, 104, 152]),
        busy=Steps(edges_s=hours, values=busy),
        others=(("static", steps([256])), ("hindsight", steps([72, 190, 150]))),
        moves=42,
    )
    chat = WorkloadTimeline(
        workload="chat",
        replicas=steps([10, 25, 20]),
        busy=Steps(edges_s=hours, values=busy / 8),
        share=Steps(edges_s=WINDOWS, values=waits),
        wait_s=waits * 2.0,
        missed=waits > 1.0,
        measure="P95 wait, target wait 2s",
    )
    labels = tuple(f"09-{day:02}" for day in range(1, DAYS + 1))
    return StretchTimeline(name=name, days=DAYS, labels=labels, pools=(pool,), workloads=(chat, chat))


@pytest.fixture
def page() -> BacktestPage:
    headings = ("policy", "P95 wait", "regret")
    rows = (("static", "0.1s", "74.8 %"), ("ebbtide", "0.9s", "4.0 %"), ("hindsight", "1.4s", "–"))
    return BacktestPage(
        version="0.1.0",
        fleet="day-and-night",
        time_zone="Asia/Shanghai",
        headline="Research got 27,139 of 53,760 GPU-hours; 97.8 % of requests kept their targets",
        lede="1 week of demand replayed.",
        remarks=("Windows held are those of ebbtide's plan.",),
        policies=ScoreTable(caption="Policies", headings=headings, rows=rows),
        notes=(("static", "all day"), ("ebbtide", "margin × 1.15")),
        workloads=(ScoreTable(caption="chat", headings=headings, rows=rows),),
        stretches=(timeline("2026-09-08 to 2026-09-14"),),
    )


@dataclass
class Opened:
    page: Page
    requests: list[str]
    complaints: list[str]


class Opener:
    """Writes a page and opens it offline."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.file, self.contexts = browser, folder / "backtest.html", []

    def __call__(self, made: BacktestPage, *, width: int = 1200, scheme: str = "light") -> Opened:
        self.file.write_text(render_backtest_page(made), encoding="utf-8")
        dark = "dark" if scheme == "dark" else "light"
        viewport = {"width": width, "height": 900}
        context = self.browser.new_context(viewport=viewport, color_scheme=dark, offline=True)
        context.set_default_timeout(
            300_000
        )  # a page that never opens fails; a machine with much to do may take its time
        self.contexts.append(context)
        opened = Opened(page=context.new_page(), requests=[], complaints=[])
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(self.file.as_uri())
        assert opened.requests == [self.file.as_uri()]
        return opened


@pytest.fixture
def open_page(chromium: Browser, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(chromium, tmp_path)
    yield opener
    for context in opener.contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_loads_nothing_complains_of_nothing_and_fits(
    open_page: Opener, page: BacktestPage, width: int, scheme: str
) -> None:
    opened = open_page(page, width=width, scheme=scheme)
    assert opened.complaints == []
    assert opened.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(18, 22, 26)" if scheme == "dark" else "rgb(252, 252, 250)")


def test_the_bands_lie_on_each_other_in_their_shares(open_page: Opener, page: BacktestPage) -> None:
    shown = open_page(page).page
    chart = shown.locator("figure svg").first
    box = {kind: chart.locator(f"path.{kind}").bounding_box() for kind in ("production", "research")}
    assert box["production"] is not None
    assert box["research"] is not None
    bottom = box["production"]["y"] + box["production"]["height"]
    fleet_px = bottom - box["research"]["y"]
    assert box["production"]["height"] / fleet_px == pytest.approx(200 / 320, abs=0.01)  # research reaches the top
    assert chart.locator("path.other").count() == 2
    assert chart.locator("text", has_text="09-07").is_visible()


def test_missed_windows_are_red_and_counted(open_page: Opener, page: BacktestPage) -> None:
    shown = open_page(page).page
    first = shown.locator("ul.sparks li").first
    assert "7 of 21 windows over target, the longest 2.4s" in first.inner_text()
    red = first.locator("path.missed")
    assert red.evaluate("path => getComputedStyle(path).fill") == "rgb(179, 38, 30)"
    assert (red.get_attribute("d") or "").count("Z") == 7


def test_names_from_outside_are_text(open_page: Opener, page: BacktestPage) -> None:
    evil = replace(page, fleet="<script>alert(1)</script>", headline="<b>bold</b>")
    opened = open_page(evil)
    assert opened.complaints == []
    assert opened.page.locator("h1 b").count() == 0
    assert "<script>" in opened.page.locator(".eyebrow").inner_text()


def test_our_row_stands_out_and_details_open(open_page: Opener, page: BacktestPage) -> None:
    shown = open_page(page).page
    assert shown.locator("#policies tr.ours").inner_text().startswith("ebbtide")
    shown.locator("summary", has_text="chat").click()
    assert shown.locator("#workloads details table tbody tr").count() == 3
