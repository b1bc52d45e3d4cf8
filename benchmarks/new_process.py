# SPDX-License-Identifier: BSD-3-Clause
"""Measurements in a process of their own: its peak of memory is that of one fit, and so are its threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def in_new_process(module: str, *arguments: str, **environment: str) -> Any:
    """What ``python -m benchmarks.MODULE ARGUMENTS`` prints, read as JSON."""
    answer = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=Path(__file__).resolve().parent.parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    return json.loads(answer.stdout)
