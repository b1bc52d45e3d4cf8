# SPDX-License-Identifier: BSD-3-Clause
"""A report on a model: one page to hand to somebody else.

``facts.py`` gathers the numbers, ``measures.py`` those of predictions; ``page.py`` says them in HTML, with
``pictures.py`` drawn by ``drawing.py``. The proof is recomputed by what ``maxmargin certify`` runs.
"""
