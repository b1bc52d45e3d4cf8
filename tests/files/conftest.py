# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of data files."""

from __future__ import annotations

import pytest


@pytest.fixture
def file(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(text: bytes, name: str = "data.svm") -> str:
        path = tmp_path / name
        path.write_bytes(text)
        return str(path)

    return write
