"""The page in a real browser: it loads nothing, its areas are the plan's hours, it fits phones and dark rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ebbtide.adapters.report.inputs import ReportInput
from ebbtide.adapters.report.render import render_report

# The area of a path of straight lines, in square pixels of the drawing: a ring's signed area, summed over its rings.
AREA = """path => {
  let area = 0, ring = [], x = 0, y = 0;
  const close = () => {
    for (let i = 0; i < ring.length; i++) {
      const [a, b] = ring[i], [c, d] = ring[(i + 1) % ring.length];
      area += (a * d - c * b) / 2;
    }
    ring = [];
  };
  for (const [, letter, numbers] of path.getAttribute("d").matchAll(/([MLHVZ])([^MLHVZ]*)/g)) {
    const values = numbers.split(",").map(Number);
    if (letter === "Z") { close(); continue; }
    if (letter === "H") x = values[0];
    else if (letter === "V") y = values[0];
    else [x, y] = values;
    ring.push([x, y]);
  }
  return Math.abs(area);
}"""


@dataclass
class Opened:
    """A page, what it asked the network for and what it complained of."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def hours_per_day(self, kind: str) -> float:
        """GPU-hours a day of one band over all pools, measured on the wide drawings."""
        total = 0.0
        for drawing in self.page.locator("svg.tide.wide").all():
            worth = float(drawing.get_attribute("data-gpu-hours-per-px2") or "nan")
            days = float(drawing.get_attribute("data-cycle-days") or "nan")
            for path in drawing.locator(f"path.{kind}").all():
                total += float(path.evaluate(AREA)) * worth / days
        return total

    def overflow(self) -> float:
        """Pixels by which the page is wider than its window."""
        return float(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


class Opener:
    """Writes reports and opens them offline."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.folder, self.contexts = browser, folder, []

    def __call__(self, plan: ReportInput, *, width: int = 1200, scheme: str = "light", script: bool = True) -> Opened:
        file = self.folder / "report.html"
        file.write_text(render_report(plan), encoding="utf-8")
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
            java_script_enabled=script,
        )
        context.set_default_timeout(
            300_000
        )  # a page that never opens fails; a machine with much to do may take its time
        self.contexts.append(context)
        opened = Opened(page=context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(file.as_uri())
        assert opened.requests == [file.as_uri()]
        return opened


@pytest.fixture
def open_report(chromium: Browser, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(chromium, tmp_path)
    yield opener
    for context in opener.contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1400])
def test_it_loads_nothing_complains_of_nothing_and_fits(
    open_report: Opener, short_plan: ReportInput, width: int, scheme: str
) -> None:
    opened = open_report(short_plan, width=width, scheme=scheme)
    assert opened.complaints == []
    assert opened.overflow() <= 0
    wide, narrow = opened.page.locator("svg.tide.wide"), opened.page.locator("svg.tide.narrow")
    assert wide.is_visible() is (width > 600)
    assert narrow.is_visible() is (width <= 600)


def assert_areas_are_hours(opened: Opened, plan: ReportInput) -> None:
    hours = plan.explanation.gpu_hours_per_day
    research = opened.hours_per_day("research") + opened.hours_per_day("reserved")
    assert research == pytest.approx(hours.research, rel=0.01)
    assert opened.hours_per_day("production") == pytest.approx(hours.production, rel=0.01)
    assert opened.hours_per_day("moving") == pytest.approx(hours.moving, rel=0.02)


def test_the_areas_are_the_plans_gpu_hours(open_report: Opener, day_plan: ReportInput) -> None:
    assert_areas_are_hours(open_report(day_plan), day_plan)


def test_what_is_drawn_is_seen(open_report: Opener, day_plan: ReportInput) -> None:
    """Sizes on the screen, not in the file: the yielded area spans the day and stands on the allocation."""
    page = open_report(day_plan).page
    box = {kind: page.locator(f"svg.tide.wide path.{kind}").first.bounding_box() for kind in ("research", "production")}
    band = page.locator("svg.tide.wide path.reserved").first.bounding_box()
    research, production = box["research"], box["production"]
    assert research is not None
    assert production is not None
    assert band is not None
    assert production["width"] == pytest.approx(band["width"], abs=1)
    assert research["y"] == pytest.approx(band["y"] + band["height"], abs=1)
    # The fleet is 320 GPUs: 200 at most in production, 64 reserved.
    fleet_px = production["y"] + production["height"] - band["y"]
    assert production["height"] / fleet_px == pytest.approx(200 / 320, abs=0.005)
    assert band["height"] / fleet_px == pytest.approx(64 / 320, abs=0.005)


def test_the_wave_stays_under_the_allocation_it_is_planned_for(open_report: Opener, day_plan: ReportInput) -> None:
    page = open_report(day_plan).page
    median = page.locator("svg.tide.wide path.median").bounding_box()
    production = page.locator("svg.tide.wide path.production").bounding_box()
    assert median is not None
    assert production is not None
    assert median["y"] > production["y"]


def test_the_pointer_reads_out_the_numbers(open_report: Opener, day_plan: ReportInput) -> None:
    opened = open_report(day_plan)
    chart, out = opened.page.locator("svg.tide.wide"), opened.page.locator(".readout")
    idle = out.inner_text()
    box = chart.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] * 0.47, box["y"] + box["height"] * 0.5)
    said = out.inner_text()
    assert said.startswith("10:"), said
    assert "production 200 GPUs" in said
    assert "research 120" in said
    assert "at the median (past: " in said
    opened.page.mouse.move(5, 5)
    assert out.inner_text() == idle
    assert opened.complaints == []


def test_without_script_all_numbers_are_there(open_report: Opener, day_plan: ReportInput) -> None:
    page = open_report(day_plan, script=False).page
    assert "research 3,877" in page.locator(".readout").inner_text()
    page.locator("summary", has_text="agents").click()
    assert page.locator("details", has_text="agents").locator("tbody tr").count() == 6
    assert "production 200 GPUs" in (page.locator("svg.tide.wide rect.window title").nth(3).text_content() or "")


def test_on_paper_everything_is_open_light_and_no_wider_than_the_sheet(
    open_report: Opener, day_plan: ReportInput
) -> None:
    opened = open_report(day_plan, width=718, scheme="dark")
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.overflow() <= 0
    assert opened.page.locator("details[open]").count() == 6
    ink = opened.page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert ink == "rgb(26, 32, 39)"


def test_a_week_of_hours_sixty_workloads_and_three_pools(open_report: Opener, week_plan: ReportInput) -> None:
    """The areas hold there too; on a phone wide tables scroll in their own boxes, the page does not."""
    opened = open_report(week_plan)
    assert_areas_are_hours(opened, week_plan)
    assert opened.page.locator("#waits tbody td").count() == 60 * 168
    opened.page.set_viewport_size({"width": 360, "height": 740})
    assert opened.overflow() <= 0
    inner = opened.page.locator("#waits .scroll").evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert inner[0] > 5 * inner[1]
    assert opened.page.locator("svg.tide.narrow").count() == 3
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_report: Opener, short_plan: ReportInput, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 for text in every cell of the matrix, the headline and the remarks."""
    page = open_report(short_plan, scheme=scheme).page
    low = page.evaluate(CONTRAST, ["#waits td", "#replicas td", ".remark", ".lede", "h1", ".notice h2", "thead th"])
    assert low == []


CONTRAST = """selectors => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = colours => {
    context.clearRect(0, 0, 1, 1);
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  for (const selector of selectors) for (const element of document.querySelectorAll(selector)) {
    const grounds = [];
    for (let at = element; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor);
    const ground = light(pixel(grounds)), ink = light(pixel([...grounds, getComputedStyle(element).color]));
    const ratio = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
    if (ratio < 4.5) low.push([selector, element.textContent.trim().slice(0, 30), ratio]);
  }
  return low;
}"""
