# SPDX-License-Identifier: BSD-3-Clause
"""The problems that a model file answers, stated for the rows of a data file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from maxmargin.independent.arithmetic import Vector
from maxmargin.independent.places import Place
from maxmargin.independent.readers import Data, Model, class_of, label_text
from maxmargin.independent.rows import KernelRows, PlainRows, Rows, TwinRows
from maxmargin.independent.values import ExactProblem

TUBE_LOSSES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}
"""The loss of the two rows of each example, for each loss of regression."""


class OtherData(Exception):
    """Data that the model cannot be about."""


@dataclass(frozen=True)
class Part:
    """One of the problems that a model answers, with its answer and its claims."""

    title: str
    """Which classes it tells apart; empty where there are only two."""
    problem: ExactProblem
    w: Vector
    b: Fraction
    alpha: list[Fraction]
    claimed_primal: float
    claimed_dual: float
    hard: bool
    shift: Fraction = Fraction(0)
    """What the targets are lowered by, where that is sought."""
    place: Place | None = None
    """Where the file says that the best point is."""


def parts_of(model: Model, data: Data) -> Iterator[Part]:
    """Each problem of the model, with its answer and its claims; an ``OtherData`` says what is amiss."""
    described = model.description
    require_its_rows(described, data)
    tasks = {"regression": _of_regression, "one_class": _of_one_class}
    yield from tasks.get(described["decision"], _of_classes)(model, data)


def require_its_rows(described: Mapping[str, Any], data: Data) -> None:
    """Raises OtherData where these cannot be the rows of the training, or where rows had weights."""
    if described["rows"] != len(data.rows):
        raise OtherData(
            f"the data have {len(data.rows)} rows, and the model was trained on {described['rows']}"
        )
    if described["problem"]["sample_weights"]:
        raise OtherData("the model was trained with sample weights, which are not in its file")


def _of_regression(model: Model, data: Data) -> Iterator[Part]:
    """The one problem of a regression, whose walls are not those that float64 rounds."""
    described = model.description
    stated = described["problem"]
    values, vectors = [number_of(label) for label in data.labels], aligned(data, described, model)
    examples: Rows = PlainRows(vectors)
    if "kernel" in described:
        examples = KernelRows(vectors, described["kernel"])
        w = _coefficients(model, 0, (0, None), list(range(len(vectors))), vectors)
    else:
        w = Vector.of(model.lines("coef")[0])
    epsilon = Fraction(stated["epsilon"])
    walls = [end for y in map(Fraction, values) for end in (y - epsilon, -(y + epsilon))]
    costs = [Fraction(stated["C"])] * len(walls)
    problem = ExactProblem(
        TwinRows(examples),
        [1, -1] * len(values),
        costs,
        TUBE_LOSSES[stated["loss"]],
        stated["intercept"],
        Fraction(stated["intercept_scaling"]),
        targets=walls,
        total=_total(described, 0, costs[::2]),
    )
    yield _part(model, 0, "", problem, w, model.numbers("alpha"))


def _of_one_class(model: Model, data: Data) -> Iterator[Part]:
    """The one problem of one class, whose shift is the intercept of the model."""
    described = model.description
    vectors, count = aligned(data, described, model), len(data.rows)
    rows: Rows = PlainRows(vectors)
    if "kernel" in described:
        rows = KernelRows(vectors, described["kernel"])
        w, alpha = _coefficients(model, 0, (0, None), list(range(count)), vectors), model.numbers("alpha")
    else:
        w, alpha = Vector.of(model.lines("coef")[0]), model.lines("alpha")[0]
    if described["problem"]["C"] != 1.0 or described["shares"][0]["shift"] != model.numbers("intercept")[0]:
        raise OtherData("one class has C = 1, and the shift of its targets for an intercept")
    costs, none = [Fraction(1)] * count, [Fraction(0)] * count
    form = described["problem"]["loss"], described["problem"]["intercept"]
    total = _total(described, 0, costs)
    problem = ExactProblem(rows, [1] * count, costs, *form, targets=none, total=total)
    yield replace(_part(model, 0, "", problem, w, alpha), b=Fraction(0))


def _total(described: Mapping[str, Any], k: int, costs: Sequence[Fraction]) -> Fraction | None:
    """What the multipliers add up to: the float64 that was minimised with, which has to be that of nu."""
    nu = described["problem"].get("nu")
    if nu is None:
        return None
    total, wanted = Fraction(described["shares"][k]["total"]), Fraction(nu) * sum(costs)
    if not 0 < nu <= 1 or abs(total - wanted) > wanted / 10**12:
        raise OtherData("the multipliers do not add up to the share of all costs that nu is")
    return total


def number_of(label: str) -> float:
    """The number that a label is."""
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise OtherData(f"the data have a value that is not a finite number: {label}")
    return number


def _of_classes(model: Model, data: Data) -> Iterator[Part]:
    described = model.description
    stated, classes = described["problem"], [label_text(value) for value in described["classes"]["values"]]
    codes = [class_of(label, classes) for label in data.labels]
    if -1 in codes:
        raise OtherData(
            f"the data have a label that the model does not know: {data.labels[codes.index(-1)]}"
        )
    vectors = aligned(data, described, model)
    with_kernel = "kernel" in described
    sides = _sides(len(classes), described["decision"])
    factors = _factors(stated["class_weight"], classes, codes)
    if stated["formulation"] == "crammer_singer":
        yield _of_all_classes(model, vectors, codes, [stated["C"] * factors[code] for code in codes])
        return
    hard, begin = stated["C"] == "inf", 0
    for k, (first, second) in enumerate(sides):
        members = list(range(len(codes)))
        if len(sides) > 1 and second is not None:
            members = [i for side in (first, second) for i in members if codes[i] == side]
        own = [factors[codes[i]] for i in members]
        if second is None and not with_kernel:  # of linear problems, the rest has the factor 1
            own = [factor if codes[i] == first else 1.0 for i, factor in zip(members, own, strict=True)]
        rows: Rows = PlainRows([vectors[i] for i in members])
        if with_kernel:
            rows = KernelRows(rows.vectors, described["kernel"])
            w = _coefficients(model, k, (first, second), members, vectors)
            alpha = model.numbers("alpha")[begin : begin + len(members)]
            begin += len(members)
        else:
            w, alpha = Vector.of(model.lines("coef")[k]), model.lines("alpha")[k]
        cost = stated["C"] if "nu" not in stated else described["shares"][k]["cost"]
        # C_i is the float64 product: that is what was minimised.
        costs = [Fraction(1.0 * factor if hard else cost * factor) for factor in own]
        signs = [1 if codes[i] == first else -1 for i in members]
        of_nu: dict[str, Any] = {}
        if (total := _total(described, k, costs)) is not None:
            of_nu = {"total": total, "targets": [Fraction(0)] * len(members)}
            if (
                2 * min(sum(c for c, y in zip(costs, signs, strict=True) if y == s) for s in (1, -1))
                < total
            ):
                raise OtherData("nu is more than twice the share of the smaller class")
        problem = ExactProblem(
            rows,
            signs,
            costs,
            stated["loss"],
            stated["intercept"],
            Fraction(stated["intercept_scaling"]),
            penalty=stated["penalty"],
            **of_nu,
        )
        yield _part(model, k, _title(classes, first, second), problem, w, alpha)


def _of_all_classes(model: Model, vectors: list[Vector], codes: list[int], costs: list[float]) -> Part:
    """All m classes in one problem: column j of class k has the place j m + k."""
    described = model.description
    stated, many = described["problem"], len(described["classes"]["values"])
    scaling = Fraction(stated["intercept_scaling"]) if stated["intercept"] == "regularised" else Fraction(0)
    coef = model.lines("coef")
    columns = len(coef[0])
    w = {j * many + k: Fraction(value) for k, line in enumerate(coef) for j, value in enumerate(line)}
    if scaling:
        numbers = model.numbers("intercept")
        w |= {columns * many + k: Fraction(value) / scaling for k, value in enumerate(numbers)}
    rows, shared = [], []
    for x, own, cost in zip(vectors, codes, costs, strict=True):
        values = {j: x[j] for j in x.numerators} | ({columns: scaling} if scaling else {})
        ours = {j * many + own: value for j, value in values.items()}
        for other in (k for k in range(many) if k != own):
            rows.append(Vector(ours | {j * many + other: -value for j, value in values.items()}))
            shared.append(Fraction(cost))
    problem = ExactProblem(PlainRows(rows), [1] * len(rows), shared, "hinge", "none", group=many - 1)
    return replace(_part(model, 0, "", problem, Vector(w), model.lines("alpha")[0]), b=Fraction(0))


def _part(
    model: Model, k: int, title: str, problem: ExactProblem, w: Vector, alpha: Sequence[float]
) -> Part:
    """Problem k with what the file says of it."""
    described = model.description
    claim, places = described["claims"][k], described.get("optimum")
    shift = described["shares"][k]["shift"] if "nu" in described["problem"] else 0.0
    return Part(
        title,
        problem,
        w,
        Fraction(model.numbers("intercept")[k]),
        [Fraction(a) for a in alpha],
        float(claim["primal"]),
        float(claim["dual"]),
        described["problem"]["C"] == "inf",
        Fraction(shift),
        None if places is None else Place(**{name: float(end) for name, end in places[k].items()}),
    )


def aligned(data: Data, described: Mapping[str, Any], model: Model) -> list[Vector]:
    """The rows with their columns in the model's order."""
    names = described["feature_names"]
    columns = described["vectors"]["columns"] if "kernel" in described else len(model.lines("coef")[0])
    if data.names is None or names is None or data.names == names:
        if data.columns > columns or (data.names is not None and data.columns != columns):
            raise OtherData(f"the data have {data.columns} columns, and the model {columns}")
        return [Vector(row) for row in data.rows]
    if missing := [name for name in names if name not in data.names]:
        raise OtherData(f"the data lack the column {missing[0]!r}")
    places = {data.names.index(name): k for k, name in enumerate(names)}
    return [Vector({places[c]: value for c, value in row.items() if c in places}) for row in data.rows]


