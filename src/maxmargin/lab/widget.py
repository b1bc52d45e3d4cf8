# SPDX-License-Identifier: BSD-3-Clause
"""The margin bench in a notebook: the modules of the page, answered by the kernel of the notebook."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets
from numpy.typing import ArrayLike

from maxmargin.lab.asked import FARTHEST, MOST_POINTS
from maxmargin.lab.benches import benches
from maxmargin.lab.messages import reply
from maxmargin.types import Vector

_STATIC = files("maxmargin.lab") / "static"
_MODULES = (
    "workbench.js",
    "controls.js",
    "drawing.js",
    "exporting.js",
    "points.js",
    "state.js",
    "transport.js",
    "benches/margin.js",
)
_SOURCES = {path: (_STATIC / path).read_text("utf-8") for path in _MODULES}
# A notebook loads one module. So this one holds the others as texts, and makes an address for each.
_LOADER = """
const addresses = {};
function address(path) {
  return (addresses[path] ??= URL.createObjectURL(new Blob([sources[path].replace(
    /from "([^"]+)"/g, (_, other) => `from "${address(other.replace(/^\\.+\\//, ""))}"`,
  )], { type: "text/javascript" })));
}
async function render({ model, el }) {
  const [{ mount }, { State }, { WidgetTransport }, { default: bench }] = await Promise.all(
    ["workbench.js", "state.js", "transport.js", "benches/margin.js"].map((path) => import(address(path))));
  const given = { ...model.get("state") };
  if (given.C === "inf") given.C = Infinity; // which JSON does not have
  const state = new State({ ...bench.initial, ...given });
  state.addEventListener("commit", () => {
    const { C, ...values } = state.values;
    model.set("state", { C: C === Infinity ? "inf" : C, ...values });
    model.save_changes();
  });
  el.classList.add("lab");
  return mount(el, { info: model.get("info"), bench, state, transport: new WidgetTransport(model) });
}
export default { render };
"""


class Margin(anywidget.AnyWidget):
    """The margin bench for rows of two columns and two classes: drag them, and the solvers answer.

    ``widget.X`` and ``widget.y`` are the rows as they are on the screen.
    """

    _esm: ClassVar[str] = f"const sources = {json.dumps(_SOURCES)};{_LOADER}"
    _css: ClassVar[str] = (_STATIC / "lab.css").read_text("utf-8")
    info = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, X: ArrayLike, y: ArrayLike, C: float = 1.0, **state: Any) -> None:
        rows, labels, self.classes = _checked(X, y)
        bench = benches()["margin"]
        info = {"name": "margin", "title": bench.title, "invitation": bench.invitation, "tour": bench.tour}
        points = np.column_stack([rows, labels]).tolist()
        values = {"points": points, "view": _view(rows), "C": C if np.isfinite(C) else "inf", **state}
        super().__init__(info=info, state=values)
        self.on_msg(lambda widget, message, buffers: self.send(json.loads(reply(json.dumps(message)))))

    @property
    def X(self) -> Vector:
        """The rows of now."""
        return np.array(self.state["points"])[:, :2]

    @property
    def y(self) -> Any:
        """Their labels, of the kind that was given."""
        return self.classes[(np.array(self.state["points"])[:, 2] > 0).astype(int)]


def _checked(X: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector, Any]:
    """Rows, labels -1 and 1, and the two classes."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not 1 <= len(rows) <= MOST_POINTS:
        raise ValueError(
            f"X must have 2 columns and up to {MOST_POINTS} rows. Got shape {rows.shape} instead. Choose "
            "two columns, and a part of the rows."
        )
    if not (np.abs(rows) <= FARTHEST).all():
        raise ValueError(
            f"X must hold numbers of at most {FARTHEST:g}. Scale its columns, for instance with "
            "StandardScaler."
        )
    classes, places = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2 or places.shape != (len(rows),):
        raise ValueError(
            f"y must hold one of two labels for each of the {len(rows)} rows. Got {len(classes)} labels, "
            f"for {places.size} rows."
        )
    return rows, np.where(places > 0, 1.0, -1.0), classes


def _view(rows: Vector) -> list[list[float]]:
    """The part of the plane that holds all rows and some room, four units wide for three high."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    room = 1.2 * max(half[1], 0.75 * half[0], 1e-3) * np.array([4.0 / 3.0, 1.0])
    return [(middle - room).tolist(), (middle + room).tolist()]
