# SPDX-License-Identifier: BSD-3-Clause
"""A trained model as a file holds it, whoever wrote the file, and the two functions that move it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin.certificate import Certificate
from maxmargin.files.data import printable
from maxmargin.files.soundness import contradiction
from maxmargin.files.whole import write_whole
from maxmargin.model import Status, Trace
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.estimators import LinearSVC

Decision = Literal["one_vs_rest", "one_vs_one"]
Format = Literal["maxmargin", "liblinear", "libsvm"]


class ModelError(ValueError):
    """A file that is not a model, or one that contradicts itself; the message says where and why."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True)
class Claim:
    """What a file says its model is worth for one problem: values without the points they belong to."""

    primal: float
    dual: float
    kkt_violation: float
    alpha_from: str

    @property
    def relative_gap(self) -> float:
        """``(primal - dual) / |primal|``, as a ``Certificate`` has it."""
        if np.isinf(self.primal):  # a hard margin that was not found
            return np.inf
        gap = max(self.primal - self.dual, 0.0)
        if gap == 0.0:
            return 0.0
        return gap / abs(self.primal) if self.primal != 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class Support:
    """The support vectors of a LIBSVM file, to find its dual point among the rows of the data.

    Row s belongs to class ``labels[s]``. Its ``coefficients[s]`` are y alpha in the problems of that class
    against each other class in the order of ``order``, the first class of each pair being the positive one.
    """

    vectors: Any
    """CSR matrix, one row per support vector; LIBSVM keeps 8 digits of each value."""
    coefficients: Vector
    """Of shape (support vectors, classes - 1)."""
    labels: NDArray[Any]
    order: NDArray[Any]
    """The classes in the order of the file."""


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A linear classifier with what is known about it. All fields are checked against each other."""

    coef: Vector
    """One row per problem: (1, d) for two classes, else (k, d), or (k (k - 1) / 2, d) for one-vs-one."""
    intercept: Vector
    classes: NDArray[Any]
    """Two classes: the second is the positive one. One-vs-one: pairs (0, 1), (0, 2), ... (1, 2), ..., and
    the first of a pair is the positive one."""
    decision: Decision = "one_vs_rest"
    problem: dict[str, Any] = field(default_factory=dict[str, Any])
    """loss, C (None when the file does not say; inf: a hard margin), intercept ("none", "regularised",
    "exact"), intercept_scaling, class_weight, sample_weights (whether the fit had any: they are not in the
    file),
    penalty ("l2", "l1") and formulation ("separate": one problem per row of coef; "crammer_singer")."""
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    """Those of ``LinearSVC`` that JSON can hold; empty for the files of others."""
    feature_names: list[str] | None = None
    claims: list[Claim] | None = None
    """One per problem; None for the files of others."""
    certificates: list[Certificate] | None = None
    """One per problem, without the data; None where the file has no proof."""
    traces: list[Trace] | None = None
    status: Status | None = None
    steps: int | None = None
    solver: str | None = None
    """What ran and why, in one sentence."""
    tol: float | None = None
    fingerprint: str | None = None
    """Of the training data, as ``maxmargin.files.fingerprint`` gives it."""
    rows: int | None = None
    """Of the training data."""
    writer: str = "maxmargin"
    format: Format = "maxmargin"
    support: Support | None = None
    """For LIBSVM files."""

    def __post_init__(self) -> None:
        message = contradiction(self)
        if message is not None:
            raise ModelError(message)

    @property
    def features(self) -> int:
        """Number of columns, d."""
        return int(self.coef.shape[1])

    def decision_function(self, X: Any) -> Vector:
        """``<w, x> + b`` of each row, one column per problem, flat for a single problem.

        Columns that X lacks at its end count as zeros, as in LIBSVM text whose last features do not occur.
        """
        matrix = X if sparse.issparse(X) else np.asarray(X)
        if matrix.ndim != 2:
            raise ValueError(
                f"X must be a matrix with one row per example. Got {matrix.ndim} dimensions instead. "
                "Reshape a single example with X.reshape(1, -1)."
            )
        if matrix.shape[1] > self.features:
            raise ValueError(
                f"X must have at most the {self.features} features of the model. Got {matrix.shape[1]} "
                "instead. Leave out the columns that the model was not trained on."
            )
        scores = np.asarray(matrix @ self.coef[:, : matrix.shape[1]].T, np.float64) + self.intercept
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row; one-vs-one by votes, and of equal votes the first class, as in LIBSVM."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            codes = (scores > 0).astype(np.intp)
        elif self.decision == "one_vs_rest":
            codes = scores.argmax(axis=1)
        else:
            votes = np.zeros((len(scores), len(self.classes)), np.int64)
            for scored, (first, second) in zip(scores.T, self.pairs, strict=True):
                votes[:, first] += scored > 0
                votes[:, second] += scored <= 0
            codes = votes.argmax(axis=1)
        labels: NDArray[Any] = self.classes[codes]
        return labels

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """For one-vs-one, the two classes of each row of coef: indices into ``classes``, positive first."""
        return list(combinations(range(len(self.classes)), 2))


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model file of maxmargin, LIBLINEAR or LIBSVM: which one, its first bytes tell.

    Nothing in the file is trusted: sizes are compared with the file's size before memory is taken, every
    number is looked at, and nothing is executed. Raises ModelError with the reason, or OSError where the
    file cannot be opened.
    """
    from maxmargin.files import liblinear, libsvm_model, safetensors

    readers: dict[str, Callable[[Any, int], SavedModel]] = {
        "maxmargin": safetensors.read_model,
        "liblinear": liblinear.read_model,
        "libsvm": libsvm_model.read_model,
    }
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path}: a model is read from a regular file, not from a pipe or a device.")
        try:
            format = _recognised(file.read(16))
            file.seek(0)
            return readers[format](file, status.st_size)
        except ModelError as error:
            reason = str(error)
            joint = ", " if reason.startswith("line ") else ": "
            raise ModelError(f"{os.fspath(path)}{joint}{reason}") from error


