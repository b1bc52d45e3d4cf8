# SPDX-License-Identifier: BSD-3-Clause
"""What ``certify`` says: claimed beside recomputed, *holds* or *does not hold*, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from maxmargin.command_line.shared.answer import (
    DOES_NOT_HOLD,
    DONE,
    INTERCEPTS,
    attributes,
    print_json,
    print_table,
)
from maxmargin.command_line.shared.features import features_as_json, features_in_words
from maxmargin.command_line.shared.words import percent
from maxmargin.kernels.names import describe
from maxmargin.proof.of_files import Finding

if TYPE_CHECKING:
    from maxmargin.files import StoredModel
    from maxmargin.files.models.stored import Claim

_MOST_PARTS = 10
"""Problems that are listed, at most."""
# By whether the file claims anything, and whether it was found to be so.
_WORDS = {True: {True: "holds", False: "does not hold"}, False: {True: "within", False: "not within"}}


@dataclass
class Verdict:
    """Filled in while the files are looked at."""

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

    def refuse(self, reason: str) -> None:
        """Note why these data cannot be those that the model is about."""
        self.refusals.append(reason)

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
            print_json(self._as_json())
        else:
            self._print_words()
        return DONE if self.holds else DOES_NOT_HOLD

    def _as_json(self) -> dict[str, Any]:
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
        if math.isinf(self.C):
            what = "hard margin"
        kernel: Any = getattr(self.model, "kernel", None)
        with_kernel = "" if kernel is None else f", {kernel}"
        expansion: Any = getattr(self.model, "expansion", None)
        features = "" if expansion is None else f", {features_in_words(expansion)}"
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
        self._print_verdict()

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
        if self.model.certificates is not None:
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

    def _print_verdict(self) -> None:
        claimed = self.model.claims is not None
        if self.holds:
            gap = self.worst.relative_gap if self.worst is not None else 0.0
            if claimed and not (self.model.status is not None and self.model.status.certified):
                typer.echo(
                    f"Holds: the values are as claimed. The relative gap is {gap:.1e}; the training ended "
                    "before its tol was reached, and says so."
                )
            else:
                word = "Holds" if claimed else "Within --tol"
                typer.echo(f"{word}: the relative gap of {gap:.1e} is within {self.tol:g}.")
            return
        word = "Does not hold" if claimed else "Not shown to be within --tol"
        reasons = self.reasons
        shown = "; ".join(reasons[:4])
        more = f"; and {len(reasons) - 4} more" if len(reasons) > 4 else ""
        typer.echo(f"{word}: {shown}{more}.")


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
