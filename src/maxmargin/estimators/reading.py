# SPDX-License-Identifier: BSD-3-Clause
"""How classifiers read y, and linear ones X: a matrix, or monomials that are not written out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from maxmargin import core
from maxmargin.features.lazy import LazyMonomials
from maxmargin.problem.rows import Matrix, Rows, RowSpace, TellingOfRoom, in_numpy, lies_on_card
from maxmargin.solvers import sizes
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.gpu.cards import Card
    from maxmargin.gpu.rows import CardRows

MATRIX: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
"""What scikit-learn's checks are told of X."""


def read_training_rows(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any], RowSpace]:
    """Read X and y as ``read_training_data`` does, and return the rows that X makes, too."""
    card = card_for(estimator.device, X)
    if card is not None:
        return read_onto(card, estimator, X, y)
    given, X, y = X, from_card(X), from_card(y)
    X, targets = _read(estimator, X, y, check_finite=False)
    rows = Rows(X, check_finite=False)
    # A pass that the fit takes anyway tells whether all values are finite. A square that is beyond all
    # numbers is no proof of anything, and left to scikit-learn's check.
    if not isinstance(X, LazyMonomials) and not np.isfinite(rows.squared_norms).all():
        with telling_of_tables(given):
            assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
    return X, targets, rows


@contextmanager
def telling_of_tables(X: Any) -> Iterator[None]:
    """Add to what scikit-learn says of texts and missing values in a data frame who takes them."""
    try:
        yield
    except ValueError as error:
        if hasattr(X, "columns"):
            error.add_note(
                "maxmargin.Table makes numbers of texts, dates and missing values in a data frame: "
                "make_pipeline(maxmargin.Table(), ...) with this estimator as its last step."
            )
        raise


def read_onto(
    card: Card, estimator: Any, X: Any, y: ArrayLike, **kind: Any
) -> tuple[Any, NDArray[Any], RowSpace]:
    """The same with rows on a GPU; what lies there already is not copied.

    ``kind`` are scikit-learn's options for y.
    """
    targets: NDArray[Any] = from_card(y)
    X = in_numpy(X)
    if lies_on_card(X):
        targets = check_on_card(estimator, X, targets, **kind)
    else:
        X, targets = _read(estimator, X, targets, check_finite=False, **kind)
        if isinstance(X, LazyMonomials):
            raise ValueError("Monomials that are not written out stay on the CPU. Use device='cpu'.")
    rows = rows_on(card, X)
    if not np.isfinite(rows.squared_norms).all():
        raise ValueError("Input X contains NaN or infinity, or values whose squares are beyond float64.")
    return X, targets, rows


def check_on_card(estimator: Any, X: Any, y: Any, **kind: Any) -> NDArray[Any]:
    """Check the shape of rows that lie on a GPU, and what goes with them, which is returned."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Use X.reshape(-1, 1).")
    targets: NDArray[Any] = validate_data(estimator, y=y, **kind)
    check_consistent_length(targets, np.empty(X.shape[0]))
    estimator.__dict__.pop("feature_names_in_", None)
    estimator.n_features_in_ = int(X.shape[1])
    return targets


def rows_on(card: Card, X: Any) -> CardRows:
    """The rows of a matrix on a card, to which it is copied unless it lies there."""
    from maxmargin.gpu.rows import CardRows

    return CardRows(card.data(X))


def from_card(values: Any) -> Any:
    """Arrays of a GPU, and of other libraries, as arrays of NumPy; everything else as it is."""
    if not lies_on_card(values):
        return in_numpy(values)
    from maxmargin.gpu.cards import on_host

    return on_host(values)


def some_of(X: Any, which: NDArray[np.integer[Any]]) -> Any:
    """A copy of some rows, where they lie and in their kind."""
    if not lies_on_card(X):
        return X[which]
    from maxmargin.gpu.cards import as_kind_of, the_card

    card = the_card()
    return as_kind_of(card.put(X)[card.put(which)], X)


def here(estimator: Any, X: Any) -> Any:
    """Rows in memory; those on a GPU are refused where an estimator has nothing to do with them there."""
    if lies_on_card(X):
        raise ValueError(
            f"{type(estimator).__name__} works on the CPU, and X lies on a GPU. Copy it first: X.get() of "
            "CuPy, X.cpu().numpy() of PyTorch. SVC, LinearSVC, LinearSVCCV, LogisticRegression and "
            "LinearSVR take rows there."
        )
    return in_numpy(X)


def read_training_data(estimator: Any, X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """X and y, checked; the estimator remembers the expansion of ``LazyMonomials`` in ``expansion_``."""
    return _read(estimator, X, y, check_finite=True)


def _read(
    estimator: Any, X: Any, y: ArrayLike, *, check_finite: bool, **kind: Any
) -> tuple[Any, NDArray[Any]]:
    estimator.__dict__.pop("expansion_", None)
    targets: NDArray[Any]
    if not kind and _are_plain(X, y):
        plain = np.ascontiguousarray(X)
        if not check_finite or math.isfinite(core.dot(plain.reshape(-1), plain.reshape(-1))):
            estimator.__dict__.pop("feature_names_in_", None)
            estimator.n_features_in_ = plain.shape[1]
            return plain, np.asarray(y)
    if not isinstance(X, LazyMonomials):
        with telling_of_tables(X):
            options = MATRIX | kind
            X, targets = validate_data(
                estimator, X, y, order="C", ensure_all_finite=check_finite, **options
            )
        return X, targets
    targets = validate_data(estimator, y=y)
    check_consistent_length(X, targets)
    validate_data(estimator, X, skip_check_array=True, y=targets)
    estimator.expansion_ = X.expansion
    return X, targets


def _are_plain(X: Any, y: Any) -> bool:
    """Whether ``validate_data`` would have nothing to say of these arrays, unless X has NaN or infinities.

    It asks several libraries whether the arrays are theirs, which takes as long as a small fit.
    """
    return (
        type(X) is type(y) is np.ndarray
        and X.ndim == 2
        and y.ndim == 1
        and len(X) == len(y)
        and X.size > 0
        and X.dtype == np.float64
        and y.dtype.kind in "iub"
    )


def checked_weights(sample_weight: ArrayLike | None, rows: Any) -> Vector | None:
    """The factor on C of each row, none of them negative; None where there are none."""
    if sample_weight is None:
        return None
    given, options = from_card(sample_weight), {"dtype": np.float64, "ensure_non_negative": True}
    weights: Vector = _check_sample_weight(given, rows, **options)
    return weights


def weights_or_zero(sample_weight: ArrayLike | None, rows: Any) -> Vector | None:
    """The factor on C of each row: a negative one leaves its row out, as 0 does and as LIBSVM has it."""
    if sample_weight is None:
        return None
    sample_weight = from_card(sample_weight)
    if (np.asarray(sample_weight, np.float64) <= 0.0).all():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Give rows a weight above 0: of two "
            "classes one each, at least."
        )
    weights: Vector = np.maximum(_check_sample_weight(sample_weight, rows, dtype=np.float64), 0.0)
    return weights


def labels_and_codes(targets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The labels, sorted, and the place of every row's label among them.

    Raises where there are fewer than two, or where they are values of something continuous. Whole numbers
    need no check for that, which takes as long as a small fit; where there are many different ones,
    scikit-learn warns that they may be values. Two of them, the usual case, need no sorting of millions.
    """
    whole = targets.dtype.kind in "iub"
    if not whole:
        check_classification_targets(targets)
    if targets.dtype.kind in "iuf" and len(targets) > sizes.SORTED_TARGETS:
        low, high = targets.min(), targets.max()
        above = targets == high
        if low < high and bool(np.all(above | (targets == low))):
            return np.array([low, high], targets.dtype), above.view(np.uint8)
    labels, codes = np.unique(targets, return_inverse=True)
    if whole and 2 * len(labels) > len(targets):
        check_classification_targets(targets)
    if len(labels) < 2:
        raise ValueError(
            "Classifier can't train when only one class is present: the number of classes has to be "
            f"greater than one; got {len(labels)} class. Give y at least two different labels."
        )
    return labels, codes


