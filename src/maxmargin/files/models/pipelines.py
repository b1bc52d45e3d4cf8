# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines of scikit-learn as what a file holds: a table's encoding, steps of numbers, the classifier."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.files.models.preparation import Preparation, UnsoundStep, can_be_written
from maxmargin.files.models.stored import ModelError, SavedKernelModel, StoredModel
from maxmargin.tables.encoding import Column, Encoding, Scale

_CAN = (
    "A pipeline can be saved where it is made of a maxmargin.Table, or a OneHotEncoder, or a "
    "ColumnTransformer of StandardScaler, MaxAbsScaler, OneHotEncoder and 'passthrough', on named columns; "
    "then of StandardScaler, MaxAbsScaler and feature maps of maxmargin but Pretrained; then of a "
    "LinearSVC, SVC, LinearSVR or SVR, or of a search for one. Each may be missing but the last."
)
_CURE = "Save the last step alone, and keep what comes before it."


def from_pipeline(pipeline: Any) -> StoredModel:
    """What a fitted pipeline amounts to; raises ModelError where a file has no room for it."""
    from sklearn.utils.validation import check_is_fitted

    from maxmargin.estimators.certified import Certified
    from maxmargin.files.models.fitted import from_estimator

    *before, last = _flat(pipeline)
    last = getattr(last, "best_estimator_", last)  # of a search, what it has chosen
    if not isinstance(last, Certified):
        raise ModelError(f"{_CAN} The last step is a {type(last).__name__}. {_CURE}")
    model = from_estimator(last)
    tables = before[:1] if before and _makes_columns(before[0]) else []
    steps = before[len(tables) :]
    for step in steps:
        if not can_be_written(step):
            raise ModelError(f"{_CAN} Got a {type(step).__name__}. {_CURE}")
    for step in before:
        check_is_fitted(step)
    encoding = _encoding(tables[0]) if tables else None
    names = getattr(before[0], "feature_names_in_", None) if before else None
    if getattr(model, "expansion", None) is not None:
        steps = steps[:-1]  # the monomials that the model itself forms
    try:
        preparation = Preparation.of(steps) if steps else None
    except UnsoundStep as error:
        raise ModelError(f"The pipeline cannot be saved: {error}. {_CURE}") from error
    if encoding is not None:
        return replace(model, encoding=encoding, preparation=preparation, feature_names=encoding.names)
    if not before:
        return model
    given = None if names is None else [str(name) for name in names]
    return replace(model, preparation=preparation, feature_names=given)


def _flat(pipeline: Any) -> list[Any]:
    """The steps of a pipeline and of pipelines in it, without those that pass everything through."""
    if not hasattr(pipeline, "steps"):
        return [] if pipeline is None or isinstance(pipeline, str) else [pipeline]
    return [part for _, step in pipeline.steps for part in _flat(step)]


def _makes_columns(first: Any) -> bool:
    """Whether a step takes a table, and makes a matrix of its columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    from maxmargin.tables.transformer import Table

    return isinstance(first, ColumnTransformer | OneHotEncoder | Table)


def _encoding(first: Any) -> Encoding:
    """What such a step makes of a table."""
    from sklearn.preprocessing import OneHotEncoder

    from maxmargin.tables.transformer import Table

    if isinstance(first, Table):
        return first.encoding_
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        raise ModelError(
            f"A {type(first).__name__} can be saved where it was fitted to a data frame: a file finds "
            "columns by their names. Fit it to one."
        )
    names = [str(name) for name in names]
    if isinstance(first, OneHotEncoder):
        return Encoding(tuple(_columns_of(first, names)), "none")
    columns: list[Column] = []
    scales: list[Scale] = []
    for name, transformer, _ in first.transformers_:
        own = [names[k] for k in first._transformer_to_input_indices[name]]
        if transformer == "drop" or not own:
            continue
        columns += _columns_of(transformer, own)
        scales.append(_SCALES.get(type(transformer).__name__, "none"))
    if len({column.name for column in columns}) < len(columns):
        raise ModelError(f"A ColumnTransformer that takes a column twice cannot be saved. {_CURE}")
    known: Scale = next((scale for scale in scales if scale != "none"), "none")
    return Encoding(tuple(columns), known)


_SCALES: dict[str, Scale] = {"StandardScaler": "standard", "MaxAbsScaler": "max-abs"}


def _columns_of(transformer: Any, names: list[str]) -> list[Column]:
    """What a transformer makes of some columns of a table."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler

    if isinstance(transformer, Pipeline) and len(transformer.steps) == 1:
        transformer = transformer.steps[0][1]
    if transformer == "passthrough" or (
        isinstance(transformer, FunctionTransformer) and transformer.func is None
    ):
        return [Column(name, "number") for name in names]
    if isinstance(transformer, StandardScaler):
        zeros, ones = np.zeros(len(names)), np.ones(len(names))
        means = transformer.mean_ if transformer.with_mean else zeros
        scales = transformer.scale_ if transformer.with_std else ones
        return [_scaled(name, m, s) for name, m, s in zip(names, means, scales, strict=True)]
    if isinstance(transformer, MaxAbsScaler):
        return [_scaled(name, 0.0, s) for name, s in zip(names, transformer.scale_, strict=True)]
    if isinstance(transformer, OneHotEncoder):
        return [_category(transformer, k, name) for k, name in enumerate(names)]
    raise ModelError(f"{_CAN} Got a {type(transformer).__name__} inside a ColumnTransformer. {_CURE}")


