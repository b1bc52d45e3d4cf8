# SPDX-License-Identifier: BSD-3-Clause
"""What a notebook shows of a fit, below scikit-learn's own picture of the estimator: the proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.proof.certificate import Certificate
from maxmargin.proof.model import PairCertificates, each_of

if TYPE_CHECKING:
    from maxmargin.estimators.certified import ShowsProof

_MOST_LINES = 10
"""Classes or pairs that the table in a notebook shows."""

# Colours are those of the page, whatever its theme: lines and background are shades of the text's own.
_BOX = (
    "display:inline-block;margin-top:0.5em;padding:0.5em 0.8em;border:1px solid;border-radius:4px;"
    "border-color:color-mix(in srgb,currentColor 35%,transparent);color:inherit;max-width:60em"
)
_TABLE = "border-collapse:collapse;margin:0.4em 0;color:inherit;background:transparent;font-size:inherit"
_CELL = "padding:0.1em 1.2em 0.1em 0;border:0;background:transparent;font-variant-numeric:tabular-nums"
_NAMES = f"{_CELL};text-align:left"
_NUMBERS = f"{_CELL};text-align:right"


def fitted_summary(estimator: ShowsProof) -> str:
    """The HTML of a fitted estimator's status and certificate; empty where there is none to show."""
    proof = getattr(estimator, "certificate_", None)
    status = getattr(estimator, "status_", None)
    if proof is None or status is None:
        return ""
    certificates = each_of(proof)
    tol, steps = estimator._stated_problem["tol"], int(np.max(estimator.n_iter_))
    sentence = status.sentence(proof.relative_gap, tol, steps)
    head, _, rest = sentence.partition(":")
    parts = [f"<p style='margin:0'><strong>{escape(head)}:</strong>{escape(rest)}</p>"]
    if len(certificates) == 1:
        parts.append(_values_table(certificates[0]))
        parts.append(_paragraph(_rows_in_words(certificates[0])))
        if certificates[0].other_intercepts:
            parts.append(_paragraph(certificates[0].other_intercepts))
    else:
        pairs = isinstance(proof, PairCertificates)
        names = [f"{i} against {j}" for i, j in proof.pairs] if pairs else estimator.classes_
        title = "Each pair of classes" if pairs else "Each class against the rest"
        parts.append(_problems_table(title, "pair" if pairs else "class", names, certificates))
        hidden = len(certificates) - _MOST_LINES
        if hidden > 0:
            kind = "pairs" if pairs else "classes"
            parts.append(_paragraph(f"and {hidden} more {kind}, none with a larger relative gap."))
    parts.append(_paragraph(f"Solver: {estimator.solver_}"))
    if hasattr(estimator, "cache_use_"):
        parts.append(_paragraph(str(estimator.cache_use_)))
    return f"<div class='maxmargin-certificate' style='{_BOX}'>{''.join(parts)}</div>"


class Unfolded(NamedTuple):
    """What is unfolded in scikit-learn's picture of an estimator: its own table, and the certificate."""

    usual: Any
    card: str

    def _repr_html_inner(self) -> str:
        return str(self.usual._repr_html_inner()) + self.card


def caption(estimator: ShowsProof) -> str | None:
    """A few words about a fit that are always to be seen; None where there is none."""
    proof, status = getattr(estimator, "certificate_", None), getattr(estimator, "status_", None)
    if proof is None or status is None:
        return None
    ended = status.value.partition(":")[0].lower()
    return f"{ended}, relative gap {proof.relative_gap:.1e}"


def _paragraph(text: str) -> str:
    return f"<p style='margin:0'>{escape(text)}</p>"


def _rows_in_words(certificate: Certificate) -> str:
    if not certificate.knows_rows:
        return certificate.rows_in_words
    outside, on, inside, wrong = _row_counts(certificate)
    total = len(certificate.alpha)
    return (
        f"{total} rows: {outside} no support vectors, {on} on the margin, {inside} inside it, "
        f"{wrong} misclassified."
    )


def _row_counts(certificate: Certificate) -> list[int]:
    counts: list[int] = np.bincount(certificate.row_classes, minlength=4).tolist()
    return counts


def _values_table(certificate: Certificate) -> str:
    bound = (
        "no model can be below"
        if certificate.proven
        else "no bound: the function is not shown to be a kernel"
    )
    values = [
        ("primal value", f"{certificate.primal:.8g}", "of this model"),
        ("dual value", f"{certificate.dual:.8g}", bound),
        ("relative gap", f"{certificate.relative_gap:.2e}", "between the two"),
        ("KKT violation", f"{certificate.kkt_violation:.2e}", "the largest"),
    ]
    lines = [
        f"<tr><th scope='row' style='{_NAMES};font-weight:normal'>{escape(name)}</th>"
        f"<td style='{_NUMBERS}'>{escape(value)}</td><td style='{_NAMES}'>{escape(meaning)}</td></tr>"
        for name, value, meaning in values
    ]
    return f"<table style='{_TABLE}'><tbody>{''.join(lines)}</tbody></table>"


def _problems_table(
    title: str, kind: str, labels: Iterable[Any], certificates: Sequence[Certificate]
) -> str:
    """One line per problem, the largest relative gap first."""
    names = [kind, "primal value", "dual value", "relative gap", "KKT violation"]
    names += ["support vectors", "on margin", "inside", "misclassified"]
    head = "".join(
        f"<th scope='col' style='{_NUMBERS if k else _NAMES}'>{name}</th>" for k, name in enumerate(names)
    )
    lines = sorted(zip(labels, certificates, strict=True), key=lambda line: -line[1].relative_gap)
    body = "".join(_problem_line(label, certificate) for label, certificate in lines[:_MOST_LINES])
    return (
        f"<table style='{_TABLE}'><caption style='text-align:left;color:inherit'>{title}, "
        f"the largest gap first</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _problem_line(label: Any, certificate: Certificate) -> str:
    numbers = [
        f"{certificate.primal:.8g}",
        f"{certificate.dual:.8g}",
        f"{certificate.relative_gap:.2e}",
        f"{certificate.kkt_violation:.2e}",
    ]
    if not certificate.knows_rows:
        numbers += [""] * 4
    else:
        _, on, inside, wrong = _row_counts(certificate)
        numbers += [str(on + inside + wrong), str(on), str(inside), str(wrong)]
    cells = "".join(f"<td style='{_NUMBERS}'>{number}</td>" for number in numbers)
    name = str(label)
    shown = name if len(name) <= 40 else f"{name[:37]}..."
    return f"<tr><th scope='row' style='{_NAMES}'>{escape(shown)}</th>{cells}</tr>"
