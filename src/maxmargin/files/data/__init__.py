# SPDX-License-Identifier: BSD-3-Clause
"""Data files, read whole or in chunks."""
