# SPDX-License-Identifier: BSD-3-Clause
"""What the solvers of kernel problems share."""
