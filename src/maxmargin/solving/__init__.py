# SPDX-License-Identifier: BSD-3-Clause
"""How a problem is solved: the choice of a solver, and the loop that certifies what it proposes."""
