# SPDX-License-Identifier: BSD-3-Clause
"""The image of a container: what it is built of is there, and who runs it has no rights."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
STEPS = re.findall(r"^([A-Z]+) (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
KEPT = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)


def test_the_image_has_two_stages_and_a_user_without_rights():
    images = [words for step, words in STEPS if step == "FROM"]
    assert len(images) == 2
    assert images[0] == f"{images[1]} AS build"
    assert [words for step, words in STEPS if step == "USER"] == ["maxmargin"]
    last = [step for step, _ in STEPS][::-1]
    assert last.index("USER") < last.index("COPY"), "nothing is copied after the rights are gone"
    assert dict(STEPS)["ENTRYPOINT"] == '["maxmargin"]'


def test_all_that_the_build_reads_is_sent():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    read = [settings["project"]["readme"], *settings["project"]["license-files"]]
    read += settings["tool"]["scikit-build"]["wheel"]["packages"].values()
    read += re.findall(r"\b((?:core|docs)/\S*?)/\*", (ROOT / "CMakeLists.txt").read_text())
    assert "docs/man" in read
    for path in read:
        assert (ROOT / path).exists(), path
        assert any(Path(path).is_relative_to(kept) for kept in KEPT), f"{path} is not sent"
    assert all((ROOT / kept).exists() for kept in KEPT)
