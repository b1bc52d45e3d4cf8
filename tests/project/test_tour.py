# SPDX-License-Identifier: BSD-3-Clause
"""The tour: what its pages show is what their code prints and draws, and the site finds every page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib.image
import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
TOUR = runpy.run_path(str(DOCS / "tour" / "pictures.py"))
PAGES = TOUR["PAGES"]
LARGEST_PICTURE = 80_000
"""Bytes. A page with its picture is there at once, also over a slow line."""


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
    picture = page.with_suffix(".png")
    height, width = matplotlib.image.imread(picture).shape[:2]
    assert (width, height) == pytest.approx(figure.get_size_inches() * 90, abs=1)
    assert picture.stat().st_size < LARGEST_PICTURE


def test_the_tour_is_in_order_and_complete():
    index = (DOCS / "tour" / "index.md").read_text()
    titles = re.findall(r"^\| \[(\d+\. .*?)\]\((.*?)\)", index, re.MULTILINE)
    assert [file for _, file in titles] == [page.name for page in PAGES]
    for k, ((title, _), page) in enumerate(zip(titles, PAGES, strict=True), start=1):
        assert page.name.startswith(f"{k:02}_")
        assert page.read_text().startswith(f"# {title}\n")
        assert title.startswith(f"{k}. ")
    assert f"{len(PAGES)} short pages" in index


def test_no_picture_is_left_without_its_page():
    assert {picture.stem for picture in DOCS.glob("tour/*.png")} == {page.stem for page in PAGES}


def test_the_site_names_every_page():
    site = (DOCS.parent / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert str(page.relative_to(DOCS)) in site, f"add {page.name} to the navigation in mkdocs.yml"
