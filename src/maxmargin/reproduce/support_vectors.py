# SPDX-License-Identifier: BSD-3-Clause
"""003 and 004: classes of support vectors, complementary slackness, two feature maps of the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from maxmargin.estimators import LinearSVC
from maxmargin.features import Paraboloid, Polar
from maxmargin.plot import support_vectors
from maxmargin.problem import Problem
from maxmargin.proof.certificate import Certificate, RowClass
from maxmargin.reproduce.base import Cell, Part, Result, Settings, Table, new_figure
from maxmargin.reproduce.examples import breast_cancer, clouds, disc_and_ring, sectors
from maxmargin.solving.loop import solve

_SAYS = {
    RowClass.NOT_SUPPORT_VECTOR: ("no support vector", "alpha = 0, margin >= 1"),
    RowClass.ON_MARGIN: ("on the margin", "0 < alpha < C, margin = 1"),
    RowClass.INSIDE_MARGIN: ("inside the margin", "alpha = C, 0 < margin <= 1"),
    RowClass.MISCLASSIFIED: ("misclassified", "alpha = C, margin <= 0"),
}
_HEADINGS = ("rows", "lecture", "count", "alpha from", "alpha to", "margin from", "margin to")


def _run(settings: Settings) -> Result:
    X, y = breast_cancer()
    settings.tell("breast cancer data, to a tight gap")
    proof = solve(Problem.of(X, y, 1.0), tol=1e-10, max_steps=10_000).certificate
    figure, axes = new_figure(1, 3, width=4.3, height=4.4)
    cases: list[tuple[str, Any, Any]] = [
        ("linear, two clouds", clouds(120), LinearSVC(loss="hinge", random_state=0)),
        ("polar coordinates", sectors(), make_pipeline(Polar(), LinearSVC(loss="hinge", random_state=0))),
        (
            "x1, x2, x1^2 + x2^2",
            disc_and_ring(),
            make_pipeline(Paraboloid(), LinearSVC(loss="hinge", random_state=0)),
        ),
    ]
    rows: list[tuple[Cell, ...]] = []
    for ax, (title, (points, labels), model) in zip(axes[0], cases, strict=True):
        settings.tell(title)
        labels = labels.astype(int)
        plain = LinearSVC(loss="hinge", random_state=0).fit(points, labels).score(points, labels)
        model.fit(points, labels)
        support_vectors(model, points, labels, ax)
        ax.set_title(title, fontsize=9)
        rows.append((title, 100 * plain, 100 * float(model.score(points, labels))))
    headings = ("map", "accuracy without it, %", "accuracy with it, %")
    maps = Table("Two feature maps of the plane", headings, rows, dict.fromkeys(headings[1:], ".1f"))
    classes = Table("Classes of rows on the breast cancer data, C = 1", _HEADINGS, _classes(proof))
    about = (
        "The hinge, C = 1 and an exact intercept. The first table puts what 004 says of each class of rows "
        "beside the multipliers and margins of a fit of a relative gap of "
        f"{proof.relative_gap:.1e}. The pictures are of data made here: the lectures' figures are not "
        "in their text. Full line: score 0; dashed: -1 and 1."
    )
    return Result(about, [classes, maps], _findings(proof), figure)


def _classes(proof: Certificate) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for kind, (name, says) in _SAYS.items():
        here = proof.row_classes == kind
        alpha, margins = proof.alpha[here], proof.margins[here]
        ranges: list[Cell] = [None] * 4
        if here.any():
            ranges = [float(v) for v in (alpha.min(), alpha.max(), margins.min(), margins.max())]
        rows.append((name, says, int(here.sum()), *ranges))
    return rows


def _findings(proof: Certificate) -> list[str]:
    slack = np.maximum(0.0, 1.0 - proof.margins)
    first = np.abs(proof.alpha * (1.0 - proof.margins - slack)).max()
    second = np.abs((1.0 - proof.alpha) * slack).max()
    support = (proof.row_classes > 0).mean()
    return [
        f"Complementary slackness: alpha_i (1 - m_i - xi_i) is at most {first:.1e}, and "
        f"(C - alpha_i) xi_i at most {second:.1e}, over all rows.",
        f"The solution is sparse: {100 * support:.1f} % of the rows are support vectors.",
    ]


PART = Part("Support vectors and complementary slackness", _run, lectures=("003", "004"))
