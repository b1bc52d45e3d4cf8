# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the benches: ``python docs/lab/pictures.py`` makes them anew, with Chromium and Playwright.

``python docs/lab/pictures.py margin smo`` makes those of two benches.
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from maxmargin.lab.benches import benches
from maxmargin.lab.server import Server

FOLDER = Path(__file__).parent
PLACES = {
    "margin": "margin?hulls=true",
    "kernels": "kernels?data=spiral&gamma=3.16&C=100",
    "optimisers": "optimisers?method=pegasos&average=T_0",
    "smo": "smo?step=12",
}
"""Where a bench shows more than at its beginning."""


def main(*names: str) -> None:
    """The benches of these names; without any, all."""
    server = Server()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1200, "height": 800}, color_scheme="light")
            for name in names or benches():
                page.goto("about:blank")
                page.goto(f"{server.address}#{PLACES.get(name, name)}")
                page.wait_for_selector(".bench[aria-busy=false]")
                assert page.locator(".refusal").is_hidden(), page.locator(".refusal").text_content()
                drawn = Image.open(io.BytesIO(page.locator(".bench").screenshot()))
                drawn.convert("RGB").quantize(64).save(FOLDER / f"{name}.png", optimize=True)
            browser.close()
    finally:
        server.end()
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
