# SPDX-License-Identifier: BSD-3-Clause
"""The tour: what its pages show is what their code prints and draws, and the site finds every page."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.image
import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
TOUR = runpy.run_path(str(DOCS / "tour" / "pictures.py"))
PAGES = TOUR["PAGES"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_show_their_real_output_and_picture(page):
    text, figure = TOUR["run"](page)
    assert text == page.read_text(), "run docs/tour/pictures.py"
    assert "```text\n" in text
    assert f"]({page.stem}.png)" in text
    for ax in figure.axes:
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert ax.lines or ax.collections
    # The stored picture has the size of the figure: it was not forgotten when the page changed.
    height, width = matplotlib.image.imread(page.with_suffix(".png")).shape[:2]
    assert (width, height) == pytest.approx(figure.get_size_inches() * 90, abs=1)


def test_the_tour_is_in_order_and_complete():
    index = (DOCS / "tour" / "index.md").read_text()
    places = [index.index(f"({page.name})") for page in PAGES]
    assert places == sorted(places)
    assert len(PAGES) == 12


def test_the_site_names_every_page():
    site = (DOCS.parent / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert str(page.relative_to(DOCS)) in site, f"add {page.name} to the navigation in mkdocs.yml"
