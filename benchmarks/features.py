# SPDX-License-Identifier: BSD-3-Clause
"""Feature maps: Monomials against scikit-learn, Nystroem with many rows, and the exact kernel's bounds.

Every measurement has a process of its own: python -m benchmarks.features WHAT ARGUMENTS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import datasets, machine
from benchmarks.memory import status
from benchmarks.new_process import in_new_process
from benchmarks.report import table

TEXT = "imdb_tfidf"
EXPANDED = (("a9a", 2), ("a9a", 3), ("ijcnn1", 2), ("ijcnn1", 3), (TEXT, 2))
"""Data and degree for Monomials."""
_TEXT_ROWS, _TEXT_COLUMNS = 1000, 5000
LARGE = "covtype_binary_scale"
SAMPLE = 1000
BOUNDED = "ijcnn1"
COUNTS = (500, 1000, 2000, 4000)
"""Columns of the maps whose models are compared with the exact kernel."""


def measure(repeat: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """All three parts; MissingData where a data set is missing."""
    for name in (*(name for name, _ in EXPANDED), LARGE, BOUNDED):
        datasets.find(name)
    expansions = []
    for name, degree in EXPANDED:
        for dtype in ("float32", "float64"):
            tell(f"Monomials({degree}) of {name}, {dtype}")
            arguments = ["monomials", name, str(degree), dtype, str(repeat)]
            one, all_cores = _child(arguments, threads=1), _child(arguments, threads=machine.cores())
            expansions.append(
                {"data": name, "degree": degree, "dtype": dtype, "one": one, "all": all_cores}
            )
    tell(f"Nystroem({SAMPLE}) and LinearSVC, {LARGE}")
    large = _child(["nystroem"], threads=machine.cores())
    bounds = []
    for kind in ("Nystroem", "RandomFourier"):
        for count in COUNTS:
            tell(f"{kind}({count}) and the exact kernel, {BOUNDED}")
            bounds.append(_child(["bound", kind, str(count)], threads=machine.cores()))
    tell(f"the exact kernel, {BOUNDED}")
    exact = _child(["exact"], threads=machine.cores())
    return {"expansions": expansions, "large": large, "bounds": bounds, "exact": exact}


def _child(arguments: list[str], threads: int) -> Any:
    return in_new_process("features", *arguments, OMP_NUM_THREADS=str(threads))


def _sample_of_text(X: Any) -> Any:
    """Some rows, and of their columns those that occur most often."""
    X = X[:_TEXT_ROWS]
    often = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:_TEXT_COLUMNS]
    return X[:, np.sort(often)].tocsr()


def _monomials(name: str, degree: str, dtype: str, repeat: str) -> dict[str, Any]:
    """The best times of both, which take turns."""
    from sklearn.preprocessing import PolynomialFeatures

    from maxmargin.features import Monomials

    X = datasets.load(name, dtype).X
    X = _sample_of_text(X) if name == TEXT else X
    contestants = {
        "ours": Monomials(int(degree)),
        "theirs": PolynomialFeatures(int(degree), include_bias=False),
    }
    best = {kind: [np.inf, np.inf] for kind in contestants}
    results: dict[str, Any] = {}
    for _ in range(int(repeat)):
        for kind, expansion in contestants.items():
            results.pop(kind, None)
            wall, processor = time.perf_counter(), time.process_time()
            results[kind] = expansion.fit_transform(X)
            times = time.perf_counter() - wall, time.process_time() - processor
            best[kind] = [min(pair) for pair in zip(best[kind], times, strict=True)]
    ours, theirs = results["ours"], results["theirs"]
    if ours.shape != theirs.shape or abs(ours - theirs).max() > 1e-5 * abs(theirs).max():
        raise AssertionError("the two expansions disagree")
    return {"values": int(ours.nnz), **best}


def _nystroem() -> list[tuple[str, float, float, float]]:
    """Wall seconds, processor seconds and peak memory of each step."""
    from maxmargin import LinearSVC
    from maxmargin.features import Nystroem

    data = datasets.load(LARGE)
    steps: list[tuple[str, float, float, float]] = []

    def timed(name: str, work: Callable[[], Any]) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = work()
        times = time.perf_counter() - wall, time.process_time() - processor
        steps.append((name, *times, status("VmHWM") / 1e9))
        return result

    features = timed("`Nystroem.fit`", lambda: Nystroem(SAMPLE, gamma=1.0).fit(data.X))
    phi = timed("`Nystroem.transform`", lambda: features.transform(data.X))
    for loss in ("hinge", "squared_hinge"):
        model: Any = LinearSVC(loss=loss, random_state=0)
        timed(f"`LinearSVC`, {loss}", lambda model=model: model.fit(phi, data.y))
        if model.certificate_.relative_gap > model.tol:
            raise AssertionError("a fit without its proof")
    return steps


def _bound(kind: str, count: str) -> dict[str, Any]:
    from maxmargin import LinearSVC, features

    data = datasets.load(BOUNDED)
    chosen = getattr(features, kind)(int(count), gamma=1.0).fit(data.X)
    model = LinearSVC(loss="hinge", random_state=0).fit(chosen.transform(data.X), data.y)
    start = time.process_time()
    bound: Any = features.exact_kernel_bound((chosen, model), data.X, data.y)
    return {
        "map": f"`{kind}({count})`",
        "error": chosen.error_estimate_.relative,
        "model": bound.model_value,
        "lower": bound.lower,
        "upper": bound.upper,
        "relative_gap": bound.relative_gap,
        "seconds": time.process_time() - start,
    }


def _exact() -> list[float]:
    from maxmargin import SVC

    data = datasets.load(BOUNDED)
    proof: Any = SVC(kernel="rbf", gamma=1.0).fit(data.X, data.y).certificate_
    return [proof.dual, proof.primal]


_HOW = """\
# Feature maps

