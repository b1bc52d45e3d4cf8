# SPDX-License-Identifier: BSD-3-Clause
"""Run the code of the tour's pages: ``python docs/tour/pictures.py`` makes every picture and output anew.

``python docs/tour/pictures.py 02 17`` does so for the pages whose names begin with 02 and 17.

The picture of a page is the figure that its code draws; a ``text`` block is what the code before it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

FOLDER = Path(__file__).parent
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem[:1].isdigit())
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run(page: Path) -> tuple[str, Figure]:
    """The text of the page with its real outputs, and the figure it draws."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    session: dict[str, object] = {}

    def with_output(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], str(page), "exec"), session)
        output = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{block[1]}```\n{output}"

    pyplot.close("all")
    text = _BLOCK.sub(with_output, page.read_text())
    figure = pyplot.gcf()
    pyplot.close("all")
    return text, figure


def save(figure: Figure, path: Path) -> None:
    """A PNG of 64 colours: half as large as one of all colours, and the eye sees no difference."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)


def main(*beginnings: str) -> None:
    """The pages with these beginnings; without any, all."""
    for page in (page for page in PAGES if page.name.startswith(beginnings or ("",))):
        text, figure = run(page)
        page.write_text(text)
        save(figure, page.with_suffix(".png"))


if __name__ == "__main__":
    main(*sys.argv[1:])