def _recognised(start: bytes) -> Format:
    if not start:
        raise ModelError("the file is empty.")
    if start.startswith(b"solver_type"):
        return "liblinear"
    if start.startswith(b"svm_type"):
        return "libsvm"
    pickled = start[:1] == b"\x80" and start[1:2] <= b"\x05"
    if start[8:9] == b"{" or (start[5:8] == b"\0\0\0" and not pickled):
        return "maxmargin"
    cure = "Models are read in maxmargin's own format and as LIBLINEAR or LIBSVM text."
    if pickled or start[:2] in (b"\x1f\x8b", b"PK", b"x\x9c"):
        cure = (
            "It may be a pickle, a joblib dump or an archive: these are never opened here, since reading a "
            "pickle runs what is in it. Write the model with LinearSVC.save."
        )
    raise ModelError(f"this is not a model file: it begins with {bytes(start[:8])!r}. {cure}")


def save_model(
    model: SavedModel | LinearSVC,
    path: str | os.PathLike[str],
    *,
    format: Format = "maxmargin",
    data: tuple[Any, Any] | str | None = None,
    proof: bool = True,
) -> None:
    """Write a model file, whole or not at all.

    model : SavedModel or a fitted LinearSVC
    format : "maxmargin", which keeps everything, or the text of "liblinear" or "libsvm", which keeps what
        is needed to predict and says of the problem only what that text has room for.
    data : (X, y) of the training, or their fingerprint: others can then tell the data again.
    proof : False leaves the multipliers, margins, row classes and traces out, which makes the file small.
        What it claims to be worth stays in it, and can be proven anew with the data.
    """
    from maxmargin.files import fitted, liblinear, libsvm_model, safetensors

    writers = {
        "maxmargin": safetensors.writer,
        "liblinear": liblinear.writer,
        "libsvm": libsvm_model.writer,
    }
    if format not in writers:
        names = ", ".join(map(repr, writers))
        raise ValueError(f"format must be one of {names}. Got {format!r} instead.")
    saved = fitted.prepared(model, data, proof)
    write_whole(path, writers[format](saved))
