# SPDX-License-Identifier: BSD-3-Clause
"""Files that are wrong in every way, thrown at the readers: ``python -m fuzz all --seconds 60``."""
