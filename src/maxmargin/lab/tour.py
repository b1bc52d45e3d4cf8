# SPDX-License-Identifier: BSD-3-Clause
"""The tour's pages as the laboratory shows them: the same Markdown, with links that lead to its benches.

A wheel holds them in pages/tour; in the repository they lie in docs/tour.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from maxmargin.lab.benches import benches

_LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
_BENCH_PICTURE = re.compile(r'<img [^>]*src="\.\./lab/[^"]*"[^>]*>')
_STYLE = re.compile(r'style="text-align: (left|right|center);?"')
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="../static/icon.svg"><link rel="stylesheet" href="../static/lab.css">
</head>
<body class="lab"><header><h1>maxmargin <span>tour</span></h1><nav>{ways}</nav></header>
<main><article>{content}</article></main></body>
</html>
"""


@cache
def folder() -> Path:
    """Where the tour's pages are."""
    own = Path(__file__).parent / "pages" / "tour"
    return own if own.is_dir() else Path(__file__).parents[3] / "docs" / "tour"


@cache
def stems() -> list[str]:
    """The names of all pages, in their order; the list of them is "index"."""
    return ["index", *sorted(page.stem for page in folder().glob("[0-9]*.md"))]


@cache
def page(stem: str, token: str) -> str:
    """A page as HTML; links to other pages and to benches carry the token."""
    import markdown

    from maxmargin.lab.formulas import with_formulas

    text = (folder() / f"{stem}.md").read_text(encoding="utf-8")
    content = markdown.markdown(
        text,
        extensions=["tables", "pymdownx.superfences", "pymdownx.arithmatex"],
        extension_configs={
            "pymdownx.arithmatex": {
                "generic": True,
                "block_syntax": ["dollar"],
                "inline_syntax": ["dollar"],
            },
            "pymdownx.superfences": {"disable_indented_code_blocks": False},
        },
    )
    content = _BENCH_PICTURE.sub("", with_formulas(content))
    content = _LINK.sub(lambda found: _linked(found[1], found[2], token), content)
    # What the site says by styles, a strict policy wants said by classes.
    content = _STYLE.sub(r'class="\1"', content)
    content = content.replace('style="overflow: auto hidden; padding: 0.3em 0"', 'class="formula"')
    title = text.partition("\n")[0].lstrip("# ")
    return _PAGE.format(title=title, ways=_ways(stem, token), content=content)


def anchor(title: str) -> str:
    """What a heading can be called by in a link."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower())).strip("-")


def _linked(target: str, words: str, token: str) -> str:
    """A link to what the laboratory has; of others the words alone."""
    path, _, place = target.partition("#")
    bench = next((name for name, bench in benches().items() if anchor(bench.title) == place), None)
    if path == "../lab.md" and bench is not None:
        return f'<a href="../?token={token}#{bench}">{words}</a>' if words else ""
    stem = path.removesuffix(".md")
    if path.endswith(".md") and stem in stems():
        return f'<a href="{stem}.html?token={token}{"#" + place if place else ""}">{words}</a>'
    return words


def _ways(stem: str, token: str) -> str:
    """Links to the pages around, and to the laboratory."""
    place = stems().index(stem)
    ways = {"All pages": "index"}
    if place > 1:
        ways["Back"] = stems()[place - 1]
    if place + 1 < len(stems()):
        ways["On"] = stems()[place + 1]
    links = [f'<a href="{each}.html?token={token}">{words}</a>' for words, each in ways.items()]
    return "".join([*links, f'<a href="../?token={token}">Laboratory</a>'])
