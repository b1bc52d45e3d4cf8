# SPDX-License-Identifier: BSD-3-Clause
"""Every option of every solver, kernel, feature map and estimator refuses wrong values, in one form."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest

import maxmargin.features
from maxmargin import SVC, LinearSVC, LinearSVCCV, kernels
from maxmargin.features.base import FeatureMap
from maxmargin.kernels import Kernel
from maxmargin.solvers import (
    SOLVERS,
    DualCoordinateAscent,
    Newton,
    Pegasos,
    QuadraticProgram,
    StochasticSubgradient,
    Subgradient,
    WorkingSet,
)
from maxmargin.tools.parameters import (
    Expected,
    Range,
    check_options,
    rules,
)

WRONG = [object(), "bogus", "", b"", math.nan, -math.inf, -1, -0.5, [], {}, 1 + 1j]
"""Wrong for every option but for those in RIGHT."""
RIGHT = {
    ("Polynomial", "coef0"): [-1, -0.5],
    ("Sigmoid", "coef0"): [-1, -0.5],
    ("Buckets", "columns"): [-1],
    ("Interactions", "columns"): [-1],
    ("Log", "columns"): [-1],
    ("Polar", "columns"): [-1],  # a column, but one is not enough
    ("Squares", "columns"): [-1],
    ("Squares", "center"): [-1, -0.5],
    ("Paraboloid", "columns"): [-1],
    ("Pretrained", "onnx_file"): ["bogus", ""],  # names, of files that are missing
    ("Pretrained", "layer"): ["bogus", ""],
    ("LinearSVC", "class_weight"): [{}],
    ("LinearSVCCV", "class_weight"): [{}],
    ("SVC", "class_weight"): [{}],
    ("LinearSVC", "n_jobs"): [-1],
    ("LinearSVCCV", "n_jobs"): [-1],
    ("SVC", "n_jobs"): [-1],
    ("SVC", "coef0"): [-1, -0.5],
    ("LinearSVC", "max_iter"): [-1],
    ("LinearSVCCV", "max_iter"): [-1],
    ("SVC", "max_iter"): [-1],
}
"""What an option does take."""
MAPS = [
    found
    for found in (getattr(maxmargin.features, name) for name in maxmargin.features.__all__)
    if isinstance(found, type) and issubclass(found, FeatureMap)
]
ESTIMATORS = [LinearSVC, LinearSVCCV, SVC]
KERNELS = [
    found
    for found in (getattr(kernels, name) for name in kernels.__all__)
    if isinstance(found, type) and issubclass(found, Kernel) and dataclasses.is_dataclass(found)
]


def options_of(kinds):
    return [(kind, name) for kind in kinds for name in rules(kind)]


def name_of(value):
    return value.__name__ if isinstance(value, type) else value


def wrong_values(kind, name):
    """Values that this option must refuse."""
    expected = rules(kind)[name].expected
    more = {"an int": [True, 0.5, 10.0], "a float": [True, 10**400], "one of True": [0, 1, None]}
    more = next((values for form, values in more.items() if expected.startswith(form)), [])
    right = RIGHT.get((kind.__name__, name), [])
    return [
        value
        for value in WRONG + more
        if not any(type(value) is type(other) and value == other for other in right)
    ]


def refused(kind, name, value, make):
    start = re.escape(f"The '{name}' parameter of {kind.__name__} must be ")
    with pytest.raises(ValueError, match=rf"(?s)^{start}.+\. Got .* instead\.( .*\.)?$"):
        make(value)


@pytest.mark.parametrize(("kind", "name"), options_of(SOLVERS.values()), ids=name_of)
def test_every_option_of_a_solver_refuses_wrong_values(kind, name):
    field = next(field for field in dataclasses.fields(kind) if field.name == name)
    for value in wrong_values(kind, name):
        refused(kind, name, value, lambda value: kind(**{name: value}))
        refused(kind, name, value, lambda value: kind().with_options(**{name: value}))
        refused(kind, name, value, lambda value: dataclasses.replace(kind(), **{name: value}))
    # A number that says nothing of its range would take all of these.
    assert not rules(kind)[name].takes(-math.inf), f"{name} needs a Range"
    assert not rules(kind)[name].takes(object()), f"{name} needs a declaration"
    assert rules(kind)[name].takes(field.default)


@pytest.mark.parametrize(("kind", "name"), options_of(KERNELS), ids=name_of)
def test_every_parameter_of_a_kernel_refuses_wrong_values(kind, name):
    for value in [object(), [], None] if name == "function" else wrong_values(kind, name):
        refused(kind, name, value, lambda value: kind(**{name: value}))


@pytest.mark.parametrize(("kind", "name"), options_of(MAPS), ids=name_of)
def test_every_parameter_of_a_map_refuses_wrong_values(kind, name):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    needed = {"onnx_file": "missing.onnx"} if kind.__name__ == "Pretrained" else {}
    for value in wrong_values(kind, name):
        other = kind(**(needed | {name: value}))  # scikit-learn wants that nothing is checked here
        refused(kind, name, value, lambda value, other=other: other.fit(X))
        refused(kind, name, value, lambda value, other=other: other.fit_transform(X))


@pytest.mark.parametrize(("kind", "name"), options_of(ESTIMATORS), ids=name_of)
def test_every_parameter_of_an_estimator_refuses_wrong_values(kind, name):
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    for value in wrong_values(kind, name):
        if name == "cv" or (name == "scoring" and isinstance(value, str)):
            continue  # scikit-learn reads these
        refused(kind, name, value, lambda value: kind(**{name: value}).fit(X, y))


def test_all_kinds_are_walked():
    assert len(SOLVERS) >= 11
    assert len(MAPS) >= 11
    assert len(KERNELS) >= 8
    assert all(name in rules(kind) for kind in SOLVERS.values() for name in ["seed"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StochasticSubgradient(step_size="sqrt"), "'step_size' parameter of StochasticSubgradient"),
        (
            lambda: Subgradient(step_size=[0.5, 0.0]),
            r"must be one of 'auto', 'constant', 'decreasing', 'lambda' or a function of t = 1, 2, \.\.\. "
            r"or a sequence of numbers above 0\. Got \[0\.5, 0\.0\] instead",
        ),
        (lambda: Pegasos(step_size=np.ones((2, 2))), "a sequence of numbers above 0"),
        (lambda: Pegasos(step_size=[True]), "a sequence of numbers above 0"),
        (lambda: Pegasos(order="bogus"), "'order' parameter of Pegasos must be one of 'uniform', 'epochs'"),
        (
            lambda: Pegasos(average=0),
            r"'average' parameter of Pegasos must be one of 'last', 'all', 'suffix' or an int in the range",
        ),
        (
            lambda: DualCoordinateAscent(order="bogus"),
            "'order' parameter of DualCoordinateAscent must be one",
        ),
        (
            lambda: DualCoordinateAscent(relaxation=-1),
            r"must be a float in the range \(0, 2\) or None\. Got",
        ),
        (lambda: DualCoordinateAscent(relaxation=2.0), r"\(0, 2\) or None\. Got 2\.0 instead"),
        (lambda: QuadraticProgram(form="bogus"), "'form' parameter of QuadraticProgram must be one of"),
        (
            lambda: Subgradient(eta=-1),
            r"^The 'eta' parameter of Subgradient must be a float in the range \(0, inf\)\. "
            r"Got -1 instead\. The default is 1\.0\.$",
        ),
        (lambda: Newton(sweeps=-1), r"an int in the range \[0, inf\) or None\. Got -1 instead"),
        (lambda: WorkingSet(cache_size=-1), r"'cache_size' parameter of WorkingSet.*\[0, inf\)"),
        (lambda: WorkingSet(size=1), r"must be one of 0 or an int in the range \[2, inf\)"),
        (lambda: Newton().with_seed("bogus"), "'seed' parameter of Newton .* The same seed gives the same"),
        (lambda: Newton().with_seed(2**63), "'seed' parameter of Newton must be an int in the range"),
        (lambda: Newton().at_once(math.nan), "'until' parameter of Newton"),
    ],
)
def test_errors_say_what_is_right(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_right_values_are_taken():
    assert DualCoordinateAscent(bias_reach=math.inf, relaxation=None).bias_reach == math.inf
    assert Subgradient(eta=np.float32(0.5), t0=3, seed=np.int64(2**63 - 1)).t0 == 3
    assert WorkingSet(size=2, cache_size=0).size == 2
    assert Newton(sweeps=0, until=0.0).with_options(sweeps=None).until == 0.0
    assert copy.copy(Newton(seed=1)) == Newton(seed=1)


@dataclass(frozen=True)
class Declared:
    """One option of each form of declaration."""

    kind: ClassVar[str] = "declared"
    open: Annotated[float, Range("(0, 2)")] = 1.0
    closed: Annotated[float, Range("[0, inf]"), "Take less."] = 1.0
    few: Annotated[int, Range("[1, 9]")] | Literal["all"] = 3
    named: Annotated[Literal["a", "b"] | None, Expected("a letter, or None")] = None
    flag: bool = True
    text: str = ""
    free: float = 0.0

    def __post_init__(self):
        check_options(self)


@pytest.mark.parametrize(
    ("option", "right", "wrong", "message"),
    [
        (
            "open",
            [1e-300, 1, 1.999],
            [0, 2.0, math.nan, True],
            r"a float in the range \(0, 2\)\. .*default is 1",
        ),
        (
            "closed",
            [0, math.inf, 5],
            [-1e-300, 10**400, "1"],
            r"\[0, inf\]\. Got .* instead\. Take less\.$",
        ),
        ("few", [1, 9, "all", np.int8(4)], [0, 10, 2.0, "some", True], r"\[1, 9\] or one of 'all'\."),
        ("named", ["a", None], ["c", 1, True], r"a letter, or None\. Got .* The default is None\.$"),
        ("flag", [True, False], [1, 0, None, "True"], "one of True, False"),
        ("text", ["", "words"], [1, b""], "must be a str"),
        ("free", [-math.inf, 0, 1e300], [math.nan, "1", None, 1j], r"a float in the range \[-inf, inf\]"),
    ],
)
def test_forms_of_declarations(option, right, wrong, message):
    for value in right:
        assert getattr(Declared(**{option: value}), option) is value
    for value in wrong:
        with pytest.raises(ValueError, match=message):
            Declared(**{option: value})
