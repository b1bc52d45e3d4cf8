# SPDX-License-Identifier: BSD-3-Clause
"""The page of what the sceptic found."""

from __future__ import annotations

from benchmarks import machine
from benchmarks.report import table
from benchmarks.sceptic import AT_A_TIME, FINDINGS, Batches
from benchmarks.sceptic_draws import KINDS
from benchmarks.sceptic_family import FAMILY

_PAGE = """\
# The sceptic

Random fits of 4 to 40 rows and 1 to 6 columns, over data from 1e-12 to 1e12, columns and rows of
different scales, data far from 0, rows that occur twice, C from 1e-8 to 1e8, all losses, kernels and
forms of the intercept, weights, float32 and sparse data, regression, hard margins and whole paths. For each
certificate, P is computed at the model's own w and b, and the lower bound from its multipliers, in exact
arithmetic: fractions of whole numbers, and intervals for exponentials and logarithms
([how](../certificate_checker.md)). Nothing is allowed for rounding. A claim that classes cannot be
separated is checked by a linear program in fractions. Where the best model can be, between which numbers
its scores of the rows of the fit are, and which rows are settled, is compared with what exact arithmetic
proves of it. Each finding is printed as lines of Python that show it again.

{fits:,} fits with {claims:,} certificates were made and examined in {time} of processor time, in
batches of {batch} that are kept from run to run, with seed {seeds}. A fit is ended after 0.02 s, one of
20 after 0.1 s, and one of 500 after 1 s.
{facts}."""


_MENDED = """\
What runs like this one found before is mended, and each case is a test
(`tests/proof/test_exact_certificates.py`); batches with a finding were made again afterwards, the others
stand as the code of their day made them. Of the last ones: at rows that are all 0, a path that was cut
short said more of the costs between two fits than the certificate there showed
(`tests/along_costs/test_whole_path.py`); the interior point began a regression of values around 1e-19 with
a division by 0 (`tests/solvers/test_interior_point.py`); three fits with a chi-squared kernel of values
around 1e18 let NumPy warn of sums that are no numbers (`tests/kernels/test_ill_conditioned.py`);
predictions for rows in single precision whose inner products overflow there were not a number; and the
exact checker could not follow two radii that are true, since it took the square root of 0 for 1e-73, and
bounded the intercept by the model's objective where that of w = 0 is smaller. Another 43,000 fits, with
seed 41118, found five dual values of a chi-squared kernel that were twice the exact ones, since a solver
went on in the array by which its scores were remembered (`tests/kernels/test_stopped_sums.py`)."""


_FAMILY = """\
The columns from "{first}" on are {fits:,} fits of `NuSVC`, `NuSVR`, `OneClassSVM`, `LinearSVC` with all
classes in one problem, and `RankSVM` (`--kinds family`), of up to 24 rows and with random numbers of their
own. With nu, multipliers are moved in fractions until they add up to the total, or b and rho are bounded:
the better bound counts. Rankings are written out pair by pair. What these found is mended, too, and is a
test: rows were said to have no force, or all of it, at an optimum whose rho is not known to the last digit;
and a rho that is above 0 by rounding alone was taken for a unit, so that costs overflowed."""


def markdown(batches: Batches) -> str:
    """The whole page: of the fits that a file has, those of the family in columns of their own."""
    found = batches.total
    kinds = [*KINDS, *(kind for kind in FAMILY if found.fits[kind])]
    hours = found.seconds / 3600.0
    parts = [
        _PAGE.format(
            fits=sum(found.fits.values()),
            claims=sum(found.claims.values()),
            time=f"{hours:.1f} hours" if hours >= 1.0 else f"{60.0 * hours:.1f} minutes",
            batch=AT_A_TIME,
            seeds=" and ".join(map(str, batches.seeds)),
            facts=", ".join(f"{name} {value}" for name, value in machine.facts().items()),
        )
    ]
    lines = [
        [words, *(str(found.findings[name, kind]) for kind in kinds)] for name, words in FINDINGS.items()
    ]
    parts += ["## What was found", table(["", *kinds], lines), _MENDED]
    if members := kinds[len(KINDS) :]:
        parts.append(_FAMILY.format(first=members[0], fits=sum(found.fits[kind] for kind in members)))
    counted = [
        ["fits", *(f"{found.fits[kind]:,}" for kind in kinds)],
        ["certificates", *(f"{found.claims[kind]:,}" for kind in kinds)],
        ["of these within tol", *(f"{found.certified[kind]:,}" for kind in kinds)],
    ]
    ends = sorted({status for _, status in found.statuses})
    counted += [
        [f"fits that ended: {end}", *(f"{found.statuses[kind, end]:,}" for kind in kinds)] for end in ends
    ]
    parts += ["## How the fits ended", table(["", *kinds], counted)]
    if found.refused:
        refused = [[f"{count:,}", f"{words} ..."] for words, count in found.refused.most_common(12)]
        parts += ["## What was refused, by the first words of the message", table(["fits", ""], refused)]
    return "\n\n".join(parts) + "\n"
