# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks of estimators that are copied, sent to another process, or written to a file."""

from __future__ import annotations

import pickle
import sys
import warnings
from copy import deepcopy
from typing import Any

from maxmargin.solving.loop import Callback


class KeptCallback:
    """A callback in the state of an estimator: copies have it, and files where pickle can find it again.

    Else it is left out, with a warning: it would be a pity to lose a fit because of it.
    """

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback

    def __deepcopy__(self, memo: dict[int, Any]) -> KeptCallback:
        return KeptCallback(deepcopy(self.callback, memo))

    def __reduce__(self) -> Any:
        callback = self.callback
        if not _has_a_name(callback) and not _takes_functions_by_value():
            warnings.warn(
                f"The callback {callback!r} is left out: it is not a function of a module, which pickle, "
                "joblib and skops could find again by its name. Set it again after loading, with "
                "set_params(callback=...), or define it with def in a module.",
                UserWarning,
                stacklevel=2,
            )
            callback = None
        return KeptCallback, (callback,)


def _has_a_name(callback: Any) -> bool:
    """Whether pickle can write the callback."""
    try:
        pickle.dumps(callback)
    except Exception:  # whatever a part of it raises
        return False
    return True


def _takes_functions_by_value() -> bool:
    """Whether cloudpickle is at work, with which joblib sends estimators, lambdas and all, to processes."""
    frame: Any = sys._getframe()
    while frame is not None:
        if "cloudpickle" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back
    return False
