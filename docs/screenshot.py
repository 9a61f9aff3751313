"""Makes ``docs/assets/report.png`` from the example: ``uv run python docs/screenshot.py`` (needs chromium)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "day-and-night" / "fleet.yaml"
PICTURE = ROOT / "docs" / "assets" / "report.png"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Plan the example, open its report offline, and picture it from the headline to the chart's legend."""
    browser_path = os.environ.get("EBBTIDE_CHROMIUM") or shutil.which("chromium")
    if browser_path is None:
        sys.exit("no browser: install chromium, or set EBBTIDE_CHROMIUM to one")
    with tempfile.TemporaryDirectory() as folder:
        command = ["ebbtide", "allocate", str(EXAMPLE), "-o", folder]
        subprocess.run(command, check=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
            page = browser.new_page(viewport={"width": 1080, "height": 900}, device_scale_factor=1.5)
            page.goto((Path(folder) / "report.html").as_uri())
            picture(page)
            browser.close()


def picture(page: Page) -> None:
    """The page down to the end of the first chart's section."""
    box = page.locator("#tide-1").bounding_box()
    assert box is not None
    clip = {"x": 0.0, "y": 0.0, "width": 1080.0, "height": box["y"] + box["height"] + 24.0}
    page.screenshot(path=PICTURE, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
