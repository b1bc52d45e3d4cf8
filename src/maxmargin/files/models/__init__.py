# SPDX-License-Identifier: BSD-3-Clause
"""Model files: ours and those of LIBLINEAR and LIBSVM."""
