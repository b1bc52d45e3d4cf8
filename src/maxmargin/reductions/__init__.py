# SPDX-License-Identifier: BSD-3-Clause
"""What turns a user's problem into the one problem, and its answers back."""