def _sides(classes: int, decision: str) -> list[tuple[int, int | None]]:
    """The class with label 1 and the one with label -1 of each problem; None: all the others."""
    if classes == 2:
        return [(1, 0)]
    if decision == "one_vs_one":
        return list(combinations(range(classes), 2))
    return [(k, None) for k in range(classes)]


def _title(classes: list[str], first: int, second: int | None) -> str:
    if len(classes) == 2:
        return ""
    return f"{classes[first]} against {'the rest' if second is None else classes[second]}"


def _factors(class_weight: Any, classes: list[str], codes: list[int]) -> list[float]:
    """The factor on C of each class, in float64."""
    if class_weight is None:
        return [1.0] * len(classes)
    if class_weight == "balanced":
        return [float(len(codes)) / (len(classes) * float(codes.count(k))) for k in range(len(classes))]
    named = dict(zip(map(label_text, class_weight["labels"]), class_weight["factors"], strict=True))
    return [float(named.get(label, 1.0)) for label in classes]


def _coefficients(
    model: Model, k: int, sides: tuple[int, int | None], members: list[int], vectors: list[Vector]
) -> Vector:
    """W of a problem with a kernel, held by the coefficients of its rows.

    The support vectors have to be the rows that the file says they are: w is made of the vectors, and the
    proof is about the rows. Of pairs (i, j), a vector of class i has its coefficient in line j - 1 of the
    table, and one of class j in line i.
    """
    described = model.description
    table, support, stored = model.lines("coefficients"), model.numbers("support"), model.vectors()
    owners = [owner for owner, count in enumerate(described["counts"]) for _ in range(count)]
    place = {row: position for position, row in enumerate(members)}
    pairs = len(described["classes"]["values"]) > 2 and described["decision"] == "one_vs_one"
    first, second = sides
    w = {}
    for column, (row, owner) in enumerate(zip(support, owners, strict=True)):
        line = k
        if pairs:
            if owner not in sides:
                continue
            line = (second or 0) - 1 if owner == first else first
        if not 0 <= row < len(vectors) or stored[column] != vectors[row]:
            raise OtherData(f"the support vector {column} of the model is not row {row} of the data")
        if coefficient := table[line][column]:
            if row not in place:
                raise OtherData(f"the support vector {column} of the model is of another class in the data")
            w[place[row]] = coefficient
    return Vector(w)
