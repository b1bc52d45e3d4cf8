# SPDX-License-Identifier: BSD-3-Clause
"""The code in README and docs runs as it stands, each file from top to bottom in one session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, capsys):
    blocks = BLOCK.findall(page.read_text())
    session: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), session)
    assert bool(capsys.readouterr().out) == bool(blocks), "examples print what they show"


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_solver_has_its_files():
    from maxmargin.solvers import SOLVERS

    for name in SOLVERS:
        for path in (
            f"src/maxmargin/solvers/{name}.py",
            f"tests/oracles/{name}.py",
            f"docs/algorithms/{name}.md",
        ):
            assert (ROOT / path).exists(), f"{name} has no {path}"
