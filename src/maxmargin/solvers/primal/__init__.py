# SPDX-License-Identifier: BSD-3-Clause
"""What the solvers share that have no multipliers of their own."""
