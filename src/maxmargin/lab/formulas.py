# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of the pages as MathML; browsers draw it without a script.

In the source a formula stands between dollars: ``$w$`` in a line, ``$$ ... $$`` on lines of its own. The
Markdown extension ``pymdownx.arithmatex`` finds them, ``latex2mathml`` translates them.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What arithmatex leaves: \(...\) in a span, \[...\] in a div.
_FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_CODE = re.compile(r"<(code|pre|script)\b.*?</\1>", re.DOTALL)
_UNDER = re.compile(r"\\(max|min|sup|inf)_")

# Browsers align cells by style, not by attribute, set bars of a norm apart from what they enclose, and draw
# the asterisk of an optimum too high.
_DRAWN_BETTER = {
    'columnalign="left"': 'style="text-align: left"',
    'columnalign="right"': 'style="text-align: right"',
    '<mo stretchy="false">&#x0007C;</mo>': '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;</mo>',
    "<mo>&#x0002A;</mo>": "<mo>&#x02217;</mo>",
}


def mathml(formula: str, *, block: bool) -> str:
    """One formula as a ``math`` element; an unknown command or a stray ``&`` is an error."""
    if block:
        # In a line of its own what is below "max" stands under it, not beside it.
        formula = _UNDER.sub(r"\\\1\\limits_", formula)
    found = convert(formula, display="block" if block else "inline")
    if "\\" in found or "<mi>&</mi>" in found:
        raise ValueError(f"latex2mathml does not know all of this formula: {formula}")
    for name, cure in _DRAWN_BETTER.items():
        found = found.replace(name, cure)
    # A formula that is wider than the screen is moved, not the page.
    return f'<div style="overflow: auto hidden; padding: 0.3em 0">{found}</div>' if block else found


def with_formulas(page: str) -> str:
    """The HTML of a page with MathML in the place of its formulas."""
    page = _FOUND.sub(lambda found: mathml(html.unescape(found[2]).strip(), block=found[1] == "div"), page)
    if "$" in _CODE.sub("", page):
        raise ValueError("A dollar is left over: a formula has no end, or begins or ends with a space.")
    return page
