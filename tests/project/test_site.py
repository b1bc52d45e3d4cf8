# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site in a browser: nothing is cut off, both colour schemes, and the search finds.

A few pages are built here with the site's own theme, hooks and styles. Where MAXMARGIN_SITE names a folder,
it is the whole site, built before, and every page of it is looked at.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parent.parent.parent
SHOWN = ["index.md", "command_line.md", "algorithms/interior_point.md", "tour/09_steps.md"]
"""A table, long lines of a terminal, formulas in code, and a picture with panels."""
CUT_OFF = """() => {
    const scrolls = element => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
    const cut = element => {
        const box = element.getBoundingClientRect();
        if (box.width === 0 || box.right <= innerWidth + 1) return false;
        for (let around = element; around; around = around.parentElement)
            if (scrolls(around)) return false;
        return true;
    };
    const all = [...document.querySelectorAll(".md-content *")];
    return all.filter(cut).map(element => element.outerHTML.slice(0, 80));
}"""
"""What is beyond the right edge of the window and inside nothing that can be scrolled."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a built site."""
    if "MAXMARGIN_SITE" in os.environ:
        return Path(os.environ["MAXMARGIN_SITE"])
    build = pytest.importorskip("mkdocs.commands.build", reason="pip install '.[docs]'")
    from mkdocs.config import load_config

    pytest.importorskip("material", reason="pip install '.[docs]'")
    pages, built = tmp_path_factory.mktemp("docs"), tmp_path_factory.mktemp("site")
    for name in [*SHOWN, "style.css", "tour/09_steps.png", "lab/optimisers.png", "compare.png"]:
        (pages / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "docs" / name, pages / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(
            str(ROOT / "mkdocs.yml"),
            docs_dir=str(pages),
            site_dir=str(built),
            nav=SHOWN,
            plugins=["search"],
            hooks=["docs/figures.py", "docs/formulas.py"],
            validation={"links": {"not_found": "ignore", "anchors": "ignore"}},
        )
        build.build(config)
    return built


@pytest.fixture(scope="module")
def address(site):
    """Where a server shows it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_nothing_is_cut_off(site, address, chromium):
    names = sorted(str(page.parent.relative_to(site)) for page in site.rglob("index.html"))
    names = [name for name in names if not name.startswith("source/")]
    assert len(names) >= len(SHOWN)
    page, cut = chromium.new_page(), {}
    for name in names:
        page.goto(f"{address}{name}/")
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            cut[name, width] = page.evaluate(CUT_OFF)
            # The theme's drawer takes a moment to leave.
            page.wait_for_function("document.documentElement.scrollWidth <= innerWidth", timeout=5_000)
    page.close()
    assert {where: what for where, what in cut.items() if what} == {}


def test_code_of_a_page_fits_and_panels_stay_readable(address, chromium):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}command_line/")
    hidden = (
        "Array.from(document.querySelectorAll('pre')).filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert page.evaluate(hidden) == 0
    page.set_viewport_size({"width": 360, "height": 900})
    assert page.evaluate(hidden) > 0
    assert "gradient" in page.evaluate("getComputedStyle(document.querySelector('pre')).backgroundImage")
    page.goto(f"{address}tour/09_steps/")
    picture = page.locator(".figure.panels img").first
    assert picture.bounding_box()["width"] >= 0.79 * int(picture.get_attribute("width")), (
        "of 90 dots to the inch"
    )
    page.close()


def test_the_switch_goes_from_the_systems_scheme_to_light_and_to_dark(address, chromium):
    page = chromium.new_page(color_scheme="dark")
    page.goto(address)
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert page.evaluate(scheme) == "slate", "as the system says"
    seen = {}
    for _ in range(3):
        page.locator("form.md-header__option label:not([hidden])").click()
        seen[page.evaluate(scheme)] = sum(page.evaluate(brightness))
    assert set(seen) == {"default", "slate"}
    assert seen["default"] > 700 > 200 > seen["slate"]
    page.close()


def test_search_finds_a_page_by_its_words(address, chromium):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.locator(".md-search__input").click()
    page.keyboard.type("interior point predictor")
    found = page.locator(".md-search-result__link").first
    found.wait_for(timeout=10_000)
    assert "interior point" in found.inner_text().lower()
    found.click()
    page.wait_for_url("**/algorithms/interior_point/**")
    assert page.locator("h1").inner_text().startswith("The interior point method")
    page.close()
