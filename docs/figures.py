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
READABLE = 0.7
"""The share of a picture's size below which its letters, of some ten pixels, are too small."""


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG, in pixels: they stand in its header."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """MkDocs calls this for every page, whose links are by now those of the site."""
    folder = Path(config["docs_dir"])

    def linked(found: re.Match[str]) -> str:
        before, source, after = found.groups()
        # The page's own folder in the site stands for its name: what is "../x.png" there lies beside it.
        place = (folder / page.url / source).resolve()
        width, height = size(place)
        shape = f'width="{width}" height="{height}" loading="lazy"'
        kind = "figure"
        if width > PANELS * height:
            kind = "figure panels"
            shape += f' style="--full: {width}px; --readable: {READABLE * width:.0f}px"'
        return f'<a class="{kind}" href="{source}"><img {before}src="{source}"{after} {shape}></a>'

    return PICTURE.sub(linked, html)
