# SPDX-License-Identifier: BSD-3-Clause
"""All that a report says, in numbers: gathered once, for the page and for ``--json`` alike."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from maxmargin import core
from maxmargin.command_line.predict import sureness_of
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.columns import encoding_as_json
from maxmargin.command_line.shared.model_info import Weight, heaviest, problem_in_words
from maxmargin.command_line.shared.verdict import Verdict, kernel_described
from maxmargin.files import DataSet, SavedKernelModel, SavedModel, StoredModel
from maxmargin.files.data.fingerprints import fingerprint_of
from maxmargin.files.data.labels import label_text
from maxmargin.files.models.stored import widened
from maxmargin.files.models.support_vectors import with_support_vectors
from maxmargin.report.measures import Measures, interval
from maxmargin.report.numbers import Numbers
from maxmargin.types import Vector

if TYPE_CHECKING:
    from maxmargin.command_line.shared.progress import Bars

HEAVIEST = 15
"""Columns, or support vectors, that are listed."""
_PACKAGES = ("maxmargin", "numpy", "scipy", "scikit-learn")
"""What numbers depend on, besides Python and the machine."""


def versions() -> dict[str, str]:
    """What the report was made with."""
    found = {name: version(name) for name in _PACKAGES}
    system = f"{platform.system()} {platform.machine()}, core for {core.INSTRUCTION_SET}"
    return found | {"Python": platform.python_version(), "machine": system}


def made_now() -> datetime:
    """The time; that of SOURCE_DATE_EPOCH where it is set, so that the same files give the same page."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)


