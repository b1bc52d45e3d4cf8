# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the site: each leads to its file, in full size, and panels are not shrunk beyond reading."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

PICTURE = re.compile(r'<img ([^>]*)src="([^":]+\.png)"([^>]*?) ?/?>')
PANELS = 2.0
"""A picture that is so many times as wide as high has panels side by side."""
COLUMN = 830
"""Pixels between the two sides of a page in a window of 1280: a broader picture needs the right one."""
POINTS = 72
"""To the inch. Letters can be read where a point of a picture is a pixel of the screen or more."""
DENSITY = 90.0
"""Pixels to the inch of pictures that do not say it: those of the tour, which tour/pictures.py draws."""


def measures(path: Path) -> tuple[int, int, float]:
    """Width and height of a PNG in pixels, and its pixels to the inch."""
    data, at = path.read_bytes(), 8
    width, height, density = 0, 0, DENSITY
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8 : at + 16])
        elif kind == b"pHYs":
            density = 0.0254 * struct.unpack(">I", data[at + 8 : at + 12])[0]
        elif kind == b"IDAT":
            break
        at += 12 + length
    return width, height, density


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """MkDocs calls this for every page, whose links are by now those of the site."""
    folder = Path(config["docs_dir"])

    def linked(found: re.Match[str]) -> str:
        before, source, after = found.groups()
        # The page's own folder in the site stands for its name: what is "../x.png" there lies beside it.
        width, height, density = measures((folder / page.url / source).resolve())
        kinds, shape = ["figure"], f'width="{width}" height="{height}"'
        if width > PANELS * height:
            readable = width * POINTS / density
            kinds += ["panels", "broad"] if readable > COLUMN else ["panels"]
            shape += f' style="--full: {width}px; --readable: {readable:.0f}px"'
        picture = f'<img {before}src="{source}"{after} {shape}>'
        return f'<a class="{" ".join(kinds)}" href="{source}">{picture}</a>'

    return PICTURE.sub(linked, html)