def _scaled(name: str, center: float, scale: float) -> Column:
    """A number; a missing one counts as the center."""
    return Column(name, "number", fill=float(center), center=float(center), scale=float(scale))


def _category(encoder: Any, k: int, name: str) -> Column:
    """A column for each of a OneHotEncoder's texts; missing values are the last, if there were any."""
    found = list(encoder.categories_[k])
    infrequent = getattr(encoder, "infrequent_categories_", None)
    if encoder.drop is not None or (infrequent is not None and infrequent[k] is not None):
        raise ModelError(
            "A OneHotEncoder that drops or joins categories cannot be saved. Use drop=None without "
            "min_frequency and max_categories, or a maxmargin.Table."
        )
    missing = bool(found) and not isinstance(found[-1], str) and found[-1] != found[-1]
    missing |= bool(found) and found[-1] is None
    texts = found[:-1] if missing else found
    if not all(isinstance(text, str) and text == text.strip() and text for text in texts):
        raise ModelError(
            f"A OneHotEncoder of texts can be saved; column '{name}' has categories that are numbers, "
            "empty, or begin or end with a space. Use a maxmargin.Table with categorical=..., or turn them "
            "into texts."
        )
    return Column(name, "category", categories=tuple(map(str, texts)), missing=missing)


def load_pipeline(path: str | os.PathLike[str]) -> Any:
    """The fitted scikit-learn pipeline of a model file: what comes before the classifier, and that.

    A table's columns are made by a ``Table``, whatever made them when it was saved. Nothing in the file is
    executed; raises ModelError where it is unsound.
    """
    from sklearn.pipeline import make_pipeline

    from maxmargin.features import Monomials
    from maxmargin.files.models.fitted import kinds_of, to_estimator
    from maxmargin.files.models.saved import load_model
    from maxmargin.tables.transformer import Table

    saved = load_model(path)
    steps: list[Any] = []
    if saved.encoding is not None:
        table = Table(saved.encoding.scale)
        table.encoding_ = saved.encoding
        table.feature_names_in_ = np.array([column.name for column in saved.encoding.columns], object)
        table.n_features_in_ = len(table.feature_names_in_)
        steps.append(table)
    if saved.preparation is not None:
        steps += saved.preparation.transformers
        if saved.encoding is None and saved.feature_names is not None:
            steps[0].feature_names_in_ = np.array(saved.feature_names, object)
    alone = replace(saved, encoding=None, preparation=None, feature_names=None) if steps else saved
    expansion: Any = getattr(saved, "expansion", None)
    if expansion is not None:
        monomials = Monomials(lazy=True)
        monomials.n_features_in_, monomials.expansion_, monomials.lazy_ = expansion.columns, expansion, True
        steps.append(monomials)
    kinds = kinds_of(saved)
    kind = kinds[-1 if isinstance(saved, SavedKernelModel) else 0]
    return make_pipeline(*steps, to_estimator(alone, kind))
