# SPDX-License-Identifier: BSD-3-Clause
"""The values that the parameters of estimators take, with the cures, in the form of tools/parameters.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from maxmargin.tools.parameters import Count, Expected, Natural, NotNegative, Positive, Range

Flag = Annotated[bool | np.bool_, Expected("a bool")]
Verbose = Annotated[Natural | bool, Expected("a bool or an int in the range [0, inf)")]
ClassWeight = Annotated[
    dict[Any, float] | Annotated[str, Literal["balanced"]] | None,
    Expected("a dict from labels to factors on C, 'balanced' or None"),
]
RandomState = Annotated[int, Range(f"[0, {2**32 - 1}]")] | np.random.RandomState | None
Cost = Annotated[Positive, "C weighs the losses: a larger C fits the data harder."]
CostOrHardMargin = Annotated[
    float,
    Range("(0, inf]"),
    Expected("a float in the range (0, inf)"),
    "C weighs the losses: a larger C fits the data harder; numpy.inf is the hard margin.",
]
ConstantFeature = Annotated[
    float,
    Range("[1e-100, 1e100]"),
    "It is the value of the constant feature, which is as large as others as a rule; 1 does.",
]
Tolerance = Annotated[NotNegative, "tol is the relative gap to reach."]
Seconds = Annotated[
    NotNegative | None, Expected("a float in the range [0, inf)"), "None sets no limit on the seconds."
]
Jobs = Annotated[
    Count | Annotated[int, Range("[-1, -1]")] | None,
    Expected("an int in the range [1, inf)"),
    "None and -1 take all cores.",
]
Memory = Annotated[
    Count | None,
    Expected("an int in the range [1, inf)"),
    "It counts bytes; None takes half of what is free.",
]
Gamma = Annotated[
    Annotated[str, Literal["scale", "auto"]] | NotNegative,
    "'scale' is 1 / (n_features * variance of X), 'auto' is 1 / n_features.",
]
Probability = Annotated[
    bool | str,
    Literal[False, True, "sigmoid", "isotonic", "deprecated"],
    Expected("a bool, 'sigmoid' or 'isotonic'"),
    "True is 'sigmoid', Platt's curve from scores to probabilities.",
]
Penalty = Annotated[str, Literal["l2", "l1"], "'l1' makes most entries of coef_ zero."]
L2Penalty = Annotated[
    str,
    Literal["l2"],
    "What two values of C prove of those between them is known for the l2 penalty alone. Choose C with "
    "GridSearchCV(LinearSVC(penalty='l1'), {'C': ...}) instead.",
]
OneVsRest = Annotated[
    str,
    Literal["ovr"],
    "Crammer and Singer's formulation is that of LinearSVC alone; 'ovr' trains one class against the rest.",
]
MultiClass = Annotated[
    str,
    Literal["ovr", "crammer_singer"],
    "'ovr' trains one class against the rest, 'crammer_singer' all classes in one problem.",
]
LossName = Annotated[str, Literal["squared_hinge", "hinge", "logistic"]]
TubeLoss = Annotated[str, Literal["epsilon_insensitive", "squared_epsilon_insensitive"]]
Tube = Annotated[NotNegative, "It is how far a prediction may be off at no cost, in units of y."]
Share = Annotated[
    float,
    Range("(0, 1]"),
    "It is a share of the rows: at most so many are on the wrong side, and at least so many are support "
    "vectors.",
]
Dual = Annotated[str | bool, Literal["auto", True, False]]
Steps = Annotated[int, Range("[-1, inf)"), "It counts steps of the solver; -1 sets no limit."]
Device = Annotated[
    str | None,
    Literal["cuda", "cpu", None],
    Expected("'cuda', 'cpu' or None"),
    "None fits where X lies: on the CPU, or on the GPU for arrays of CuPy and CUDA tensors of PyTorch.",
]
Megabytes = Annotated[Positive, "It is the memory for kernel values, in megabytes."]
