# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models as ONNX graphs, which run without Python: alone, or at the end of a scikit-learn pipeline.

skl2onnx writes what scikit-learn has. Written here are the estimators and feature maps of maxmargin, which
``register`` tells it of.
"""

from __future__ import annotations

from typing import Any, Literal

__all__ = ["register", "to_onnx"]

_NEEDED = "maxmargin.onnx needs the package skl2onnx. Install it with: pip install 'maxmargin[onnx]'"


def to_onnx(model: Any, X: Any = None, *, dtype: Literal["float64", "float32"] = "float64") -> Any:
    """The ``onnx.ModelProto`` of a fitted classifier or regressor, or of a pipeline that ends with one.

    It has one input, ``X``, and two outputs: ``label``, the answer of ``predict``, and ``scores``, that of
    ``decision_function``, one column for each class or pair, or one for two classes. That of a regressor
    has one, ``prediction``, a column.

    model : a LinearSVC, LogisticRegression, SVC, NuSVC, LinearOneClassSVM, OneClassSVM, LinearSVR, SVR,
        NuSVR or RankSVM, one of the searches LinearSVCCV, SVCCV and SVRCV, or a pipeline of what skl2onnx
        knows (scalers, OneHotEncoder, ColumnTransformer, ...), feature maps of maxmargin and one of these
    X : some rows, from which the input of the graph takes its types; it is needed only where columns are of
        different types, as in a data frame, which then are inputs of their own names
    dtype : the type of the input without X. Models compute in float64 either way.
    """
    skl2onnx = register()
    from sklearn.utils.validation import check_is_fitted

    from maxmargin.tables.transformer import Table

    check_is_fitted(model)
    if any(isinstance(step, Table) for _, step in getattr(model, "steps", ())):
        raise ValueError(
            "A Table finds columns by their names and reads texts, dates and missing values in them, which "
            "is not written as ONNX. Convert the last step, to_onnx(pipeline[-1]), and give it what the "
            "Table makes of the rows; or use a ColumnTransformer, to_onnx(pipeline, frame)."
        )
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32'. Got {dtype!r} instead.")
    if X is not None:
        return skl2onnx.to_onnx(model, X[:1])
    types = skl2onnx.common.data_types
    kind = types.DoubleTensorType if dtype == "float64" else types.FloatTensorType
    return skl2onnx.to_onnx(model, initial_types=[("X", kind([None, int(model.n_features_in_)]))])


def register() -> Any:
    """Tell skl2onnx of the estimators and feature maps of maxmargin; returns skl2onnx.

    Only who calls ``skl2onnx.to_onnx`` by himself needs it.
    """
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError(_NEEDED) from error
    from maxmargin.onnx.estimators import CLASSIFIERS, REGRESSORS
    from maxmargin.onnx.graph import (
        classifier_parser,
        converter,
        map_shape,
        regressor_parser,
        scores_shape,
        value_shape,
    )
    from maxmargin.onnx.maps import MAPS

    for kind, write in CLASSIFIERS.items():
        alias = f"Maxmargin{kind.__name__}"
        skl2onnx.update_registered_converter(
            kind, alias, scores_shape, converter(write), parser=classifier_parser(alias)
        )
    for kind, write in REGRESSORS.items():
        alias = f"Maxmargin{kind.__name__}"
        skl2onnx.update_registered_converter(
            kind, alias, value_shape, converter(write), parser=regressor_parser(alias)
        )
    for kind, write in MAPS.items():
        skl2onnx.update_registered_converter(kind, f"Maxmargin{kind.__name__}", map_shape, converter(write))
    return skl2onnx