* {facts}.
* Every measurement has a process of its own."""

_MONOMIALS = """\
## Monomials against scikit-learn's PolynomialFeatures

`fit_transform` of sparse rows. The two take turns in {repeat} rounds, the best time of each counts, and
the results are compared. {text} is a sample of {rows:,} rows and the {columns:,} columns that occur most
often. Where the result has more than 30 MB, most of what remains is the system's time to hand out memory: 8
or 12 bytes per value."""

_LARGE = """\
## Nystroem with {sample:,} rows, and LinearSVC, on {data}

581,012 rows, gamma = 1, C = 1, tol = 1e-4, all cores. The peak is that of the process so far, data and
features included."""

_BOUNDS = """\
## The exact kernel SVM, bounded by models on approximate features

{data}, gamma = 1, C = 1, hinge. A certified `SVC` has its optimum between {lower:.1f} and {upper:.1f}.
Seconds are of the processor, for the bound alone."""


def markdown(found: dict[str, Any], repeat: int) -> str:
    """The whole page."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.facts().items())
    how = _HOW.format(facts=facts)
    lower, upper = found["exact"]
    large = found["large"]
    parts = [
        how,
        _MONOMIALS.format(repeat=repeat, text=TEXT, rows=_TEXT_ROWS, columns=_TEXT_COLUMNS),
        table(
            [
                "data",
                "degree",
                "type",
                "values",
                "maxmargin, one thread",
                "scikit-learn",
                "ratio of processor seconds, one thread",
                "ratio of wall seconds, all cores",
            ],
            [_expansion_line(one) for one in found["expansions"]],
        ),
        _LARGE.format(sample=SAMPLE, data=LARGE),
        table(
            ["step", "wall seconds", "processor seconds", "peak memory so far"],
            [
                [name, f"{wall:.1f}", f"{processor:.1f}", f"{peak:.2f} GB"]
                for name, wall, processor, peak in large
            ],
        ),
        f"Fitting, mapping and training with the hinge loss: {sum(step[1] for step in large[:3]):.1f} s.",
        _BOUNDS.format(data=BOUNDED, lower=lower, upper=upper),
        table(
            [
                "map",
                "measured error of the kernel",
                "value of the model",
                "lower bound",
                "upper bound",
                "relative gap",
                "seconds",
            ],
            [_bound_line(bound) for bound in found["bounds"]],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _expansion_line(found: dict[str, Any]) -> list[str]:
    one, every = found["one"], found["all"]
    return [
        found["data"],
        str(found["degree"]),
        found["dtype"],
        f"{one['values'] / 1e6:.1f} million",
        f"{1e3 * one['ours'][1]:.1f} ms",
        f"{1e3 * one['theirs'][1]:.1f} ms",
        f"{one['theirs'][1] / one['ours'][1]:.1f}x",
        f"{every['theirs'][0] / every['ours'][0]:.1f}x",
    ]


def _bound_line(bound: dict[str, Any]) -> list[str]:
    return [
        bound["map"],
        f"{bound['error']:.4f}",
        f"{bound['model']:.0f}",
        f"{bound['lower']:.0f}",
        f"{bound['upper']:.0f}",
        f"{bound['relative_gap']:.3f}",
        f"{bound['seconds']:.1f}",
    ]


_WORK: dict[str, Callable[..., Any]] = {
    "monomials": _monomials,
    "nystroem": _nystroem,
    "bound": _bound,
    "exact": _exact,
}

if __name__ == "__main__":
    print(json.dumps(_WORK[sys.argv[1]](*sys.argv[2:])))
