# SPDX-License-Identifier: BSD-3-Clause
"""The lectures' algorithms in plain NumPy: slow, obvious, and what the compiled core has to follow.

Nothing here imports ``maxmargin``. Every oracle takes the rows to visit, and the step sizes where there
are any, as explicit sequences, so that a test can feed it the very order that the compiled solver drew.
The numbers at the ends of lines are those of the statement in the solver's docstring; ``001 (14)`` means
line 14 of the pseudo-code in lecture 001.
"""

from __future__ import annotations

import numpy as np

# Losses of the margin, and the subgradient that the lectures take at the kink (003: "m < 1").
VALUE = {
    "hinge": lambda m: np.maximum(0.0, 1.0 - m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "logistic": lambda m: np.log(1.0 + np.exp(-m)),
    "perceptron": lambda m: np.maximum(0.0, -m),
}
DERIVATIVE = {
    "hinge": lambda m: np.where(m < 1.0, -1.0, 0.0),
    "squared_hinge": lambda m: np.where(m < 1.0, -2.0 * (1.0 - m), 0.0),
    "logistic": lambda m: -1.0 / (1.0 + np.exp(m)),
    "perceptron": lambda m: np.where(m < 0.0, -1.0, 0.0),
}
