# SPDX-License-Identifier: BSD-3-Clause
"""Every model that a test saves is judged by both checkers, ``certify`` and ``certify --independent``.

The data are those of the fit: what each estimator was fitted to is remembered, and written to a file beside
the model. The exact checker is slow, so that models of many values are judged by the other one alone; what
was not judged is counted by its reason. The numbers are told at the end of the tests.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
import time
from collections import Counter
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from typer.testing import CliRunner

import maxmargin.files.models.saved as saved
from maxmargin.command_line import app
from maxmargin.estimators.certified import CertifiedClassifier
from maxmargin.estimators.certified_regressor import CertifiedRegressor
from maxmargin.estimators.one_class_region import OneClassRegion
from maxmargin.independent.checker import check
from written_files import parts_of

MOST_VALUES = 4_000
"""Values of the data times problems, up to which a linear model is judged exactly: some 20 ms."""
MOST_PAIRS = 2_000
"""Pairs of rows times problems, up to which a model with a kernel is: some 60 ms."""
MORE = 20
"""So many times as large a model may be to be judged at all."""
JUDGED, HALF = "judged by both checkers", "judged by certify alone, too large for the exact one"


class SavedModels:
    """What became of the models that were saved."""

    def __init__(self):
        self.counts, self.seconds = Counter(), 0.0
        self._data, self._seen = WeakKeyDictionary(), set()

    def watch(self):
        """Look at everything that is fitted and saved from now on."""
        save = saved.save_model

        def remembered(fit):
            @functools.wraps(fit)
            def remembered_fit(estimator, X, y=None, sample_weight=None, **options):
                fitted = fit(estimator, X, y, sample_weight, **options)
                if isinstance(estimator, OneClassRegion):
                    y = np.zeros(estimator.shape_fit_[0])
                if y is not None:  # Chunks bring it along, and are not written again
                    self._data[estimator] = X, y, sample_weight
                return fitted

            return remembered_fit

        @functools.wraps(save)
        def judged_save(model, path, *, format="maxmargin", **options):
            save(model, path, format=format, **options)
            if format == "maxmargin":
                start = time.process_time()
                self.counts[self._look_at(model, Path(path))] += 1
                self.seconds += time.process_time() - start

        for kind in (CertifiedClassifier, CertifiedRegressor, OneClassRegion):
            kind.fit = remembered(kind.fit)
        saved.save_model = judged_save

    def _look_at(self, model, path):
        """What became of one: it was judged, or why not."""
        known = isinstance(model, CertifiedClassifier | CertifiedRegressor | OneClassRegion)
        data = self._data.get(model) if known else None
        if data is None:
            return "fitted elsewhere: their data are not known"
        X, y, weights = data
        described = parts_of(path)[1]
        reason = why_not(described, X, y, weights)
        if reason:
            return reason
        table, labels = as_table(X), np.asarray(y).ravel()
        state = hashlib.sha256(path.read_bytes() + table.tobytes() + repr(labels.tolist()).encode())
        if state.digest() in self._seen:
            return "the same as one before"
        self._seen.add(state.digest())
        exactly = size_of(described, X) <= 1.0
        with tempfile.TemporaryDirectory() as folder:
            data = write_csv(Path(folder) / "data.csv", table, labels, described["feature_names"])
            judge(path, data, exactly=exactly)
        return JUDGED if exactly else HALF

    def lines(self):
        """All of it in words."""
        ways = [f"{self.counts[way]} {way}" for way in (JUDGED, HALF)]
        others = [f"{n} {name}" for name, n in self.counts.most_common() if name not in (JUDGED, HALF)]
        words = f"{', '.join(ways)}; not judged: {', '.join(others) or 'none'}"
        return f"Saved models: {words}. It took {self.seconds:.1f} s."


def why_not(described, X, y, weights):
    """Why a model is not judged, or nothing."""
    if weights is not None:
        return "with weights of rows, which are not in the file"
    if described.get("certificates") is None:
        return "without proof"
    if "features" in described:
        return "with features, which the exact checker does not know"
    kernel = described.get("kernel", {}).get("kernel")
    if kernel in ("precomputed", "sigmoid"):
        return "whose function is given, or is not a kernel"
    if described["status"] == "NOT_PROVEN":
        return "that claim no proof"
    of_classes = described["decision"] not in ("regression", "one_class")
    known = not of_classes or len(np.unique(np.asarray(y))) == len(described["classes"]["values"])
    if not hasattr(X, "shape") or not known:
        return "of labels that a table cannot hold"
    return "too large" if size_of(described, X) > MORE else ""


def size_of(described, X):
    """What a model takes to be judged, in units of the most that is judged exactly."""
    problems = len(described["claims"])
    if "kernel" in described:
        return X.shape[0] ** 2 * problems / MOST_PAIRS
    return X.shape[0] * X.shape[1] * problems / MOST_VALUES


def as_table(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64)


def write_csv(path, table, labels, names):
    """A table with the columns that the model knows, and the label in the last one."""
    names = [f"column {k}" for k in range(table.shape[1])] if names is None else names
    lines = [",".join([*names, "its label"])]
    for row, label in zip(table.tolist(), labels.tolist(), strict=True):
        lines.append(",".join([*map(repr, row), str(label)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def judge(model, data, *, exactly):
    """An assertion that both checkers find every claim of the file to be true."""
    words = ["certify", str(model), str(data), "--label", "its label", "--json"]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert result.return_value == 0, f"certify does not find that a saved model holds: {result.stdout}"
    if exactly:
        verdict = check(model, data, label="its label")
        assert verdict.holds, (
            f"certify --independent does not find that a saved model holds: {verdict.lines}"
        )
