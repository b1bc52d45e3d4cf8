# SPDX-License-Identifier: BSD-3-Clause
"""Kernel problems on a GPU: rows that lie there, programs for them, and what is said without one."""
