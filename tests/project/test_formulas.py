# SPDX-License-Identifier: BSD-3-Clause
"""Formulas: every page of the documentation becomes HTML with MathML, and no dollar is left."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import markdown
import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
HOOK = runpy.run_path(str(ROOT / "docs" / "formulas.py"))
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def as_on_the_site(text):
    named = [entry if isinstance(entry, dict) else {entry: {}} for entry in SITE["markdown_extensions"]]
    options = {name: given for entry in named for name, given in entry.items()}
    page = markdown.markdown(text, extensions=list(options), extension_configs=options)
    return HOOK["on_page_content"](page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_formulas_become_mathml(page):
    text = page.read_text()
    html = as_on_the_site(text)
    outside = re.sub(r"<(code|pre)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert "$" not in outside
    found = re.findall(r"<math\b.*?</math>", html, re.DOTALL)
    for formula in found:
        assert len(list(ElementTree.fromstring(formula).iter())) > 1
    if page.parent.name == "tour" and page.stem != "index":
        assert found, "the pages of the tour have formulas"


def test_the_site_uses_the_hook():
    assert "docs/formulas.py" in SITE["hooks"]


def test_formulas_in_a_line_and_on_their_own():
    html = as_on_the_site("With $a_1 < 2$ and\n\n$$\\max_{x} f(x)$$\n\nthe price is `$5`.")
    assert html.count("<math") == 2
    assert 'display="inline"' in html
    assert 'display="block"' in html
    assert "<munder><mo>max</mo>" in html
    assert "<code>$5</code>" in html


@pytest.mark.parametrize("wrong", [r"$\nosuchcommand{x}$", "a $x without an end", "$a & b$"])
def test_what_cannot_be_shown_is_refused(wrong):
    with pytest.raises(ValueError, match="formula"):
        as_on_the_site(wrong)
