# SPDX-License-Identifier: BSD-3-Clause
"""Kernel fits and predictions on a GPU: whole fits with transfers, each proof confirmed on the CPU."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks import cuml, datasets, kernel_data, machine, torchkm
from benchmarks.datasets import DataSet
from benchmarks.gpu_rows import rows_on_card
from benchmarks.report import table
from benchmarks.thundersvm import ThunderSVM

SHIFTED = "mnist_1e6"
"""The images of mnist and as many copies, shifted by up to two pixels, as make a million rows: 8 or not."""
DATA = ("mnist38", "a9a", "ijcnn1", "covtype_binary_scale", "mnist", SHIFTED)
_FOR_THUNDERSVM = ("mnist38", "a9a", "ijcnn1", "mnist", SHIFTED)
"""Data that ThunderSVM is given, too: covtype whole takes it two minutes."""
_FOR_TORCHKM = "mnist38"
"""Data that TorchKM is given: all eigenvectors of more rows take it minutes."""
_LONG_FITS = 1
"""Fits of a million rows that are measured, after the first one."""
_CPU_ROWS = 100_000
"""Rows up to which the CPU fits, too: covtype whole takes it minutes."""
_LINEAR = (4_000_000, 500)
"""Rows and columns of the linear problem, in float32: 8 GB."""
_LINEAR_C = 1.0, 32.0
_SANITIZER_SECONDS = 120
"""How long a tool of compute-sanitizer may take."""
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
    confirmed: float | None
    """The gap of the same multipliers as the CPU proves it."""
    steps: int
    support: int
    same_bits: bool
    """Whether all fits had the same coefficients."""
    thunder: tuple[float, float] | None = None
    """The seconds that ThunderSVM takes, and the gap of its multipliers where there are two classes."""


class LinearFit(NamedTuple):
    """Fits of the linear data at one C, on the card and on the CPU."""

    C: float
    seconds: float
    cpu: float
    gap: float
    gap_of_cpu: float
    bound: float
    """The better lower bound that one of the two has proven."""


@dataclass
class Found:
    """All that was measured."""

    card: str
    fits: list[Fit] = field(default_factory=list[Fit])
    predictions: list[tuple[str, int, float, float, float]] = field(default_factory=list[Any])
    """Data, support vectors, seconds from arrays on the card, from arrays of NumPy, and on the CPU."""
    linear: list[LinearFit] = field(default_factory=list[LinearFit])
    two_cores: float | None = None
    """Seconds of the first of these on two cores of the CPU."""
    cuml: list[cuml.Fit] = field(default_factory=list[cuml.Fit])
    """What cuML's LinearSVC makes of the linear data."""
    torchkm: tuple[float, float] | None = None
    """The seconds that TorchKM takes, and how far its model is above our lower bound, as a share of it."""
    tests: str = ""
    """What the tests that need a card came to."""
    sanitized: dict[str, str] = field(default_factory=dict[str, str])
    """What each tool of compute-sanitizer said of those of the programs."""


def measure(names: list[str], repeat: int, thundersvm: str | None, tell: Callable[[str], None]) -> Found:
    """Fit all data sets; raises NoCardError where there is no GPU."""
    from maxmargin.gpu.cards import the_card

    card = the_card()
    peer = None if thundersvm is None else ThunderSVM(thundersvm)
    found = Found(card.name)
    for name in names:
        tell(name)
        fit, model, data = _fit(card, name, repeat, peer)
        found.fits.append(fit)
        if fit.support > 1000 and name != SHIFTED:
            found.predictions.append((name, fit.support, *_predict(card, model, data, repeat)))
        if name == _FOR_TORCHKM and torchkm.is_installed():
            tell("TorchKM")
            found.torchkm = _torchkm(card, model, data)
    tell("linear")
    found.linear, found.two_cores = _linear(card, repeat)
    if cuml.is_installed():
        tell("cuML")
        found.cuml = cuml.fits(_LINEAR, _LINEAR_C)
    tell("tests")
    answer = _tests(())
    ended = f"no counts, exit code {answer.returncode}, {answer.stderr.strip()[-300:]!r}"
    found.tests = _counts(answer.stdout) or ended
    for tool in ("memcheck", "racecheck"):
        tell(tool)
        found.sanitized[tool] = _sanitized(tool)
    return found


