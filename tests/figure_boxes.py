# SPDX-License-Identifier: BSD-3-Clause
"""Where the parts of a figure lie, and whether its legends hide any of them."""

from __future__ import annotations

from itertools import combinations


def boxes(figure):
    """The boxes of all axes, of their legends, titles, labels and the labels of ticks, by name."""
    figure.draw_without_rendering()
    found = {}
    for k, ax in enumerate(figure.axes):
        found[f"axes {k}"] = ax.get_window_extent()
        texts = [ax.title, ax.xaxis.label, ax.yaxis.label]
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
            texts += [label for place, label in ticks if low <= place <= high]
        for text in texts:
            if text.get_text():
                found[f"{text.get_text()!r} of {k}"] = text.get_window_extent()
        if ax.get_legend() is not None:
            found[f"legend {k}"] = ax.get_legend().get_window_extent()
    return found


def assert_nothing_is_hidden(figure):
    """Every legend lies inside the figure, and on nothing else."""
    found = boxes(figure)
    legends = [name for name in found if name.startswith("legend")]
    assert legends
    for name in legends:
        box = found[name]
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, name
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, name
    for (name, box), (other, its) in combinations(found.items(), 2):
        if name in legends or other in legends:
            assert not box.overlaps(its), (name, other)
