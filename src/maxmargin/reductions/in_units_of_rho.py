# SPDX-License-Identifier: BSD-3-Clause
"""A classifier with nu in the units of one with C: its rho becomes 1, and scores of 1 are on the margin.

With all costs times s, the best w, b and rho are s times what they were, and the objective is s^2 times
that. So the answer to one scale is the answer to all. LIBSVM gives it at s = 1 / rho, where it is that of
``SVC`` with C = 1 / rho; so do we.
"""

from __future__ import annotations

from dataclasses import replace

from maxmargin.problem.problem import checked_total
from maxmargin.problem.rows import is_within_limits
from maxmargin.proof.certificate import Certificate, certify
from maxmargin.proof.solution import Solution


def in_units_of_rho(proof: Certificate) -> tuple[Certificate, float]:
    """The certificate at 1 / rho times the costs, proven again, and that factor.

    1 and the certificate itself where rho is not above 0, or only by what rounding leaves of it: the
    classes overlap so much that no margin is left at this nu, and w = 0 is best.
    """
    problem = proof.problem
    assert problem is not None
    assert problem.total is not None
    factor = 1.0 / -proof.shift if proof.shift < 0.0 else 0.0
    if not (factor > 0.0 and is_within_limits(factor * problem.total_cost)):
        return proof, 1.0
    scaled = replace(problem, costs=factor * problem.costs)
    scaled = replace(scaled, total=checked_total(scaled, factor * problem.total))
    own = proof.w if proof.w is not proof.w_of_alpha else None
    solution = Solution(
        w=None if own is None else factor * own,
        alpha=factor * proof.alpha,
        alpha_from=proof.alpha_from,
    )
    return certify(scaled, solution), factor
