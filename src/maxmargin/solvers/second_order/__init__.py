# SPDX-License-Identifier: BSD-3-Clause
"""What Newton's method and the augmented Lagrangian share."""
