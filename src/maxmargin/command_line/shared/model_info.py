# SPDX-License-Identifier: BSD-3-Clause
"""The part of ``maxmargin info`` that is about model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from maxmargin.command_line.shared.answer import DONE, attributes, print_json
from maxmargin.command_line.shared.columns import column_in_words, encoding_as_json, encoding_in_words
from maxmargin.command_line.shared.features import features_as_json, features_in_words, monomial_name
from maxmargin.command_line.shared.verdict import claim_as_json, kernel_described
from maxmargin.files import SavedKernelModel, SavedModel, StoredModel, load_model
from maxmargin.files.data.labels import label_text, quoted_label
from maxmargin.files.models.support_vectors import with_support_vectors
from maxmargin.tables.encoding import Encoding
from maxmargin.tools.words import bytes_in_words, some

_HEAVIEST = 5
"""Features of the largest weights that are named."""
_MOST_COLUMNS = 50
"""Columns of a table that are told one by one."""
_FORMULATIONS = {"crammer_singer": "Crammer and Singer's formulation"}


def tell(path: Path, *, as_json: bool) -> int:
    """Say what is in a model file; what it claims is repeated, not checked."""
    model = load_model(path)
    if as_json:
        print_json(_as_json(path, model))
        return DONE
    typer.echo(f"{path}: model written by {model.writer}, {bytes_in_words(path.stat().st_size)}")
    for name, words in _lines(model).items():
        typer.echo(f"  {name:<10}{words}")
    if model.encoding is not None:
        _tell_columns(model.encoding)
    if model.claims is not None:
        typer.echo(f"These are claims. To check them: maxmargin certify {path} DATA")
    return DONE


def _tell_columns(encoding: Encoding) -> None:
    """What becomes of each column of a table, of not too many."""
    typer.echo("Columns of the table:")
    for column in encoding.columns[:_MOST_COLUMNS]:
        typer.echo(f"  {column.name:<16} {column_in_words(column)}")
    if len(encoding.columns) > _MOST_COLUMNS:
        typer.echo(f"  and {len(encoding.columns) - _MOST_COLUMNS} more")
    for sentence in encoding_in_words(encoding)[1:]:
        typer.echo(sentence)


def _lines(model: StoredModel) -> dict[str, str]:
    task = "classes", some([quoted_label(label) for label in model.classes], 10)
    if not model.has_classes:
        task = "task", model.decision.replace("_", " ")
    lines = {
        task[0]: task[1],
        "features": f"{model.features}" + (", with names" if model.feature_names is not None else ""),
    }
    if isinstance(model, SavedModel) and model.expansion is not None:
        lines["expanded"] = features_in_words(model.expansion)
    if model.encoding is not None:
        label = model.encoding.label
        lines["table"] = f"{len(model.encoding.columns)} columns" + (f", label '{label}'" if label else "")
    if model.preparation is not None:
        lines["before"] = str(model.preparation)
    lines["problem"] = problem_in_words(model)
    if isinstance(model, SavedModel):
        lines["heaviest"] = ", ".join(f"{name} ({weight:+.3g})" for name, weight, *_ in heaviest(model))
    if isinstance(model, SavedKernelModel):
        lines |= _kernel_lines(model)
    if model.solver is not None:
        lines["solver"] = model.solver
    if model.claims is not None and model.status is not None:
        worst = max(model.claims, key=lambda claim: claim.relative_gap)
        lines["ended"] = f"{model.status.name.lower().replace('_', ' ')} after {model.steps} steps"
        lines["claims"] = (
            f"primal {worst.primal:.8g}, dual {worst.dual:.8g}, relative gap {worst.relative_gap:.1e} "
            f"(tol {model.tol:g})"
            + (f", the worst of {len(model.claims)}" if len(model.claims) > 1 else "")
        )
    lines["proof"] = _proof(model)
    if model.rows is not None:
        lines["data"] = f"{model.rows} rows, fingerprint {model.fingerprint or 'not kept'}"
    return lines


def _proof(model: StoredModel) -> str:
    if model.is_ranking:  # whose multipliers follow from the model
        return "all of it: the multipliers of pairs follow from the weights"
    if model.certificates is not None:
        return f"the multipliers of all {model.rows} rows"
    vectors = with_support_vectors(model)
    if vectors is not None and model.format == "libsvm":
        return f"{len(vectors.owners)} support vectors with their coefficients"
    return "none in the file"


def _kernel_lines(model: SavedKernelModel) -> dict[str, str]:
    vectors = model.vectors
    held = "as rows of the given matrix"
    if vectors is not None:
        held = f"{'sparse' if hasattr(vectors, 'indptr') else 'dense'}, {vectors.dtype}"
    if not model.has_classes:
        return {"kernel": str(model.kernel), "vectors": f"{model.coefficients.shape[1]}, {held}"}
    each = [
        f"{quoted_label(label)} ({count})" for label, count in zip(model.classes, model.counts, strict=True)
    ]
    total = model.coefficients.shape[1]
    return {"kernel": str(model.kernel), "vectors": f"{total}, {held}: {some(each, 10)}"}


def problem_in_words(model: StoredModel) -> str:
    """What was minimised."""
    problem = model.problem
    cost = problem.get("C")
    words = [
        f"{problem['loss'].replace('_', ' ')} loss",
        "C is not in the file" if cost is None else f"C = {cost:g}",
        f"{problem['intercept']} intercept" if problem["intercept"] != "none" else "no intercept",
    ]
    if model.has_nu:
        words[1] = "nu is not in the file" if problem["nu"] is None else f"nu = {problem['nu']:g}"
        if model.is_regression:
            words.insert(2, "C is not in the file" if cost is None else f"C = {cost:g}")
            words.insert(
                2, "epsilon unknown" if model.shares is None else f"epsilon {model.shares[0].shift:g}"
            )
    elif model.is_regression:
        epsilon = problem["epsilon"]
        words.insert(1, "epsilon unknown" if epsilon is None else f"epsilon = {epsilon:g}")
    if problem.get("penalty", "l2") != "l2":
        words.append(f"{problem['penalty']} penalty")
    if problem.get("formulation") in _FORMULATIONS:
        words.append(_FORMULATIONS[problem["formulation"]])
    elif len(model.classes) > 2:
        words.append(model.decision.replace("_", " "))
    if problem.get("class_weight") is not None:
        weight = problem["class_weight"]
        named = weight if isinstance(weight, str) else some([f"{k}: {v:g}" for k, v in weight.items()])
        words.append(f"class weights {named}")
    if problem.get("sample_weights"):
        words.append("sample weights, which are not in the file")
    return ", ".join(words)


class Weight(NamedTuple):
    """A feature that weighs much."""

    name: str
    weight: float
    """The weight with its sign; of several problems, the largest of any."""
    column: int
    """Its place in coef."""
    problem: int
    """The problem that it weighs so much in."""


def heaviest(model: SavedModel, most: int = _HEAVIEST) -> list[Weight]:
    """The features of the largest weights."""
    size = np.abs(model.coef).max(axis=0)
    order = np.argsort(-size, kind="stable")[:most]
    row = np.abs(model.coef[:, order]).argmax(axis=0)
    return [
        Weight(_name(model, column), float(model.coef[k, column]), column, k)
        for column, k in zip(order.tolist(), row.tolist(), strict=True)
    ]


def _name(model: SavedModel, column: int) -> str:
    """What a column of coef weighs."""
    if model.preparation is not None and not model.preparation.keeps_columns:
        return str(column + 1)
    if model.expansion is not None:
        return monomial_name(model.expansion, column, model.feature_names)
    return str(column + 1) if model.feature_names is None else model.feature_names[column]


def _as_json(path: Path, model: StoredModel) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "file": path,
        "kind": "model",
        "bytes": path.stat().st_size,
        **attributes(model, "writer", "format", "classes", "features", "feature_names", "problem"),
        **attributes(model, "solver", "steps", "tol", "rows", "fingerprint"),
        "status": None if model.status is None else model.status.name.lower(),
        "claims": model.claims and [claim_as_json(claim) for claim in model.claims],
        "proof": model.certificates is not None,
        "kernel": kernel_described(model),
        "feature_map": features_as_json(getattr(model, "expansion", None)),
        "table": encoding_as_json(model.encoding),
        "before": [] if model.preparation is None else [step.name for step in model.preparation.steps],
    }
    if isinstance(model, SavedModel):
        answer["heaviest"] = [{"feature": name, "weight": weight} for name, weight, *_ in heaviest(model)]
    if isinstance(model, SavedKernelModel):
        owners = ["all"] if not model.has_classes else list(map(label_text, model.classes))
        answer["support_vectors"] = dict(zip(owners, model.counts.tolist(), strict=True))
    return answer
