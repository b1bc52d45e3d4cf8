# SPDX-License-Identifier: BSD-3-Clause
"""A checker of proofs that shares nothing with what it checks: slow, plain and exact.

It uses Python's standard library and nothing else, not even NumPy. Every float64 is a fraction of whole
numbers, so sums and products of them are computed exactly with ``fractions``; exponentials and logarithms
lie in intervals that contain them for certain. There is no tolerance for rounding anywhere, because nothing
is rounded towards the wrong side.

    arithmetic.py   exact vectors, and intervals around what is not a fraction
    rows.py         what a problem asks of its rows: as they are, or seen through a kernel
    places.py       whether the best point is where a file says it is
    values.py       the exact objective of a point, and the exact lower bound of multipliers
    readers.py      LIBSVM text, CSV and maxmargin's model files
    parts.py        the problems of a model file, on the rows of a data file
    checker.py      the verdict on a model file and a data file

docs/certificate_checker.md says how to write another one.
"""
