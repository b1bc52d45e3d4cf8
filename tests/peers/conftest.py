# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of others ask of pytest."""

from __future__ import annotations


def pytest_configure(config):
    """scikit-learn's mark of tests that threads must not share."""
    config.addinivalue_line("markers", "thread_unsafe: threads must not run this test side by side")
