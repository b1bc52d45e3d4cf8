# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of fitted models and of runs.

Each function draws into ``ax``, or into a new figure, and returns the Axes. Nothing is shown or saved:
``ax.figure.savefig("picture.png")`` does that. Colours are those that the colour-blind can tell apart, and
what they say is said by shapes, dashes and hatches as well; ``greyscale=True`` does without them.

``animate`` makes films: of a path along C, of what ``record`` has seen of a solver, or of traces.
"""

from maxmargin.plot.animations import animate
from maxmargin.plot.curves import convergence
from maxmargin.plot.film import Film
from maxmargin.plot.histogram import margins
from maxmargin.plot.paths import path
from maxmargin.plot.plane import decision_boundary, region, support_vectors
from maxmargin.solving.steps import Recording, record

__all__ = [
    "Film",
    "Recording",
    "animate",
    "convergence",
    "decision_boundary",
    "margins",
    "path",
    "record",
    "region",
    "support_vectors",
]
