# SPDX-License-Identifier: BSD-3-Clause
"""What is said to those who write Python, said to those who write commands."""

from __future__ import annotations

import re


def as_options(message: str) -> str:
    """What is said to those who write Python, said to those who write commands."""
    message = _ON_THE_COMMAND_LINE.sub(r"\1", message)
    message = re.sub(
        r"The '(\w+)' parameter of (?:Monomials|Nystroem|RandomFourier) must",
        r"\1 of --features must",
        message,
    )
    message = re.sub(r"The '(\w+)' parameter of \w+ must", lambda f: f"{option_of(f[1])} must", message)
    given = rf"\b({'|'.join(_PARAMETERS)})='?([\w.-]+)'?"
    message = re.sub(given, lambda found: f"{option_of(found[1])} {found[2]}", message)
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
    "classes. To predict such numbers, say --task regression; else name another column with --label.",
}
"""What only Python knows, or scikit-learn says for it."""
_SETTINGS = ("tol", "max_iter", "max_time", "device")
_PARAMETERS = ("loss", "solver", "kernel", "gamma", "degree", "coef0", "C", *_SETTINGS)
"""Parameters that are options of the same name."""


def column_name(names: list[str] | None, column: int) -> str:
    """How a column is called: by its name, in quotes, or by its number from 1."""
    return str(column + 1) if names is None else f"'{names[column]}'"


def option_of(name: str) -> str:
    """What a parameter is called on the command line."""
    known = {"C": "-C", "Cs": "--values", "cv": "--folds", "random_state": "--seed", "n_jobs": "--threads"}
    return known.get(name, f"--{name.replace('_', '-')}")
