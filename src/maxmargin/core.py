# SPDX-License-Identifier: BSD-3-Clause
"""The compiled core, in the widest instruction set that this processor has.

The environment variable ``MAXMARGIN_INSTRUCTION_SET`` (baseline, avx2 or avx512) asks for another one.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from maxmargin import _core_baseline

if TYPE_CHECKING:
    # All instruction sets have one interface; that of the baseline is written down when it is compiled.
    from maxmargin._core_baseline import *  # noqa: F403
    from maxmargin._core_baseline import Budget

_offered = [name for name in _core_baseline.instruction_sets() if find_spec(f"maxmargin._core_{name}")]
INSTRUCTION_SET = os.environ.get("MAXMARGIN_INSTRUCTION_SET", _offered[-1])
if INSTRUCTION_SET not in _offered:
    raise ImportError(
        f"MAXMARGIN_INSTRUCTION_SET is {INSTRUCTION_SET!r}, but this processor and this build "
        f"offer {', '.join(_offered)}. Set it to one of these or leave it unset."
    )
_core = import_module(f"maxmargin._core_{INSTRUCTION_SET}")
globals().update({name: value for name, value in vars(_core).items() if not name.startswith("_")})


def default_threads() -> int:
    """OMP_NUM_THREADS if it is set to a number, else the cores this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


ALL_CORES = Budget(float("inf"), default_threads())
"""The budget of passes outside a run: no limit on time, all the threads there are."""