@dataclass(frozen=True)
class Source:
    """Where something comes from: a file, or the memory of a Python process."""

    name: str
    path: Path | None = None

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of the file, which ``sha256sum`` prints; None where there is none to be read twice."""
        if self.path is None or not self.path.is_file():
            return None
        with open(self.path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def bytes(self) -> int | None:
        """The size of the file."""
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None

    def as_json(self) -> dict[str, Any]:
        """The same in plain values."""
        return {"name": self.name, "bytes": self.bytes, "sha256": self.digest}


class Support(NamedTuple):
    """A support vector that pulls hard."""

    row: int | None
    """Its place in the training data, counted from 0; None where the file does not tell."""
    label: str
    pull: float
    """``sum |alpha|`` over the problems."""


@dataclass
class Sample:
    """Data that a report is about."""

    source: Source
    X: Any
    y: Any
    skipped: int = 0
    """Malformed lines that were left out."""
    of_numbers: bool = False
    """Whether labels are numbers to be predicted, and no classes."""

    @property
    def stored(self) -> int:
        """Values that are not zero."""
        return int(self.X.count_nonzero() if sparse.issparse(self.X) else np.count_nonzero(self.X))

    @property
    def density(self) -> float:
        """Their share of all values."""
        rows, columns = self.X.shape
        return self.stored / max(int(rows) * int(columns), 1)

    @cached_property
    def fingerprint(self) -> str:
        """What tells these data from others, however they are stored."""
        return fingerprint_of(self.X, self.y)

    def label_counts(self) -> list[tuple[str, int]]:
        """The labels with their numbers of rows, the most frequent first; none where they are numbers."""
        if self.y is None or self.of_numbers:
            return []
        labels, counts = np.unique(self.y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(label_text(labels[k]), int(counts[k])) for k in order.tolist()]

    def as_json(self) -> dict[str, Any]:
        """The same in plain values."""
        rows, columns = self.X.shape
        return {
            **self.source.as_json(),
            "rows": rows,
            "columns": columns,
            "nonzeros": self.stored,
            "density": self.density,
            "labels": dict(self.label_counts()),
            "skipped": self.skipped,
            "fingerprint": self.fingerprint,
        }


@dataclass
class Facts:
    """What a report says."""

    source: Source
    """Where the model comes from."""
    model: StoredModel
    data: Sample
    test: Sample | None = None
    verdict: Verdict | None = None
    """What ``certify`` finds; None where nothing can be proven."""
    no_proof: str = ""
    """Why there is no verdict."""
    commands: Sequence[str] = ()
    """What the reader can run to check the proof."""
    versions: dict[str, str] = field(default_factory=versions)
    made: datetime = field(default_factory=made_now)

    def __post_init__(self) -> None:
        for rows in filter(None, (self.data, self.test)):
            rows.of_numbers = not self.model.has_classes
            rows.X = fitting(rows.X, self.model, rows.source.name)

    def judge(self, verdict: Verdict, class_weight: Any, max_time: float, bars: Bars) -> None:
        """Recompute the proof, as ``certify`` does."""
        verdict.look_at(DataSet(self.data.X, self.data.y), class_weight, max_time, bars)
        self.verdict = verdict

    @property
    def holds(self) -> bool:
        """Whether there is a proof, and it holds on the data."""
        return self.verdict is not None and self.verdict.holds

    @property
    def asked(self) -> float:
        """The relative gap that the training was asked for, or that is to be shown if none is claimed."""
        if self.model.claims is not None and self.model.tol is not None:
            return self.model.tol
        return 0.0 if self.verdict is None else self.verdict.tol

    @property
    def is_training_data(self) -> bool:
        """Whether the data are those of the training, as far as the fingerprint or the proof can tell."""
        verdict = self.verdict
        if verdict is None or verdict.same_data is not None:
            return verdict is not None and verdict.same_data is True
        return self.holds and self.model.certificates is not None

    @cached_property
    def measures(self) -> Measures | Numbers:
        """What the model does on the data."""
        return self._measured(self.data)

    @cached_property
    def tested(self) -> Measures | Numbers | None:
        """What it does on the test data."""
        return None if self.test is None else self._measured(self.test)

    def _measured(self, rows: Sample) -> Measures | Numbers:
        if not self.model.has_classes:
            return Numbers(self.model, rows.X, rows.y)
        return Measures(self.model, rows.X, rows.y, self._is_sure)

    def interval_of(self, measures: Measures | Numbers) -> tuple[float, float] | None:
        """The interval of the accuracy on new rows; None where the model was fitted to these."""
        test = self.test
        same = test is None or measures is self.measures or test.fingerprint == self.data.fingerprint
        fitted = same and self.is_training_data
        return None if fitted or not measures.known else interval(measures.right, measures.rows)

    @cached_property
    def _is_sure(self) -> Callable[[Any], NDArray[Any]] | None:
        """Whether rows are sure, where the proof of that was recomputed and holds."""
        if not self.holds or self.model.certificates is None:
            return None
        try:
            is_sure = sureness_of(self.model, self.source.path or Path(self.source.name))
            is_sure(self.data.X[:1])
        except (Failure, ValueError):
            return None  # kernels that are given as a matrix tell no lengths of rows
        return is_sure

    @cached_property
    def heaviest(self) -> list[Weight]:
        """The columns of the largest weights; none of a model with a kernel."""
        return heaviest(self.model, HEAVIEST) if isinstance(self.model, SavedModel) else []

    @cached_property
    def spreads(self) -> Vector | None:
        """The standard deviation of each column of the data; None where the columns weighed are others."""
        X = self.data.X
        model = self.model
        if (
            not isinstance(model, SavedModel)
            or model.expansion is not None
            or model.preparation is not None
        ):
            return None
        if sparse.issparse(X):
            return np.asarray(np.sqrt(mean_variance_axis(X.astype(np.float64), axis=0)[1]))
        return np.asarray(X.std(axis=0, dtype=np.float64))

    @cached_property
    def support(self) -> tuple[int, list[Support]]:
        """How many support vectors the file has, and those that pull hardest."""
        vectors = with_support_vectors(self.model)
        if not isinstance(vectors, SavedKernelModel):
            return 0, []
        pulls = np.abs(vectors.coefficients).sum(axis=0)
        order, rows = np.argsort(-pulls, kind="stable")[:HEAVIEST], vectors.support
        return len(pulls), [
            Support(
                None if rows is None else int(rows[k]),
                label_text(vectors.classes[vectors.owners[k]]) if vectors.has_classes else "",
                float(pulls[k]),
            )
            for k in order.tolist()
        ]

    def as_json(self) -> dict[str, Any]:
        """The same numbers as the page has."""
        model, tested = self.model, self.tested
        return {
            "model": {
                **self.source.as_json(),
                "writer": model.writer,
                "problem": model.problem,
                "in_words": problem_in_words(model),
                "kernel": kernel_described(model),
                "table": encoding_as_json(model.encoding),
                "classes": [label_text(label) for label in model.classes],
                "columns": model.features,
                "solver": model.solver,
                "steps": model.steps,
                "status": None if model.status is None else model.status.name.lower(),
                "heaviest": [{"feature": each.name, "weight": each.weight} for each in self.heaviest],
                "support_vectors": self.support[0] or None,
                "trace": [[record._asdict() for record in trace] for trace in model.traces or []],
            },
            "data": self.data.as_json() | {"training_data": self.is_training_data},
            "test_data": None if self.test is None else self.test.as_json(),
            "holds": self.holds,
            "proof": None if self.verdict is None else self.verdict.as_json(),
            "no_proof": self.no_proof or None,
            "commands": list(self.commands),
            "measures": self.measures.as_json() | {"interval": self.interval_of(self.measures)},
            "test_measures": tested and tested.as_json() | {"interval": self.interval_of(tested)},
            "versions": self.versions,
            "made": self.made.isoformat(timespec="seconds"),
        }


def fitting(X: Any, model: StoredModel, name: str) -> Any:
    """X with the columns of the model; refuses another number of them.

    Only sparse rows may lack some: LIBSVM text does not tell of columns at its end that are empty. Nor do
    its models, so that data may have more.
    """
    columns, width = X.shape[1], model.features
    if columns == width or model.width is None or (model.format == "libsvm" and columns > width):
        return X
    if columns < width and sparse.issparse(X):
        return widened(X, width)
    raise ValueError(
        f"A report needs data with the {width} columns of the model. Got {columns} columns in {name} "
        "instead. Give the data that the model was trained on, or others with the same columns in the "
        "same order."
    )


def command(*words: Any) -> str:
    """A command that a shell reads as it is meant, whatever the files are called."""
    minus = [isinstance(word, Path) and str(word).startswith("-") and len(str(word)) > 1 for word in words]
    texts = [f"./{word}" if first else str(word) for word, first in zip(words, minus, strict=True)]
    return shlex.join(texts)
