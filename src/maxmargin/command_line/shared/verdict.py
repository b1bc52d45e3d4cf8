# SPDX-License-Identifier: BSD-3-Clause
"""What ``certify`` finds and says: claimed beside recomputed, *holds* or *does not hold*, and why."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from maxmargin.command_line.predict import aligned
from maxmargin.command_line.shared.answer import (
    DOES_NOT_HOLD,
    DONE,
    INTERCEPTS,
    attributes,
    print_json,
    print_table,
)
from maxmargin.command_line.shared.features import features_as_json, features_in_words
from maxmargin.files import DataSet, SavedKernelModel, SavedModel, StoredModel
from maxmargin.files.data.fingerprints import fingerprint_of
from maxmargin.files.data.labels import class_codes, label_text, numbers_of
from maxmargin.files.models.support_vectors import are_rows, found_rows, multipliers, with_support_vectors
from maxmargin.kernels.names import describe
from maxmargin.proof.of_files import (
    Alphas,
    Finding,
    Part,
    judge_alone,
    judge_proof,
    one_class_part,
    parts,
    ranking_part,
    regression_part,
)
from maxmargin.proof.of_kernel_files import OtherCounts, doubt, kernel_parts
from maxmargin.proof.of_shares import OtherShares
from maxmargin.tools.words import percent, some

if TYPE_CHECKING:
    from maxmargin import Chunks
    from maxmargin.command_line.shared.progress import Bars
    from maxmargin.files.models.stored import Claim

SMALLEST_GAP = 1e-9
"""The relative gap below which there is rounding as much as anything else."""
_MOST_PARTS = 10
"""Problems that are listed, at most."""
# By whether the file claims anything, and whether it was found to be so.
_WORDS = {True: {True: "holds", False: "does not hold"}, False: {True: "within", False: "not within"}}


@dataclass
class Verdict:
    """What is found when the two files are looked at."""

    model_path: Path
    data_path: Path
    model: StoredModel
    C: float
    tol: float
    """The relative gap that decides."""
    refusals: list[str] = field(default_factory=list[str])
    """Why nothing could be recomputed, or proves nothing."""
    findings: list[Finding] = field(default_factory=list[Finding])
    same_data: bool | None = None
    """Whether the data have the fingerprint that the file names; None if it names none."""
    vectors_found: bool | None = None
    """Whether the support vectors were found again among the rows; None where they need not be."""
    in_chunks: bool = False
    """Whether the data were read in chunks: the file's multipliers, if it has any, were not used."""
    _query: Any = None
    """The query of each row of the data, for a ranking."""

    def look_at(self, data: DataSet, class_weight: Any, max_time: float, bars: Bars) -> None:
        """Recompute what the model is worth on these data, if they can be those that it is about."""
        model, labels = self.model, data.y
        X = aligned(data, model, self.data_path) if data.feature_names is not None else data.X
        rows, columns = X.shape
        if columns < model.features and hasattr(X, "resize") and hasattr(X, "indptr"):
            X.resize((rows, model.features))  # LIBSVM text whose last columns are empty
        if model.fingerprint is not None:
            self.same_data = fingerprint_of(X, labels) == model.fingerprint
        codes: NDArray[Any] | None = np.zeros(rows, np.int64)
        if model.is_one_class:
            pass  # whose labels, if there are any, say nothing
        elif not model.has_classes:
            codes = numbers_of(labels)
            if codes is None:
                self.refusals.append(
                    "the data have labels that are no numbers, and the model was trained on numbers"
                )
        else:
            codes = class_codes(labels, model.classes)
            strange = sorted({label_text(label) for label in labels[codes < 0]})
            if strange:
                self.refusals.append(f"the data have labels that the model does not know: {some(strange)}")
        if X.shape[1] != model.features and model.format != "libsvm" and model.width is not None:
            self.refusals.append(f"the data have {columns} columns, and the model {model.features}")
        if model.rows is not None and model.rows != rows:
            self.refusals.append(f"the data have {rows} rows, and the model was trained on {model.rows}")
        if model.problem.get("sample_weights"):
            self.refusals.append(
                "the model was trained with sample weights, which are not in its file: these two files "
                "alone do not say what was minimised"
            )
        self._query = data.query
        if codes is not None and not self.refusals:
            self.findings += self._judged(model.prepared(X), codes, class_weight, max_time, bars)

    def look_at_chunks(self, chunks: Chunks, class_weight: Any, max_time: float, bars: Bars) -> None:
        """The same for data that are read in chunks, in passes over them."""
        from maxmargin.command_line.shared.in_chunks import judged_in_chunks

        assert isinstance(self.model, SavedModel)
        assert chunks.files is not None
        found = chunks.files.fingerprint
        if self.model.fingerprint is not None and found is not None:
            self.same_data = self.model.fingerprint == found
        self.findings, refusals = judged_in_chunks(
            self.model,
            chunks,
            C=self.C,
            class_weight=class_weight,
            tol=self.tol,
            max_time=max_time,
            bars=bars,
        )
        self.refusals += refusals
        self.in_chunks = True

    def _judged(
        self, X: Any, codes: NDArray[Any], class_weight: Any, max_time: float, bars: Bars
    ) -> Iterator[Finding]:
        model, deadline = self.model, time.monotonic() + max_time
        claimed = model.status is not None and model.status.certified
        for k, part in enumerate(self._sound_parts(X, codes, class_weight)):
            if model.certificates is not None:
                yield judge_proof(part, self.tol if claimed else None)
                continue
            needed = self.tol
            if part.claim is not None and not claimed:
                # It never claimed more than this gap.
                needed = max(part.claim.relative_gap, SMALLEST_GAP)
            share = max(0.0, deadline - time.monotonic()) / (model.problems - k)
            show = bars.solving(f"bounding {part.name}".rstrip(), tol=needed / 10, max_time=share)
            yield judge_alone(part, needed, share, show)

    def _sound_parts(self, X: Any, codes: NDArray[Any], class_weight: Any) -> Iterator[Part]:
        """The problems of the model, or a refusal where its numbers are not those of its nu."""
        try:
            yield from self._parts(X, codes, class_weight)
        except OtherShares as error:
            self.refusals.append(str(error))

    def _parts(self, X: Any, codes: NDArray[Any], class_weight: Any) -> Iterator[Part]:
        """The problems of the model, with the multipliers that its file has or leads to.

        ``codes`` are places in its classes; in regression, the numbers to be predicted; in ranking,
        relevances.
        """
        if self.model.is_regression:
            yield self._regression_part(X, codes)
            return
        if self.model.is_one_class:
            yield one_class_part(self.model, X, rows=self._rows_of_kernel_model(X, codes))
            return
        if self.model.is_ranking:
            yield ranking_part(self.model, X, codes, self._query, C=self.C)
            return
        model, stated = self.model, {"C": self.C, "class_weight": class_weight}
        alphas = Alphas([None] * model.problems, "", of_all_rows=True)
        vectors = with_support_vectors(model)
        rows = None if vectors is None else self._rows_of(vectors, X, codes)
        if model.certificates is not None:
            each = [proof.alpha for proof in model.certificates]
            alphas = Alphas(each, "the file's multipliers", of_all_rows=False)
        elif vectors is not None and rows is not None:
            each = multipliers(vectors, rows, X.shape[0])
            origin = "the file's support vectors, found again among the rows of the data"
            alphas = Alphas(each, origin, of_all_rows=True)
        if not isinstance(model, SavedKernelModel):
            assert isinstance(model, SavedModel)
            yield from parts(model, X, codes, alphas, **stated)
            return
        if reason := doubt(model.kernel, X):
            self.refusals.append(reason)
        try:
            yield from kernel_parts(model, X, codes, alphas, rows=rows, **stated)
        except OtherCounts:
            words = "the data have other numbers of rows of each class than the model was trained on"
            self.refusals.append(words)

    def _regression_part(self, X: Any, values: NDArray[Any]) -> Part:
        """The problem of a regressor."""
        rows = self._rows_of_kernel_model(X, np.zeros(len(values), np.int64))
        return regression_part(self.model, X, values, C=self.C, rows=rows)

    def _rows_of_kernel_model(self, X: Any, codes: NDArray[Any]) -> NDArray[Any] | None:
        """The rows of the support vectors of a model with a kernel, whose doubts are told."""
        if not isinstance(self.model, SavedKernelModel):
            return None
        if reason := doubt(self.model.kernel, X):
            self.refusals.append(reason)
        return self._rows_of(self.model, X, codes)

    def _rows_of(self, vectors: SavedKernelModel, X: Any, codes: NDArray[Any]) -> NDArray[Any] | None:
        """The row of each support vector, as the file says or as found in the data."""
        rows = vectors.support
        if rows is None or not are_rows(vectors, X, codes, rows):
            rows = found_rows(vectors, X, codes)
            self.vectors_found = rows is not None
        return rows

    @property
    def holds(self) -> bool:
        """Whether everything claimed was found to be true, or, with no claim, the gap within tol."""
        return not self.refusals and not any(finding.reasons for finding in self.findings)

    @property
    def worst(self) -> Finding | None:
        """The part that decides: one with reasons against it first, then the widest gap."""
        return max(self.findings, key=lambda f: (bool(f.reasons), f.relative_gap), default=None)

    @property
    def reasons(self) -> list[str]:
        """Why it does not hold."""
        reasons = list(self.refusals)
        for finding in self.findings:
            start = f"{finding.name}: " if finding.name else ""
            reasons.extend(start + reason for reason in finding.reasons)
        if reasons and self.same_data is False:
            reasons.append(
                "these are not the data that the model was trained on: their fingerprint differs"
            )
        return reasons

    def tell(self, *, as_json: bool) -> int:
        """Say it on stdout; returns the exit code."""
        if as_json:
            print_json(self.as_json())
        else:
            self._print_words()
        return DONE if self.holds else DOES_NOT_HOLD

    def as_json(self) -> dict[str, Any]:
        """What was found, in plain values."""
        return {
            "model": self.model_path,
            "data": self.data_path,
            "writer": self.model.writer,
            "holds": self.holds,
            "reasons": self.reasons,
            "claims": self.model.claims is not None,
            "tol": self.tol,
            "C": self.C,
            "hard_margin": math.isinf(self.C),
            "nu": self.model.problem.get("nu"),
            "loss": self.model.problem["loss"],
            "kernel": kernel_described(self.model),
            "feature_map": features_as_json(getattr(self.model, "expansion", None)),
            "support_vectors_found": self.vectors_found,
            "intercept": self.model.problem["intercept"],
            "same_data": self.same_data,
            "problems": [_finding_as_json(finding) for finding in self.findings],
        }

    def _print_words(self) -> None:
        problem = self.model.problem
        what = f"{problem['loss'].replace('_', ' ')} loss, C = {self.C:g}"
        if self.model.has_nu:
            what = what if self.model.is_regression else f"{problem['loss']} loss"
            what += f", nu = {problem['nu']:g}"
        if self.model.is_regression:
            epsilon = "" if self.model.has_nu else f", epsilon = {problem['epsilon']:g}"
            what = f"regression, {what}{epsilon}"
        if self.model.is_one_class:
            what = f"one class, {what}"
        if self.model.is_ranking:
            what = f"ranking, {what}"
        if math.isinf(self.C):
            what = "hard margin"
        if self.model.is_joint:
            what = f"all classes in one problem, {what}"
        kernel: Any = getattr(self.model, "kernel", None)
        with_kernel = "" if kernel is None else f", {kernel}"
        expansion: Any = getattr(self.model, "expansion", None)
        features = "" if expansion is None else f", {features_in_words(expansion)}"
        if self.model.preparation is not None:
            features += f", {self.model.preparation}"
        typer.echo(
            f"{self.model_path}, written by {self.model.writer}: {what}, "
            f"{INTERCEPTS[problem['intercept']]}{with_kernel}{features}; on {self.data_path}."
        )
        if len(self.findings) > 1:
            self._print_parts()
        if self.worst is not None:
            self._print_worst(self.worst)
        if self.vectors_found is False:
            typer.echo("Not all of the file's support vectors are rows of these data.")
        if self.same_data is False and self.holds:
            typer.echo(
                "Note: the fingerprint of the data differs from the one in the file. These are not exactly "
                "the rows that the model was trained on; what is said here is about these."
            )
        typer.echo(self.conclusion)

    def _print_parts(self) -> None:
        ordered = sorted(self.findings, key=lambda f: (not f.reasons, -f.relative_gap))
        left_out = len(ordered) - len(ordered[:_MOST_PARTS])
        more = f" ({left_out} more are not shown)" if left_out else ""
        claims = self.model.claims is not None
        headings = ["problem", "primal", "dual", "rel. gap", *(["claimed gap"] if claims else []), ""]
        print_table(
            f"Recomputed for each of {len(ordered)} problems, the worst first{more}",
            headings,
            [
                (
                    *(finding.name, finding.primal, finding.dual, finding.relative_gap),
                    *([f"{finding.claim.relative_gap:.1e}"] if finding.claim is not None else []),
                    _WORDS[claims][not finding.reasons],
                )
                for finding in ordered[:_MOST_PARTS]
            ],
            ("", ".8g", ".8g", ".1e"),
        )

    def _print_worst(self, finding: Finding) -> None:
        claim = finding.claim
        if claim is not None:
            print_table(
                f"Of {finding.name}" if finding.name else "",
                ("", "claimed", "recomputed"),
                [
                    ("primal", f"{claim.primal:.12g}", f"{finding.primal:.12g}"),
                    ("dual", f"{claim.dual:.12g}", f"{finding.dual:.12g}"),
                    ("relative gap", f"{claim.relative_gap:.3e}", f"{finding.relative_gap:.3e}"),
                ],
            )
        if self.model.certificates is not None and not self.in_chunks:
            return
        start = f"Of {finding.name}, the" if finding.name else "The"
        typer.echo(
            f"{start} objective at the file's own w and b is {finding.primal:.10g}. The best one known is "
            f"{finding.best_known:.10g}, and none can be below {finding.dual:.10g}: the bound comes from "
            f"{finding.bound_from}."
        )
        typer.echo(
            f"So this model is at most {percent(finding.at_most_above)} above the optimum, and at least "
            f"{percent(finding.at_least_above)}."
        )

    @property
    def conclusion(self) -> str:
        """Whether it holds and, if not, why, in one sentence."""
        claimed = self.model.claims is not None
        if self.holds:
            gap = self.worst.relative_gap if self.worst is not None else 0.0
            if claimed and not (self.model.status is not None and self.model.status.certified):
                return (
                    f"Holds: the values are as claimed. The relative gap is {gap:.1e}; the training ended "
                    "before its tol was reached, and says so."
                )
            word = "Holds" if claimed else "Within --tol"
            return f"{word}: the relative gap of {gap:.1e} is within {self.tol:g}."
        word = "Does not hold" if claimed else "Not shown to be within --tol"
        reasons = self.reasons
        shown = "; ".join(reasons[:4])
        more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
        return f"{word}: {shown}{more}."


def kernel_described(model: StoredModel) -> dict[str, Any] | None:
    """The kernel in plain values; None for a linear model."""
    kernel: Any = getattr(model, "kernel", None)
    return None if kernel is None else describe(kernel)


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name or None,
        "claimed": claim_as_json(finding.claim),
        **attributes(finding, "primal", "dual", "relative_gap", "best_known", "bound_from", "reasons"),
        "at_most_above_optimum": finding.at_most_above,
        "at_least_above_optimum": finding.at_least_above,
    }


def claim_as_json(claim: Claim | None) -> dict[str, Any] | None:
    """The values that a file claims; None where it claims none."""
    return None if claim is None else attributes(claim, "primal", "dual", "relative_gap")
