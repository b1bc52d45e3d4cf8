# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as people write them."""

from __future__ import annotations

import pytest

from maxmargin.tools.words import bytes_in_words, percent, seconds_in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0123, "0.012 s"),
        (3.14, "3.1 s"),
        (12.4, "12 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_seconds(seconds, words):
    assert seconds_in_words(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (812, "812 bytes"),
        (1536, "1.5 KiB"),
        (1023 * 1024, "1023 KiB"),
        (3.2 * 2**30, "3.2 GiB"),
        (5 * 2**40, "5 TiB"),
    ],
)
def test_bytes(count, words):
    assert bytes_in_words(count) == words


def test_percent():
    assert [percent(share) for share in (0.97412, float("nan"))] == ["97.4 %", "an unknown share"]
