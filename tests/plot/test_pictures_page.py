# SPDX-License-Identifier: BSD-3-Clause
"""The page on pictures shows what its code draws. That the code runs, test_documentation.py sees."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from PIL import Image

from figure_boxes import assert_nothing_is_hidden

DRAW = runpy.run_path(str(Path(__file__).parent.parent.parent / "docs" / "pictures" / "draw.py"))
LARGEST = {".png": 80_000, ".gif": 300_000}
"""Bytes, so that the page is there at once."""


def test_the_page_shows_what_its_code_draws():
    drawn = DRAW["run"]()
    stored = {file.name for file in DRAW["FOLDER"].iterdir() if file.suffix in LARGEST}
    assert stored == set(drawn), "run docs/pictures/draw.py"
    for name, picture in drawn.items():
        file = DRAW["FOLDER"] / name
        assert file.stat().st_size < LARGEST[file.suffix], name
        figure, dpi = getattr(picture, "figure", picture), DRAW["DPI"][file.suffix[1:]]
        with Image.open(file) as image:
            assert image.size == pytest.approx(figure.get_size_inches() * dpi, abs=1), name
            if file.suffix == ".gif":
                assert image.n_frames == len(picture), name
        assert_nothing_is_hidden(figure)
