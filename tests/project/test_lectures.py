# SPDX-License-Identifier: BSD-3-Clause
"""The list of all that the lectures have: every row names its code, page and test, and they exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from test_documentation import anchors

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "lectures.md"
SOURCES = runpy.run_path(str(ROOT / "docs" / "sources.py"))
ROWS_OF = {"000": 49, "001": 21, "002": 20, "003": 61, "004": 31}
"""Rows of each lecture, counted in the texts."""
LINK = re.compile(r"\[`?([^\]`]+)`?\]\(([^)#]+)(?:#([^)]+))?\)")


def tables():
    """The cells of the rows of each lecture."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")][1:]
        found[part[:3]] = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return found


TABLES = tables()


def test_every_row_of_the_lectures_is_here():
    assert {name: len(rows) for name, rows in TABLES.items() if name in ROWS_OF} == ROWS_OF
    assert f"{sum(ROWS_OF.values())} definitions" in PAGE.read_text()


@pytest.mark.parametrize("lecture", ROWS_OF)
def test_code_pages_and_tests_exist(lecture):
    for where, what, code, page, test in TABLES[lecture]:
        assert where
        assert what
        for cell in (code, page, test):
            assert LINK.findall(cell), f"{lecture}, {where}, {what}: a link is missing in '{cell}'"
        for name, target, _ in LINK.findall(code):
            defined(name, target)
        for _, target, anchor in LINK.findall(page):
            found = PAGE.parent / target
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), f"{target} has no {anchor}"
        for name, target, _ in LINK.findall(test):
            assert name.startswith("test_")
            defined(name, target)


def defined(name, target):
    """The file of a link defines the name, or is called so."""
    path = (PAGE.parent / target).resolve()
    assert path.is_relative_to(ROOT)
    assert path.exists(), f"{name} is said to be in {target}"
    assert path.stem == name or SOURCES["line_of"](name, path.read_text()), (
        f"{target} does not define {name}"
    )


def test_words_are_in_order_and_lead_to_pages():
    words = [word.lower() for word, _ in TABLES["Wor"]]
    assert words == sorted(words)
    assert len(words) == len(set(words)) > 50


def test_the_line_of_a_name():
    text = "A: int = 1\n\n\nclass B:\n    def c(self): ...\n\n\ndef d(): ...\n"
    assert [SOURCES["line_of"](name, text) for name in ("A", "B", "B.c", "d", "e")] == [1, 4, 5, 8, None]


def test_on_the_site_links_lead_to_pages_of_their_files():
    given = "see [`line`](../src/maxmargin/plot/styles.py) and [a page](path.md)"
    found = SOURCES["on_page_markdown"](given + " [`test_words`](../tests/reductions/test_hard_margin.py)")
    assert "[words](source/tests/reductions/test_hard_margin.py.md#" in found
    assert re.search(r"\(source/src/maxmargin/plot/styles.py.md#__span-0-\d+\)", found)
    assert "[a page](path.md)" in found
