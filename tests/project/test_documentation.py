# SPDX-License-Identifier: BSD-3-Clause
"""The code in README and docs runs as it stands, each file from top to bottom in one session, and prints
the words that stand below it.

The tour's pages are run by test_tour.py, which compares what they print as well.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,.]*(?:e[+-]?\d+)?")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


TOUR = ROOT / "docs" / "tour"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent != TOUR], ids=lambda page: str(page.relative_to(ROOT))
)
def test_examples_run(page, capsys):
    blocks = BLOCK.findall(page.read_text())
    session: dict[str, object] = {}
    printed = ""
    for code, shown in blocks:
        exec(compile(code, str(page), "exec"), session)
        new = capsys.readouterr().out
        printed += new
        if shown:
            assert words(new) == words(shown), "examples print what they show"
    assert bool(printed) == bool(blocks)


def words(text):
    """A text without its numbers, whose last digits differ between machines, and their alignment."""
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{page.name} links to {target}#{anchor}"


def anchors(page):
    """What the headings of a page can be called by in a link."""
    titles = [re.sub(r"[^\w\s-]", "", title.lower()) for title in HEADING.findall(page.read_text())]
    return {re.sub(r"[-\s]+", "-", title).strip("-") for title in titles}


def test_every_solver_has_its_files():
    from maxmargin.solvers import SOLVERS

    for name in SOLVERS:
        for path in (
            f"src/maxmargin/solvers/{name}.py",
            f"tests/oracles/{name}.py",
            f"docs/algorithms/{name}.md",
        ):
            assert (ROOT / path).exists(), f"{name} has no {path}"


def test_pages_of_solvers_have_titles_in_words():
    from maxmargin.solvers import SOLVERS

    for name, solver in SOLVERS.items():
        title, _, text = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text().partition("\n")
        assert re.fullmatch(r"# [A-Z][a-z]+[\w ,'()]*", title), title
        assert "_" not in title
        assert f'`solver="{name}"`' in text.strip().partition("\n")[0]
        assert f"`{solver.__name__}`" in text.strip().partition("\n")[0]


COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "results").glob("*.md")), ids=lambda p: p.stem)
def test_how_a_page_was_made_is_a_comment_of_its_source(page):
    text = page.read_text()
    seen = COMMENT.sub("", text)
    assert "do not edit" not in seen
    assert "load average" not in seen
    if page.stem != "limits":
        assert re.match(r"# .*\n\n<!-- Written by `", text), "the comment stands below the title"


LECTURE = re.compile(r"(?<![\w.,#/-])00[0-4](?!\w|[.,]\d)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "lectures.md"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_lecture_numbers_are_explained_where_they_first_appear(page):
    from maxmargin.reproduce.base import LECTURES

    text, met = FENCED.sub("", page.read_text()), set()
    for paragraph in re.split(r"\n\n|(?<=\|)\n", text):
        new = set(LECTURE.findall(paragraph)) - met
        explained = "lectures.md" in paragraph or all(LECTURES[name] in paragraph for name in new)
        assert explained or not new, f"{page.name} has {', '.join(sorted(new))} before it says what that is"
        met |= new


README_COMMAND = re.compile(
    r"(?:^|`|<code>)maxmargin ((?:demo --save-data|info|train|certify|predict) [^`<\n]+)", re.M
)


def test_the_commands_of_the_readme_work_in_their_order(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    commands = README_COMMAND.findall((ROOT / "README.md").read_text())
    assert len(commands) == 7
    for command in commands:
        assert run(*command.split())[0] == 0, command
