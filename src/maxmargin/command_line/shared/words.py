# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and lists as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def seconds_in_words(seconds: float) -> str:
    """``0.0123 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def bytes_in_words(count: float) -> str:
    """``812 bytes``, ``1.5 KiB``, ``3.2 GiB``."""
    if count < 1024:
        return f"{count:.0f} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:.0f} {unit}"
    return f"{count / 1024:.3g} TiB"


def percent(share: float) -> str:
    """A share of one to about three digits: ``0.0123 %``, ``97.4 %``."""
    if not math.isfinite(share):
        return "an unknown share"
    return f"{100 * share:.3g} %"


def count_in_words(count: int) -> str:
    """Small numbers as words."""
    return _COUNTS[count] if 0 <= count < len(_COUNTS) else str(count)


def some(names: Sequence[str], most: int = 5) -> str:
    """``a, b, c and 12 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def as_options(message: str) -> str:
    """What is said to those who write Python, said to those who write commands."""
    message = _ON_THE_COMMAND_LINE.sub(r"\1", message)
    message = re.sub(r"The '(\w+)' parameter of Monomials must", r"\1 of --features must", message)
    message = re.sub(r"The '(\w+)' parameter of \w+ must", lambda f: f"{_option(f[1])} must", message)
    given = rf"\b({'|'.join(_PARAMETERS)})='?([\w.-]+)'?"
    message = re.sub(given, lambda found: f"{_option(found[1])} {found[2]}", message)
    for python, command in _IN_OTHER_WORDS.items():
        message = message.replace(python, command)
    return message


_ON_THE_COMMAND_LINE = re.compile(r"[a-z_]+=(?:'[^']*'|[\w.]+) \((--[^)]*?) on the command line\)")
"""How messages name an option beside the parameter that it stands for."""
_IN_OTHER_WORDS = {
    "numpy.inf": "inf",
    ", or say ignore_extra=True to leave such values out": "",
    "step_size='pegasos'": "--option step_size=pegasos",
    "a float in": "a number in",
    "an int in": "a whole number in",
    "Classifier can't train when only one class is present: the number of classes has to be greater than "
    "one; got 1 class. Give y at least two different labels.": "All rows have the same label: there is "
    "nothing to tell apart. Give data of at least two classes, or another --label.",
    "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete "
    "classes on a regression target with continuous values.": "The labels are numbers with decimals, not "
    "classes: this is a problem of regression, which is not solved here. Name another column with --label.",
}
"""What only Python knows, or scikit-learn says for it."""
_PARAMETERS = ("loss", "solver", "kernel", "gamma", "tol", "max_iter", "max_time", "coef0", "degree", "C")
"""Parameters that are options of the same name."""


def _option(name: str) -> str:
    """What a parameter is called on the command line."""
    known = {"C": "-C", "Cs": "--values", "cv": "--folds", "random_state": "--seed", "n_jobs": "--threads"}
    return known.get(name, f"--{name.replace('_', '-')}")
