# SPDX-License-Identifier: BSD-3-Clause
"""Fits on Dask's workers, and Spark's LinearSVC on the same rows, marked by their true objective."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import chunks, datasets, machine
from benchmarks.report import table
from benchmarks.solvers.base import MissingPackage
from maxmargin.tools.words import amount

SIZES = ((1_000_000, 20), (300_000, 100), (5_000_000, 20), (3_000_000, 100))
"""Rows and columns of the drawn data."""
REPEATED = "covtype_10"
"""A data set that is repeated with noise, as the page of fits in chunks has it."""
WORKERS = (1, 2, 4)
_LARGE, _OF_LARGE = 50_000_000, 2
"""Values from which data take a moment, so that they are fitted with up to so many workers, so often."""
PARTITIONS = 40
QUALITY = 1e-3
_ITERATIONS = (2, 3, 5, 8, 12, 20, 40)
"""Those that Spark's optimiser is given, until one fit is as near as ``QUALITY``."""
_COST = 1.0
LOSS = "hinge"
"""The only one that Spark's LinearSVC has."""


@dataclass(frozen=True)
class Fit:
    """One way to fit the rows."""

    data: str
    rows: int
    columns: int
    who: str
    seconds: float
    """Whole fits on data that the workers hold; the best of some."""
    excess: float
    """How far the objective is above a proven lower bound, as a share of it."""
    gap: float | None
    """What the fit itself proves."""
    rounds: str
    sent: int | None = None
    """Bytes to the workers and back in one pass, when each of them is one message."""


