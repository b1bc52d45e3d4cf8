# SPDX-License-Identifier: BSD-3-Clause
"""Run the code of the tour's pages: ``python docs/tour/pictures.py`` makes every picture and output anew.

The picture of a page is the figure that its code draws; a ``text`` block is what the code before it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

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


def main() -> None:
    """All pages."""
    for page in PAGES:
        text, figure = run(page)
        page.write_text(text)
        figure.savefig(page.with_suffix(".png"), dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    main()