def _tests(before: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    return subprocess.run(
        [*command, "tests/gpu/test_on_a_card.py", *options], capture_output=True, text=True, check=False
    )


def _counts(printed: str) -> str:
    last = (printed.splitlines() or [""])[-1]
    return ", ".join(re.findall(r"\d+ (?:passed|failed|skipped|errors?)", last))


def _sanitized(tool: str) -> str:
    """The tests of the programs themselves under a tool of compute-sanitizer, and what it found."""
    if shutil.which("compute-sanitizer") is None:
        return "is not installed"
    # Kernels of CuPy itself (flatnonzero) make racecheck warn of lanes of a warp that rely on their order.
    before = ("timeout", str(_SANITIZER_SECONDS), "compute-sanitizer", "--tool", tool)
    before += ("--kernel-regex-exclude", "kernel_substring=cupy_") if tool == "racecheck" else ()
    answer = _tests(before, "-k", "Gaussian or passes")
    summary = re.findall(r"(ERROR SUMMARY|RACECHECK SUMMARY): (.*)", answer.stdout)
    counts = [line for line in answer.stdout.splitlines() if " passed" in line or " failed" in line]
    if not summary:
        return f"did not end within {_SANITIZER_SECONDS} s"
    return f"{summary[-1][1]} ({_counts(counts[-1] if counts else '')})"


def _data(name: str) -> DataSet:
    if name != SHIFTED:
        return kernel_data.load(name)
    data, count = datasets.load("mnist"), 1_000_000
    images = data.X.reshape(-1, 28, 28)
    shifts = sorted(product(range(-2, 3), repeat=2), key=lambda shift: shift[0] ** 2 + shift[1] ** 2)
    X, y = np.zeros((count, 784), np.float32), np.zeros(count)
    for k, first in enumerate(range(0, count, len(images))):
        rows = min(len(images), count - first)
        moved = np.roll(images[:rows], shifts[k], (1, 2)).reshape(rows, -1)
        X[first : first + rows], y[first : first + rows] = moved / np.float32(255), data.y[:rows] == 8
    return DataSet(name, X, y)


def _fit(card: Any, name: str, repeat: int, peer: ThunderSVM | None) -> tuple[Fit, Any, Any]:
    from maxmargin import SVC

    data = _data(name)
    C, gamma = kernel_data.PARAMETERS["mnist" if name == SHIFTED else name]

    def fit(**options: Any) -> tuple[Any, float]:
        begin = time.perf_counter()
        model = SVC(C=C, gamma=gamma, random_state=0, **options).fit(data.X, data.y)
        return model, time.perf_counter() - begin

    _, first = fit(device="cuda")
    fits = [fit(device="cuda") for _ in range(_LONG_FITS if name == SHIFTED else repeat)]
    model = fits[0][0]
    cpu = (
        min(fit()[1] for _ in range(2)) if data.X.shape[0] <= _CPU_ROWS and len(data.classes) == 2 else None
    )
    thunder = None if peer is None or name not in _FOR_THUNDERSVM else _thunder(card, peer, data, C, gamma)
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
        None if name == SHIFTED else _confirmed(model, data),
        int(model.n_iter_.sum()),
        len(model.support_),
        same,
        thunder,
    )
    return answer, model, data


def _thunder(card: Any, peer: ThunderSVM, data: DataSet, C: float, gamma: float) -> tuple[float, float]:
    """The better of two fits, or one of a million rows; two classes are proven on the card."""
    from maxmargin.proof.certificate import certify
    from maxmargin.proof.solution import Solution

    answers = [peer.fit(data.X, data.y, C, gamma) for _ in range(_LONG_FITS if len(data.y) == 10**6 else 2)]
    seconds = min(answer.seconds for answer in answers)
    if len(data.classes) > 2:
        return seconds, float("nan")
    alpha = np.zeros(len(data.y))
    alpha[answers[0].support] = np.minimum(np.abs(answers[0].coefficients[0].astype(np.float64)), C)
    problem = _two_classes(card, data, C, gamma)
    return seconds, float(certify(problem, Solution(alpha=alpha)).relative_gap)


def _torchkm(card: Any, model: Any, data: DataSet) -> tuple[float, float]:
    """A fit, and how far ``certify`` finds its model above our lower bound."""
    from maxmargin.proof.certificate import certify
    from maxmargin.proof.solution import Solution

    problem = _two_classes(card, data, model.C, model.gamma)
    answer = torchkm.fit(data.X, problem.y, model.C, model.gamma)
    proof = certify(problem, Solution(w=answer.coefficients, b=answer.b))
    return answer.seconds, float(proof.primal / model.certificate_.dual) - 1.0


def _two_classes(card: Any, data: DataSet, C: float, gamma: float) -> Any:
    """The problem of two classes, with its rows on the card."""
    from maxmargin import Problem
    from maxmargin.gpu.kernel_rows import CardData, CardKernelRows
    from maxmargin.kernels import Gaussian
    from maxmargin.problem.rows import Rows

    rows = CardKernelRows(CardData(card, data.X), Rows(data.X), Gaussian(gamma))
    return Problem.of(rows, np.where(data.y == data.classes[1], 1.0, -1.0), C)


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


