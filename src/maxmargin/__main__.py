# SPDX-License-Identifier: BSD-3-Clause
"""``python -m maxmargin`` is the command ``maxmargin``."""

from __future__ import annotations

from maxmargin.command_line import main

if __name__ == "__main__":
    main()
