# SPDX-License-Identifier: BSD-3-Clause
"""What is proposed, what is proven and what is answered."""
