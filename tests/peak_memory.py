# SPDX-License-Identifier: BSD-3-Clause
"""Where the peak of a process's memory can be measured, and is that of the library."""

from __future__ import annotations

import os

import pytest

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs") or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="memory is measured on Linux, without sanitizers",
)
