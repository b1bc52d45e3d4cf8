# SPDX-License-Identifier: BSD-3-Clause
"""One problem along C: a path of models, and what a proof says at other costs."""
