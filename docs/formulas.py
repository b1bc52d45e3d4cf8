# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of the pages as MathML when the site is built, as the laboratory has them for the tour."""

from __future__ import annotations

from typing import Any

from maxmargin.lab.formulas import with_formulas


def on_page_content(html: str, **_: Any) -> str:
    """MkDocs calls this for every page."""
    return with_formulas(html)
