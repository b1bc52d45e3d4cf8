# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a report, one thought in each file: ``Facts`` in, HTML out."""
