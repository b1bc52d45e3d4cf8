# SPDX-License-Identifier: BSD-3-Clause
"""Kernel fits and predictions on a GPU: whole fits with transfers, each proof confirmed on the CPU."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import kernel_data, machine
from benchmarks.report import table

DATA = ("mnist38", "a9a", "ijcnn1", "covtype_binary_scale", "mnist")
_CPU_ROWS = 100_000
"""Rows up to which the CPU fits, too: covtype whole takes it minutes."""
_LINEAR = (4_000_000, 500)
"""Rows and columns of the linear problem, in float32: 8 GB."""
_PREDICTED = 10_000
"""Rows that are predicted."""


@dataclass(frozen=True)
class Fit:
    """One data set."""

    data: str
    shape: tuple[int, int]
    classes: int
    C: float
    gamma: float
    first: float
    """Seconds of the first fit, in which programs may have to be compiled."""
    seconds: float
    """The best of several fits."""
    cpu: float | None
    gap: float
    """As it was proven on the card."""
    confirmed: float
    """The gap of the same multipliers as the CPU proves it."""
    steps: int
    support: int
    same_bits: bool
    """Whether all fits had the same coefficients."""


@dataclass
class Found:
    """All that was measured."""

    card: str
    fits: list[Fit] = field(default_factory=list[Fit])
    predictions: list[tuple[str, int, float, float, float]] = field(default_factory=list[Any])
    """Data, support vectors, seconds from arrays on the card, from arrays of NumPy, and on the CPU."""
    linear: list[tuple[float, float, float, float, float]] = field(default_factory=list[Any])
    """C, seconds on the card, on the CPU, and the gap of each."""
    tests: str = ""
    """What the tests that need a card came to."""


def measure(names: list[str], repeat: int, tell: Callable[[str], None]) -> Found:
    """Fit all data sets; raises NoCardError where there is no GPU."""
    from maxmargin.gpu.cards import the_card

    card = the_card()
    found = Found(card.name)
    for name in names:
        tell(name)
        fit, model, data = _fit(card, name, repeat)
        found.fits.append(fit)
        if fit.support > 1000:
            found.predictions.append((name, fit.support, *_predict(card, model, data, repeat)))
    tell("linear")
    found.linear = _linear(card, repeat)
    tell("tests")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "tests/gpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", answer.stdout.splitlines()[-1])
    found.tests = ", ".join(counts) or "did not run"
    return found


def _fit(card: Any, name: str, repeat: int) -> tuple[Fit, Any, Any]:
    from maxmargin import SVC

    data = kernel_data.load(name)
    C, gamma = kernel_data.PARAMETERS[name]

    def fit(**options: Any) -> tuple[Any, float]:
        begin = time.perf_counter()
        model = SVC(C=C, gamma=gamma, random_state=0, **options).fit(data.X, data.y)
        return model, time.perf_counter() - begin

    _, first = fit(device="cuda")
    fits = [fit(device="cuda") for _ in range(repeat)]
    model = fits[0][0]
    cpu = (
        min(fit()[1] for _ in range(2)) if data.X.shape[0] <= _CPU_ROWS and len(data.classes) == 2 else None
    )
    same = all(np.array_equal(_coefficients(model), _coefficients(other)) for other, _ in fits)
    answer = Fit(
        name,
        data.X.shape,
        len(data.classes),
        C,
        gamma,
        first,
        min(seconds for _, seconds in fits),
        cpu,
        float(model.certificate_.relative_gap),
        _confirmed(model, data),
        int(model.n_iter_.sum()),
        len(model.support_),
        same,
    )
    return answer, model, data


def _coefficients(model: Any) -> Any:
    return model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_


def _confirmed(model: Any, data: Any) -> float:
    """The largest gap of all problems, with the multipliers of the model, proven on the CPU."""
    from maxmargin.proof.certificate import certify
    from maxmargin.proof.model import each_of
    from maxmargin.proof.solution import Solution
    from maxmargin.reductions.class_problems import KernelProblems
    from maxmargin.reductions.decompositions import decomposition

    labels, codes = np.unique(data.y, return_inverse=True)
    kind = decomposition(len(labels), pairs=True)
    problems = KernelProblems(labels, codes, data.X, model.kernel_, kind, C=model.C)
    return max(
        float(certify(problems.problem(k), Solution(alpha=proof.alpha)).relative_gap)
        for k, proof in enumerate(each_of(model.certificate_))
    )


def _linear(card: Any, repeat: int) -> list[tuple[float, float, float, float, float]]:
    """Fits of dense data that lie on the card, and of the same data on the CPU."""
    from maxmargin import LinearSVC

    arrays, (count, columns) = card.arrays, _LINEAR
    random = arrays.random.default_rng(0)
    X = arrays.empty((count, columns), np.float32)
    for first in range(0, count, 500_000):
        X[first : first + 500_000] = random.standard_normal(
            (min(500_000, count - first), columns), np.float32
        )
    scores = X @ random.standard_normal(columns, np.float32)
    scores += 0.5 * scores.std() * random.standard_normal(count, np.float32)
    y = card.get(scores > 0).astype(np.int64)
    here, lines = card.get(X), []
    for C in (1.0, 32.0):
        times, gaps = [], []
        for rows, rounds in ((X, repeat), (here, 1)):
            each = []
            for _ in range(rounds):
                begin = time.perf_counter()
                model = LinearSVC(loss="hinge", C=C, tol=1e-3, random_state=0).fit(rows, y)
                each.append(time.perf_counter() - begin)
            times.append(min(each))
            gaps.append(float(model.certificate_.relative_gap))
        lines.append((C, *times, *gaps))
    return lines


def _predict(card: Any, model: Any, data: Any, repeat: int) -> tuple[float, float, float]:
    X = data.X[:_PREDICTED]
    X = X.toarray() if hasattr(X, "toarray") else X
    there = card.put(X)
    times = []
    for rows, device in ((there, None), (X, "cuda"), (X, "cpu")):
        model.device = device
        model.predict(rows)
        each = []
        for _ in range(repeat):
            begin = time.perf_counter()
            model.predict(rows)
            card.wait()
            each.append(time.perf_counter() - begin)
        times.append(min(each))
    return times[0], times[1], times[2]


_HOW = """\
# Kernel SVMs on a GPU