def draw(rows: int, columns: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of two classes that overlap."""
    generator = np.random.default_rng(rows + columns)
    X = generator.normal(size=(rows, columns))
    direction = generator.normal(size=columns) / np.sqrt(columns)
    return X, np.where(X @ direction + generator.normal(size=rows) > 0.3, 1, -1)


def objective(X: Any, y: Any, w: Any, b: float) -> float:
    """``1/2 |w|^2 + C sum hinge``, by nobody's code but NumPy's."""
    return float(0.5 * w @ w + _COST * np.maximum(0.0, 1.0 - y * (X @ w + b)).sum())


def measure(repeat: int, with_spark: bool, tell: Callable[[str], None]) -> list[Fit]:
    """All sizes, all numbers of workers, Spark, and the fit in memory."""
    from maxmargin import LinearSVC

    fits = []
    for name, data in _all_data(tell):
        X = y = None  # before the next ones are made
        X, y = data()
        best = LinearSVC(loss=LOSS, C=_COST, tol=1e-7).fit(X, y).certificate_.dual
        large = X.size >= _LARGE
        times = min(repeat, _OF_LARGE) if large else repeat
        tell(f"{name}: in memory")
        seconds, model = _best_of(
            times, lambda X=X, y=y: LinearSVC(loss=LOSS, C=_COST, tol=QUALITY).fit(X, y)
        )
        fits.append(_ours(name, X, y, best, "in memory", seconds, model))
        for workers in WORKERS:
            if workers <= _OF_LARGE or not large:
                tell(f"{name}: {workers} workers")
                fits.append(_on_dask(name, X, y, best, workers, times))
        if with_spark:
            tell(f"{name}: Spark")
            fits.append(_on_spark(name, X, y, best, times))
    return fits


def _all_data(tell: Callable[[str], None]) -> Iterator[tuple[str, Callable[[], tuple[Any, Any]]]]:
    """The name of each data set, and what makes it; one that is not to be had is left out."""
    for rows, columns in SIZES:
        yield f"{rows:,} x {columns}", partial(draw, rows, columns)
    try:
        datasets.find(chunks.REPEATED[REPEATED.partition("_")[0]])
    except datasets.MissingData as error:
        tell(str(error))
        return
    yield REPEATED, _repeated


def _repeated() -> tuple[Any, Any]:
    X, y = zip(*chunks.repeated_as(REPEATED), strict=True)
    return np.concatenate(X), np.concatenate(y)


def _ours(
    name: str, X: Any, y: Any, best: float, who: str, seconds: float, model: Any, sent: int | None = None
) -> Fit:
    value = objective(X, y, model.coef_[0], float(model.intercept_[0]))
    rounds = amount(model.n_iter_, "pass", "passes") if sent is not None else ""
    gap = float(model.certificate_.relative_gap)
    return Fit(name, *X.shape, who, seconds, value / best - 1.0, gap, rounds, sent)


def _best_of(repeat: int, fit: Callable[[], Any]) -> tuple[float, Any]:
    seconds, model = np.inf, None
    for _ in range(repeat):
        start = time.perf_counter()
        model = fit()
        seconds = min(seconds, time.perf_counter() - start)
    return float(seconds), model


def _on_dask(name: str, X: Any, y: Any, best: float, workers: int, repeat: int) -> Fit:
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from maxmargin.dask import LinearSVC

    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        size = -(-len(y) // PARTITIONS)
        dX = da.from_array(X, chunks=(size, X.shape[1])).persist()
        dy = da.from_array(y, chunks=size).persist()
        wait([dX, dy])
        seconds, model = _best_of(
            repeat, lambda: LinearSVC(loss=LOSS, C=_COST, tol=QUALITY, client=client).fit(dX, dy)
        )
        sent = max(_sent(client, dX, dy))
    return _ours(name, X, y, best, f"{workers} worker{'s' * (workers > 1)}", seconds, model, sent)


def _sent(client: Any, dX: Any, dy: Any) -> Iterator[int]:
    """Bytes of each pass: what all tasks share, once for each worker, and all answers."""
    from maxmargin.dask.parts import delayed_pieces
    from maxmargin.dask.passes import DaskPasses
    from maxmargin.estimators.in_chunks import fit_passes
    from maxmargin.estimators.linear_svc import LinearSVC

    sums = []

    class Counted(DaskPasses):
        def over(self, task, *arguments, each=None):
            sums.append(len(pickle.dumps(arguments)) * len(self.client.nthreads()))
            sums[-1] += len(pickle.dumps(each))
            for answer in super().over(task, *arguments, each=each):
                sums[-1] += len(pickle.dumps(answer))
                yield answer

    pieces, _ = delayed_pieces(dX, dy, None)
    fit_passes(LinearSVC(loss=LOSS, C=_COST, tol=QUALITY), Counted(client, pieces))
    yield from sums


def _on_spark(name: str, X: Any, y: Any, best: float, repeat: int) -> Fit:
    """The fastest fit that is as near as ``QUALITY``, in a session that has fitted before."""
    import os
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet as pq

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from pyspark.ml.classification import LinearSVC
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingPackage("pyspark is not installed: pip install pyspark, or --no-spark.") from None
    options = {
        "spark.driver.memory": "8g",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{machine.cores()}]")
    for option, value in options.items():
        builder = builder.config(option, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = pa.ListArray.from_arrays(
            pa.array(np.arange(0, X.size + 1, X.shape[1], dtype=np.int32)),
            pa.array(X.ravel()).cast(pa.float64()),
        )
        pq.write_table(pa.table({"x": rows, "label": (y > 0).astype(np.float64)}), f"{folder}/rows.parquet")
        frame = spark.read.parquet(f"{folder}/rows.parquet")
        frame = frame.select(array_to_vector("x").alias("features"), "label").repartition(4).cache()
        frame.count()

        def fit(iterations: int) -> Any:
            settings = {"regParam": 1.0 / (_COST * len(y)), "tol": 0.0, "standardization": False}
            return LinearSVC(maxIter=iterations, **settings).fit(frame)

        fit(2)
        for iterations in _ITERATIONS:
            model = fit(iterations)
            w, b = model.coefficients.toArray(), float(model.intercept)
            excess = objective(X, y, w, b) / best - 1.0
            if excess <= QUALITY:
                break
        seconds, _ = _best_of(repeat, lambda: fit(iterations))
        spark.stop()
    who = f"Spark, {machine.cores()} threads"
    return Fit(name, *X.shape, who, seconds, excess, None, f"{iterations} iterations")


def markdown(fits: list[Fit], repeat: int) -> str:
    """The page."""
    facts = machine.facts(("dask", "distributed", "pyspark"))
    heads = [
        "data",
        "rows x columns",
        "where",
        "seconds",
        "times Spark",
        "above the optimum",
        "gap proven",
        "rounds",
        "MB sent in a pass",
    ]
    spark = {fit.data: fit.seconds for fit in fits if fit.who.startswith("Spark")}
    lines = [
        [
            "drawn" if fit.data != REPEATED else REPEATED,
            f"{fit.rows:,} x {fit.columns}",
            fit.who,
            f"{fit.seconds:.2f}",
            f"{spark[fit.data] / fit.seconds:.1f}" if fit.data in spark else "",
            f"{fit.excess:.1e}",
            "" if fit.gap is None else f"{fit.gap:.1e}",
            fit.rounds,
            "" if fit.sent is None else f"{fit.sent / 1e6:.2f}",
        ]
        for fit in fits
    ]
    cores, tried = machine.cores(), ", ".join(map(str, _ITERATIONS))
    return f"""# On a cluster of Dask

Whole fits of `maxmargin.dask.LinearSVC(loss="hinge", C=1, tol=1e-3)` on drawn rows, and on covtype ten
times with other noise on every value (in float32), that the workers of a `LocalCluster` hold in
{PARTITIONS} partitions: processes of one thread each, all on the {cores} cores of one machine. Seconds are
the best of {repeat}, or of {min(repeat, _OF_LARGE)} from {_LARGE:,} values on. "Times Spark" is how many
times as fast as Spark's a fit is. "Above the optimum" is recomputed by NumPy at the model's own w and b,
against a lower bound that a fit to 1e-7 has proven. Spark's `LinearSVC` minimises the same
objective (`regParam` = 1 / (C n), no standardisation, rows cached as vectors, a session that has fitted
before) with the fewest iterations of {tried} that truly get as near as 1e-3. "MB sent" are the bytes of the
largest pass: points to every worker, and the answers of all partitions back.
{", ".join(f"{name} {value}" for name, value in facts.items())}.

{table(heads, lines)}
"""
