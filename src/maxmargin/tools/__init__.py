# SPDX-License-Identifier: BSD-3-Clause
"""Small tools that every folder may use."""
