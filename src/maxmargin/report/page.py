# SPDX-License-Identifier: BSD-3-Clause
"""The page: one HTML file that needs no script and asks for nothing from elsewhere."""

from __future__ import annotations

from html import escape
from importlib.resources import files as resources

from maxmargin.files import SavedKernelModel
from maxmargin.report.drawing import shown
from maxmargin.report.facts import Facts
from maxmargin.report.markup import Markup, joined, name, section, sentence
from maxmargin.report.numbers import Numbers
from maxmargin.report.sections.accuracy import accuracy_section
from maxmargin.report.sections.data import data_section
from maxmargin.report.sections.model import model_section
from maxmargin.report.sections.naming import data_name, in_percent, measured
from maxmargin.report.sections.numbers import errors_section, region_section
from maxmargin.report.sections.proof import proof_section, trace_section
from maxmargin.report.sections.scores import calibration_section, plane_section, scores_section
from maxmargin.report.sections.weights import columns_section, support_section

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing is loaded and nothing runs, whatever a name in the data may try."""
_SECTIONS = {
    "model": ("What was trained", model_section),
    "proof": ("The proof", proof_section),
    "trace": ("How the proof tightened", trace_section),
    "accuracy": ("Accuracy", accuracy_section),
    "errors": ("Errors", errors_section),
    "region": ("Inside and outside", region_section),
    "scores": ("Scores and margins", scores_section),
    "calibration": ("Calibration", calibration_section),
    "plane": ("The plane", plane_section),
    "columns": ("The heaviest columns", columns_section),
    "support": ("Support vectors", support_section),
    "data": ("Data and versions", data_section),
}


def page(found: Facts) -> str:
    """The whole page."""
    sections = {key: (title, made(found)) for key, (title, made) in _SECTIONS.items()}
    sections = {key: (title, parts) for key, (title, parts) in sections.items() if parts}
    title = f"Report on {shown(found.source.name)}"
    style = (resources("maxmargin.report") / "style.css").read_text("utf-8")
    links = "".join(
        f'<li><a href="#{key}">{escape(words)}</a></li>' for key, (words, _) in sections.items()
    )
    body = "".join(section(key, words, parts) for key, (words, parts) in sections.items())
    made_on = found.made.strftime("%Y-%m-%d %H:%M UTC")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="quiet">{_subtitle(found)}</p>
</header>
<main>
{_verdict(found)}
{_tiles(found)}
<nav aria-label="Contents"><ul>{links}</ul></nav>
{body}</main>
<footer><p>Made on {made_on} with maxmargin {escape(found.versions["maxmargin"])}. The proof and all
measures were computed from the model and the data when the page was made. What the model merely says of
itself stands under What was trained, or is called claimed or recorded.</p></footer>
</body>
</html>
"""


def _subtitle(found: Facts) -> Markup:
    rows, columns = found.data.X.shape
    kind = "classifier with a kernel" if isinstance(found.model, SavedKernelModel) else "linear classifier"
    words = f"A {kind} of {len(found.model.classes)} classes, on "
    if not found.model.has_classes:
        what = "regressor" if found.model.is_regression else "region of one class"
        form = " with a kernel" if isinstance(found.model, SavedKernelModel) else ", linear"
        words = f"A {what}{form}, on "
    return joined(words, name(found.data.source.name), f": {rows:,} rows, {columns:,} columns.")


def _verdict(found: Facts) -> Markup:
    """Whether the proof holds, first of all."""
    verdict, status, kind = found.verdict, found.model.status, "bad"
    words = found.no_proof if verdict is None else verdict.conclusion
    if verdict is None:
        head = "✗ There is no proof"
    elif verdict.worst is None:
        head = "✗ The proof could not be recomputed on these data"
    elif not verdict.holds:
        head = "✗ The proof does not hold on these data"
    elif verdict.model.claims is None:
        kind, head = "good", "✓ The distance from the best model is bounded"
    elif status is not None and not status.certified:
        kind, head = "", "◐ The values hold, but the training ended before its tolerance"
    else:
        kind, head = "good", "✓ The proof holds"
    return Markup(f'<div class="verdict {kind}"><strong>{head}</strong> {sentence(words)}</div>')


def _tiles(found: Facts) -> Markup:
    """The few numbers that everybody looks for."""
    tiles: list[tuple[str, str, str]] = []
    if found.verdict is not None and found.verdict.worst is not None:
        gap = found.verdict.worst.relative_gap
        tiles.append(("Relative gap, recomputed", f"{gap:.1e}", f"asked for: {found.asked:g}"))
    for where, measures, _ in measured(found):
        if isinstance(measures, Numbers) and measures.mean_absolute_error is not None:
            beside = f"root mean square {measures.root_mean_squared_error:.4g}"
            tiles.append((f"Off by on {where}, in the mean", f"{measures.mean_absolute_error:.4g}", beside))
        elif isinstance(measures, Numbers) and found.model.is_one_class:
            of = f"{measures.outside:,} of {measures.rows:,} rows"
            tiles.append((f"Outside, of {where}", in_percent(measures.outside / measures.rows), of))
        if measures.accuracy is not None:
            of = f"{measures.right:,} of {measures.rows:,} rows"
            tiles.append((f"Accuracy on {where}", in_percent(measures.accuracy), of))
    if (sure := found.measures.sure) is not None:
        count = sure.right + sure.wrong
        of = f"{count:,} rows of {data_name(found)}"
        tiles.append(("Labels no better fit would change", in_percent(count / found.measures.rows), of))
    if count := found.support[0]:
        tiles.append(
            ("Support vectors", f"{count:,}", f"of {found.model.rows:,} rows" if found.model.rows else "")
        )
    cells = [
        f'<div><dt>{key}</dt><dd><span class="number">{number}</span> '
        f'<span class="more">{more}</span></dd></div>'
        for key, number, more in tiles
    ]
    return Markup(f'<dl class="tiles">{"".join(cells)}</dl>' if cells else "")