def linear_scores(estimator: Any, X: Any) -> NDArray[np.float64]:
    """``<w, x> + b`` of each row and problem.

    A model of monomials that were not written out takes them so, written out, or the rows that they are of.
    """
    if lies_on_card(X) and (card := card_for(estimator.device, X)) is not None:
        return np.asarray(scores_on(card, estimator, X, estimator._dense_coef()) + estimator.intercept_)
    X = seen_rows(estimator, X)
    if isinstance(X, LazyMonomials):
        rows = Rows(X)
        scores: NDArray[np.float64] = np.column_stack([rows.scores(w) for w in estimator._dense_coef()])
    else:
        scores = safe_sparse_dot(X, estimator.coef_.T, dense_output=True)
    scores += estimator.intercept_
    return scores


def scores_on(card: Card, estimator: Any, X: Any, weights: Matrix) -> NDArray[np.float64]:
    """``<w, x>`` of each row, which lies on a card, and each w: X stays there."""
    from maxmargin.gpu.cards import refuse_other_columns

    refuse_other_columns(estimator, X)
    with TellingOfRoom():
        scores = rows_on(card, X).scores_at(weights)
    if not np.isfinite(scores).all():
        raise ValueError("Input X contains NaN or infinity, or values beyond float64 times the weights.")
    return scores.T


def seen_rows(estimator: Any, X: Any) -> Any:
    """X as the coefficients weigh it: a matrix, checked, or monomials that are not written out."""
    X = from_card(X)
    expansion = getattr(estimator, "expansion_", None)
    if expansion is not None and not isinstance(X, LazyMonomials):
        X = check_array(X, estimator=estimator, input_name="X", **MATRIX)
        if X.shape[1] not in (expansion.columns, expansion.size):
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{expansion.columns} features, or their {expansion.size} monomials, as input."
            )
        if X.shape[1] == expansion.columns:
            X = LazyMonomials(X, expansion)
    if isinstance(X, LazyMonomials):
        validate_data(estimator, X, skip_check_array=True, reset=False)
        return X
    return validate_data(estimator, X, reset=False, **MATRIX)


def card_for(device: str | None, X: Any) -> Card | None:
    """The GPU that X is to be dealt with on; None: the CPU. Without a ``device`` that is where X lies."""
    if device != "cuda" and (device == "cpu" or not lies_on_card(X)):
        return None
    from maxmargin.gpu.cards import the_card

    return the_card()


def in_the_kind_of(X: Any, answer: NDArray[Any]) -> Any:
    """An answer where X lies, and in its kind."""
    if not lies_on_card(X):
        return answer
    from maxmargin.gpu.cards import like

    return like(answer, X)
