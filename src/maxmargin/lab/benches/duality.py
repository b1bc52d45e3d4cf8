# SPDX-License-Identifier: BSD-3-Clause
"""Convexity and duality: lines below a graph, and the lower bounds that a multiplier makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin.lab.asked import Asked
from maxmargin.lab.benches import Answer, Bench
from maxmargin.problem.losses import LOSSES
from maxmargin.types import Vector

_GRID = np.linspace(-3.0, 3.0, 601)
"""Where graphs are drawn and lines are held against them."""
_FINE = np.linspace(-1.8, 1.8, 3601)
"""The points x of a constrained problem: all minima are those over this grid."""
_MULTIPLIERS = np.linspace(0.0, 3.0, 301)
"""The multipliers at which the graph of the dual function is drawn."""
_BELOW = 1e-9
"""What a line may be above the graph by rounding."""
_NEARLY = 0.03
"""What a condition may be missed by and still be shown as fulfilled: a hand cannot place x better."""


@dataclass(frozen=True)
class Graph:
    """A function of one number, with the slopes of its graph."""

    value: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    """The derivative wherever there is one."""
    kink: float | None = None
    """The place without derivative; the slopes on both sides of it are the ends of the subdifferential."""


def _loss(name: str, kink: float | None = None) -> Graph:
    return Graph(LOSSES[name].value, LOSSES[name].derivative, kink)


GRAPHS = {
    "hinge": _loss("hinge", 1.0),
    "absolute": Graph(np.abs, np.sign, 0.0),
    "squared_hinge": _loss("squared_hinge"),
    "logistic": _loss("logistic"),
    "parabola": Graph(lambda x: 0.5 * x**2, lambda x: x),
    "wells": Graph(lambda x: 0.25 * (x**2 - 2.0) ** 2 + 0.3 * x, lambda x: x * (x**2 - 2.0) + 0.3),
}
"""The functions of the first part, by name; the last one is not convex."""


def _ends(graph: Graph, x: float) -> tuple[float, float]:
    """The smallest and the largest slope at x: the same one where there is a derivative."""
    if graph.kink is None or abs(x - graph.kink) > _NEARLY:
        slope = float(graph.slope(np.array([x]))[0])
        return slope, slope
    low, high = graph.slope(np.array([graph.kink - 1.0, graph.kink + 1.0]))
    return float(low), float(high)


def _lines(asked: Asked) -> dict[str, object]:
    """The graph, and the lines that touch it at x."""
    name, x = asked.choice("graph", GRAPHS), asked.number("x", -3.0, 3.0)
    graph = GRAPHS[name]
    if graph.kink is not None and abs(x - graph.kink) <= _NEARLY:
        x = graph.kink
    low, high = _ends(graph, x)
    heights, height = graph.value(_GRID), float(graph.value(np.array([x]))[0])
    is_below = bool(np.all(heights >= height + low * (_GRID - x) - _BELOW))
    return {
        "across": _GRID,
        "heights": heights,
        "slopes": graph.slope(_GRID),
        "kink": graph.kink,
        "place": x,
        "value": height,
        "low": low if is_below else None,
        "high": high if is_below else None,
        "slope": low,
        "least": is_below and low <= 0.0 <= high,
    }


@dataclass(frozen=True)
class Constrained:
    """Minimise f(x) subject to g(x) <= 0."""

    f: Callable[[Vector], Vector]
    g: Callable[[Vector], Vector]
    f_slope: Callable[[float], float]
    g_slope: Callable[[float], float]


CASES = {
    "svm": Constrained(lambda x: 0.5 * x**2, lambda x: 1.0 - x, lambda x: x, lambda x: -1.0),
    "convex": Constrained(
        lambda x: 0.8 * x**2 - 0.9 * x + 1.0, lambda x: x, lambda x: 1.6 * x - 0.9, lambda x: 1.0
    ),
    "gap": Constrained(
        lambda x: (x**2 - 1.0) ** 2 - 0.9 * x + 1.2,
        lambda x: x,
        lambda x: 4.0 * x * (x**2 - 1.0) - 0.9,
        lambda x: 1.0,
    ),
    "slater": Constrained(lambda x: x + 1.5, lambda x: x**2, lambda x: 1.0, lambda x: 2.0 * x),
}
"""The problems of the second part: the hard margin of one point; a convex one; one with a hollow; one that
no x fulfils with room to spare."""


def _dual(asked: Asked) -> dict[str, object]:
    """The set of all (g, f), the line of slope -alpha below it, and the four conditions at (z, alpha)."""
    name, z = asked.choice("case", CASES), asked.number("z", -1.8, 1.8)
    alpha = asked.number("alpha", 0.0, 3.0)
    case = CASES[name]
    f, g = case.f(_FINE), case.g(_FINE)
    duals = (f + np.outer(_MULTIPLIERS, g)).min(axis=1)
    dual = f + alpha * g
    value, constraint = float(case.f(np.array([z]))[0]), float(case.g(np.array([z]))[0])
    best = int(duals.argmax())
    allowed = np.where(g <= 1e-12, f, np.inf)
    return {
        "x": _FINE[::12],
        "f": f[::12],
        "g": g[::12],
        "primal": float(allowed.min()),
        "best_x": float(_FINE[allowed.argmin()]),
        "best": [float(g[allowed.argmin()]), float(allowed.min())],
        "multipliers": _MULTIPLIERS,
        "duals": duals,
        "dual": float(dual.min()),
        "touches": [float(g[dual.argmin()]), float(f[dual.argmin()])],
        "best_dual": float(duals.max()),
        "best_alpha": float(_MULTIPLIERS[best]),
        "here": [constraint, value],
        "conditions": {
            "constraint": max(constraint, 0.0),
            "multiplier": max(-alpha, 0.0),
            "slackness": abs(alpha * constraint),
            "stationarity": abs(case.f_slope(z) + alpha * case.g_slope(z)),
        },
        "nearly": _NEARLY,
    }


_PARTS = {"lines": _lines, "dual": _dual}


def show(asked: Asked) -> Answer:
    """What the chosen part draws."""
    part = asked.choice("part", _PARTS)
    return {"part": part} | _PARTS[part](asked)


_OF_GRAPHS = {
    "hinge": "np.maximum(0, 1 - x)",
    "absolute": "np.abs(x)",
    "squared_hinge": "np.maximum(0, 1 - x) ** 2",
    "logistic": "np.logaddexp(0, -x)",
    "parabola": "0.5 * x**2",
    "wells": "0.25 * (x**2 - 2) ** 2 + 0.3 * x",
}
_OF_CASES = {
    "svm": ("0.5 * x**2", "1 - x"),
    "convex": ("0.8 * x**2 - 0.9 * x + 1", "x"),
    "gap": ("(x**2 - 1) ** 2 - 0.9 * x + 1.2", "x"),
    "slater": ("x + 1.5", "x**2"),
}
"""The same functions as Python, for people who copy them."""


def script(asked: Asked) -> Answer:
    """A script that computes the slopes of all lines below the graph, or the two values."""
    if asked.choice("part", _PARTS) == "lines":
        found = _lines(asked)
        text = (
            '"""The slopes of all lines that touch a graph at a point and lie below it."""\n\n'
            "import numpy as np\n\n\ndef f(x):\n"
            f"    return {_OF_GRAPHS[asked.choice('graph', GRAPHS)]}\n\n\n"
            f"place, z = {found['place']:.10g}, np.linspace(-3, 3, 600001)\n"
            "z = z[np.abs(z - place) > 1e-6]\n"
            "slopes = (f(z) - f(place)) / (z - place)\n"
            'print(f"value = {f(place):.10g}")\n'
            "# Below the graph: no steeper than chords to the right, no flatter than those to the left.\n"
            'print("smallest slope:", slopes[z < place].max())\n'
            'print("largest slope:", slopes[z > place].min())\n'
        )
        return {"script": text}
    _dual(asked)  # refuses what the bench would refuse
    f, g = _OF_CASES[asked.choice("case", CASES)]
    text = (
        '"""A problem with one constraint, and the lower bound that a multiplier gives."""\n\n'
        "import numpy as np\n\nx = np.linspace(-1.8, 1.8, 3601)\n"
        f"f, g = {f}, {g}\nalpha = {asked.number('alpha', 0.0, 3.0):.10g}\n"
        'print(f"p = {f[g <= 1e-12].min():.10g}")\n'
        'print(f"q = {(f + alpha * g).min():.10g}")\n'
        "multipliers = np.linspace(0, 3, 301)\n"
        'print(f"d = {max((f + each * g).min() for each in multipliers):.10g}")\n'
    )
    return {"script": text}


BENCH = Bench(
    order=6,
    title="Convexity and duality",
    invitation=(
        "Drag the point along the graph to its kink: a fan of lines touches it there and stays below. "
        "Then take a problem and slide α: each line below is a lower bound, and the best one is the dual."
    ),
    tour="15_duality",
    answers={"show": show, "script": script},
)
