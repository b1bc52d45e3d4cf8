# SPDX-License-Identifier: BSD-3-Clause
"""What a fit tells a person: how far it is while it runs, and what is to be doubted when it has ended."""
