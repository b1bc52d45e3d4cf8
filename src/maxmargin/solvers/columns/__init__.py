# SPDX-License-Identifier: BSD-3-Clause
"""The parts of coordinate descent over columns: its point, its working set, the models on it, and jumps."""
