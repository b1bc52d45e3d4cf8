# SPDX-License-Identifier: BSD-3-Clause
"""Draw what docs/pictures.md shows: ``python docs/pictures/draw.py`` runs its code and saves every picture.

A picture below a block of code is what the block has drawn: the last figure or, where it is a GIF, the film
that the block calls ``film``.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parent
PAGE = FOLDER.with_suffix(".md")
DPI = {"png": 90, "gif": 70}
"""Pixels per inch: films have some hundred kilobytes each."""
_PART = re.compile(r"^```python\n(.*?)^```|\]\(pictures/([\w.]+)\)", re.MULTILINE | re.DOTALL)


def run() -> dict[str, Any]:
    """The page's pictures: by name a figure, or a film."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    session: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for code, picture in _PART.findall(PAGE.read_text()):
        if picture:
            found[picture] = session["film"] if picture.endswith(".gif") else pyplot.gcf()
        else:
            exec(compile(code, str(PAGE), "exec"), session)
    pyplot.close("all")
    return found


def main() -> None:
    """Save them all, pictures with 200 colours: smaller than with all, and the eye sees no difference."""
    for name, drawn in run().items():
        if name.endswith(".gif"):
            drawn.save(FOLDER / name, dpi=DPI["gif"])
        else:
            written = io.BytesIO()
            drawn.savefig(written, dpi=DPI["png"])
            Image.open(written).convert("RGB").quantize(200).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
