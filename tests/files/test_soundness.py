# SPDX-License-Identifier: BSD-3-Clause
"""Models that contradict themselves, made and not read: each contradiction is named."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, SVR, LinearSVC, LinearSVR, NuSVC, RankSVM
from maxmargin.features.expansion import Expansion
from maxmargin.files import ModelError, load_model
from maxmargin.kernels import Function, Precomputed

GENERATOR = np.random.default_rng(0)
X = np.round(GENERATOR.normal(size=(24, 3)), 2)
Y = (X[:, 0] + 0.5 * GENERATOR.normal(size=24) > 0).astype(int)
THREE = np.arange(24) % 3
MODELS = {
    "linear": (LinearSVC(loss="hinge", random_state=0), Y),
    "l1": (LinearSVC(penalty="l1", random_state=0), Y),
    "joint": (
        LinearSVC(multi_class="crammer_singer", loss="hinge", fit_intercept=False, random_state=0),
        THREE,
    ),
    "kernel": (SVC(), Y),
    "pairs": (SVC(), THREE),
    "regression": (LinearSVR(random_state=0), X[:, 0]),
    "kernel regression": (SVR(), X[:, 0]),
    "nu": (NuSVC(nu=0.3), Y),
    "ranking": (RankSVM(), np.arange(24) % 4),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")

    def made(name):
        path = folder / f"{name}.mm"
        if not path.exists():
            model, targets = MODELS[name]
            model.fit(X, targets).save(path, data=(X, targets))
        return load_model(path)

    return made


def problem(**changes):
    return lambda model: {"problem": model.problem | changes}


def proof(**changes):
    """The first proof with other arrays."""

    def changed(model):
        first = copy.copy(model.certificates[0])
        first.__dict__.update({name: change(getattr(first, name)) for name, change in changes.items()})
        return {"certificates": [first, *model.certificates[1:]]}

    return changed


def fields(**changes):
    return lambda model: changes


def csr(model):
    matrix = sparse.csr_array(model.vectors)
    matrix.indptr = matrix.indptr[:-1]
    return {"vectors": matrix}


MONOMIALS = Expansion(columns=3, lowest=1, scales=(1.0, 1.0, 1.0))
CASES = [
    ("l1", fields(optimum=[(0.0, 0.0, 0.0, 1.0)]), "with the l1 penalty, the place of the optimum is not"),
    ("linear", proof(w_of_alpha=lambda w: w[:-1]), "w_of_alpha and coef differ in their number of columns"),
    ("linear", proof(w_of_alpha=lambda w: w * np.nan), "w_of_alpha holds NaN or infinite values"),
    ("joint", problem(C=np.inf), "is of a finite C, and of no exact intercept"),
    ("joint", proof(margins=lambda m: m[:-1]), "rows, the file of 24"),
    ("joint", proof(w_of_alpha=lambda w: w[:-1]), "w_of_alpha and coef differ in their number of columns"),
    ("kernel", fields(kernel=Function(min)), "code is not saved"),
    ("kernel", fields(kernel=Precomputed(), vectors=None, support=None), "needs the rows of its support v"),
    ("kernel", lambda model: {"vectors": model.vectors.astype(int)}, "a dense or a CSR matrix of float32"),
    ("kernel", csr, "the arrays of the support vectors do not fit together"),
    ("pairs", proof(margins=lambda m: m[:-1]), "rows, the file of 24"),
    ("linear", fields(rows=-1), "the number of rows must be a whole number, not -1"),
    ("linear", fields(steps=1.5), "the number of steps must be a whole number, not 1.5"),
    ("regression", fields(expansion=MONOMIALS), "a regressor has no features that are formed"),
    ("ranking", fields(expansion=MONOMIALS), "a ranking has no features that are formed"),
    ("nu", problem(intercept="none"), "a model with a nu has an exact intercept"),
    ("linear", problem(loss="logistic", C=np.inf), "which the loss logistic does not have"),
    (
        "linear",
        lambda model: {"claims": [replace(model.claims[0], kkt_violation=-1.0)]},
        "a KKT violation is negative",
    ),
]


@pytest.mark.parametrize(
    ("name", "change", "words"), CASES, ids=[f"{name}: {words}" for name, _, words in CASES]
)
def test_a_contradiction_is_named(saved, name, change, words):
    model = saved(name)
    assert model.contradiction() is None
    unsound = object.__new__(type(model))
    unsound.__dict__.update(vars(model) | change(model))
    assert any(words in sentence for sentence in unsound._contradictions())
    with pytest.raises(ModelError):
        replace(model, **change(model))
