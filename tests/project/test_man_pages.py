# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages say what the help texts say, and groff finds nothing wrong with them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pages():
    """All of them, as they would be written now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from docs.man import pages

        yield pages()
    sys.modules.pop("docs.man", None)


def test_pages_are_those_of_the_help_texts(pages):
    stored = {page.name: page.read_text() for page in (ROOT / "docs" / "man").glob("*.1")}
    changed = [name for name in pages | stored if pages.get(name) != stored.get(name)]
    assert changed == [], "python -m docs.man writes them again"


def test_every_option_has_its_line(pages, run):
    for name in ("train", "predict", "reproduce"):
        shown = run(name, "--help")[1].split()
        options = {
            word for word in shown if word.startswith("--") and word != "--help" and word[2:].isalpha()
        }
        text = pages[f"maxmargin-{name}.1"].replace("\\-", "-")
        assert len(options) >= 4
        assert [option for option in options if f"\\fB{option}\\fR" not in text] == []


def test_groff_has_no_complaints(pages):
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("there is no groff on this machine: apt-get install groff")
    shown = ""
    for text in pages.values():
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww", "-P-cbou"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        shown += done.stdout
    assert "maxmargin train churn.csv --label churn -o model.mm --hold-out 0.2" in shown
    assert "--categorical NAME,..." in shown