Whole fits of `SVC(C, gamma, device="cuda")` from arrays of NumPy, with transfers and the proof: seconds,
the best of {repeat}, certified to a relative gap of 1e-3. The first fit of a kind compiles its programs, or
finds them on disk, and loads the libraries. The gap is proven on the card in double precision; "confirmed"
is the gap that the CPU proves for the same multipliers. The CPU's time is that of `SVC(C, gamma)` on all
{cores} cores of the same machine. Card: {card}. {facts}.

The tests that need a card were run on it on {date}: {tests}."""


def markdown(found: Found, repeat: int) -> str:
    """The whole page."""
    parts = [
        _HOW.format(
            repeat=repeat,
            cores=machine.cores(),
            card=found.card,
            facts=", ".join(f"{name} {value}" for name, value in machine.facts(("cupy-cuda13x",)).items()),
            date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            tests=found.tests,
        )
    ]
    head = ["data", "rows x columns", "C, gamma", "GPU", "first fit", "CPU", "gap", "confirmed", "rounds"]
    lines = [
        [
            fit.data if fit.classes == 2 else f"{fit.data}, {fit.classes} classes in pairs",
            f"{fit.shape[0]:,} x {fit.shape[1]:,}",
            f"{fit.C:g}, {fit.gamma:g}",
            f"{fit.seconds:.3f} s",
            f"{fit.first:.1f} s",
            "" if fit.cpu is None else f"{fit.cpu:.2f} s",
            f"{fit.gap:.1e}",
            f"{fit.confirmed:.1e}",
            f"{fit.steps:,}",
            f"{fit.support:,}",
            "yes" if fit.same_bits else "**no**",
        ]
        for fit in found.fits
    ]
    parts += ["## Fits", table([*head, "support vectors", "same bits in every fit"], lines)]
    lines = [
        [name, f"{support:,}", *(f"{1e3 * seconds:.1f} ms" for seconds in times)]
        for name, support, *times in found.predictions
    ]
    head = ["data", "support vectors", "from the card", "from NumPy", "CPU"]
    parts += [f"## Predictions of {_PREDICTED:,} rows", table(head, lines)]
    lines = [
        [f"{C:g}", f"{gpu:.2f} s", f"{cpu:.2f} s", f"{gap:.1e}", f"{other:.1e}"]
        for C, gpu, cpu, gap, other in found.linear
    ]
    title = f'## `LinearSVC(loss="hinge")`, {_LINEAR[0]:,} x {_LINEAR[1]} in float32 that lie on the card'
    parts += [title, table(["C", "GPU", "CPU", "gap on the GPU", "gap on the CPU"], lines)]
    return "\n\n".join(parts) + "\n"