def _linear(card: Any, repeat: int) -> tuple[list[LinearFit], float]:
    """Fits of dense data that lie on the card, and of the same on the CPU; the first on two cores, too."""
    from maxmargin import LinearSVC

    X, labels = rows_on_card(card.arrays, _LINEAR)
    y = card.get(labels)
    here, lines = card.get(X), []

    def fit(rows: Any, C: float, **options: Any) -> tuple[float, float, float]:
        begin = time.perf_counter()
        model = LinearSVC(loss="hinge", C=C, tol=1e-3, random_state=0, **options).fit(rows, y)
        proof = model.certificate_
        return time.perf_counter() - begin, float(proof.relative_gap), float(proof.dual)

    for C in _LINEAR_C:
        there, own = min(fit(X, C) for _ in range(repeat)), fit(here, C)
        lines.append(LinearFit(C, there[0], own[0], there[1], own[1], max(there[2], own[2])))
    return lines, fit(here, 1.0, n_jobs=2)[0]


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
the best of {repeat}, certified to a relative gap of 1e-3; of the million rows one fit. The first fit of
a kind compiles its programs, or finds them on disk, and loads the libraries. The gap is proven on the card
in double precision; "confirmed" is the gap that the CPU proves for the same multipliers. The CPU's time is
that of `SVC(C, gamma)` on all {cores} cores of the same machine. ThunderSVM's is the better of two fits in
the same process, at its default tolerance, its copying of the rows included; the gap of its multipliers is
proven by `certify`. mnist_1e6 are the images of mnist, shifted by up to two pixels, 8 against the rest:
their matrix of 4 TB has no room. Card: {card}. {facts}.

The tests that need a card were run on it on {date}: {tests}. Those of the programs themselves under
compute-sanitizer: {sanitized}.
The least that has to be done, and what is missed, is on [the page of limits](limits/gpu.md)."""


_OF_CUML = """cuML's `LinearSVC` (L-BFGS on the primal problem in single precision, at most 2,000 steps)
on the same rows, which lie on the card column by column as it wants them, the better of two fits. It proves
nothing; the objective of its w and b was summed up in double precision."""


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
            sanitized="; ".join(f"{tool}: {words}" for tool, words in found.sanitized.items()),
        )
    ]
    head = ["data", "rows x columns", "C, gamma", "GPU", "first fit", "CPU", "ThunderSVM", "its gap"]
    head += ["our gap", "confirmed", "rounds"]
    lines = [
        [
            fit.data if fit.classes == 2 else f"{fit.data}, {fit.classes} classes in pairs",
            f"{fit.shape[0]:,} x {fit.shape[1]:,}",
            f"{fit.C:g}, {fit.gamma:g}",
            f"{fit.seconds:.3f} s",
            f"{fit.first:.1f} s",
            "" if fit.cpu is None else f"{fit.cpu:.2f} s",
            "" if fit.thunder is None else f"{fit.thunder[0]:.3f} s",
            "" if fit.thunder is None or np.isnan(fit.thunder[1]) else f"{fit.thunder[1]:.1e}",
            f"{fit.gap:.1e}",
            "" if fit.confirmed is None else f"{fit.confirmed:.1e}",
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
        [
            f"{fit.C:g}",
            f"{fit.seconds:.2f} s",
            f"{fit.cpu:.2f} s",
            f"{fit.gap:.1e}",
            f"{fit.gap_of_cpu:.1e}",
        ]
        for fit in found.linear
    ]
    if found.torchkm is not None:
        seconds, above = found.torchkm
        parts.insert(
            3,
            f"TorchKM takes {seconds:.1f} s for {_FOR_TORCHKM}, with one fold for the validation that "
            f"it always makes, and ends {above:.1e} above the lower bound that ours has proven.",
        )
    title = f'## `LinearSVC(loss="hinge")`, {_LINEAR[0]:,} x {_LINEAR[1]} in float32 that lie on the card'
    parts += [title, table(["C", "GPU", "CPU", "gap on the GPU", "gap on the CPU"], lines)]
    if found.two_cores is not None:
        parts.append(f"On two of these cores the first of them takes {found.two_cores:.1f} s.")
    if found.cuml:
        bounds = {fit.C: fit.bound for fit in found.linear}
        lines = [
            [
                *(f"{fit.C:g}", f"{fit.tol:g}", f"{fit.seconds:.2f} s", f"{fit.steps:,}"),
                f"{1.0 - bounds[fit.C] / fit.objective:.1e}",
            ]
            for fit in found.cuml
        ]
        head = ["C", "its tolerance", "seconds", "steps", "above our lower bound"]
        parts += [_OF_CUML, table(head, lines)]
    return "\n\n".join(parts) + "\n"
