# SPDX-License-Identifier: BSD-3-Clause
"""Links from the documentation to code and tests: in the site they lead to pages that show the file.

In the repository ``[Polar](../src/maxmargin/features/polar.py)`` is a link to the file. The site has no
such files, so each that is linked becomes a page, and the link leads to the line that defines the name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\[`?([\w.]+)`?\]\(\.\./((?:src|tests)/[\w/]+\.py)\)")
"""The name in the brackets, and the file below the root of the repository."""


def line_of(name: str, text: str) -> int | None:
    """The line that defines a function, class, constant or, as ``Class.method``, method; None: nowhere."""
    last = name.rpartition(".")[2]
    found = re.search(rf"^[ \t]*(?:def|class) {last}\b|^{last}(?::[^=\n]+)? = ", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def on_files(files: Any, config: Any) -> Any:
    """MkDocs calls this once: the linked files become pages outside the navigation and the search."""
    from mkdocs.structure.files import File, InclusionLevel

    linked = {path for page in ROOT.glob("docs/*.md") for _, path in LINK.findall(page.read_text())}
    for path in sorted(linked):
        shown = f"# {path}\n\n``````python\n{(ROOT / path).read_text()}``````\n"
        text = f"---\nsearch:\n  exclude: true\n---\n\n{shown}"
        page = File.generated(
            config, f"source/{path}.md", content=text, inclusion=InclusionLevel.NOT_IN_NAV
        )
        files.append(page)
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs calls this for every page: its links to files lead to their pages."""

    def link(found: re.Match[str]) -> str:
        name, path = found.groups()
        line = line_of(name, (ROOT / path).read_text())
        # The name of a test is a sentence, and is shown as one.
        shown = name[5:].replace("_", " ") if name.startswith("test_") else f"`{name}`"
        return f"[{shown}](source/{path}.md{f'#__span-0-{line}' if line else ''})"

    return LINK.sub(link, markdown)
