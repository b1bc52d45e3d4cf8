// SPDX-License-Identifier: BSD-3-Clause
// Points of two classes on a plot, to be moved, added, deleted and relabelled. The state of the bench has
// data, points and tool; as long as points is empty, the answer's points are those of the named set.

import { Handles, labelStyle, shortNumber } from "./drawing.js";

export const CLASSES = ["no support vector", "on the margin", "inside the margin", "misclassified"];
export const POINTS_HELP = "Page Up and Page Down choose a point, arrows move it, Delete removes it, "
  + "plus and minus add one, Space changes its class.";

/** The control that says what a click does. */
export const TOOL = {
  kind: "segments", name: "tool", label: "A click",
  options: { move: "moves", plus: "adds △", minus: "adds ○", remove: "deletes" },
};

/** The control that chooses a set of points: { name in data.py: words }. */
export function dataControl(options) {
  return { kind: "choice", name: "data", label: "Points", patch: { points: [] }, options };
}

export class PlanePoints {
  /** Options: choose(index), and most, the number of points that there may be. */
  constructor(stage, plot, { choose, most = 500 } = {}) {
    const { state } = stage;
    this.stage = stage;
    const replace = (index, point) => this.list.map((each, place) => (place === index ? point : each));
    const rounded = (at) => at.map((value) => Number(value.toFixed(3)));
    const add = (at, label) => {
      if (this.list.length < most) state.change({ points: [...this.list, [...rounded(at), label]] });
    };
    const remove = (index) => {
      if (this.list.length > 1) state.change({ points: this.list.filter((_, place) => place !== index) });
    };
    this.handles = new Handles(plot, {
      move: (index, at) => state.set({ points: replace(index, [...rounded(at), this.list[index][2]]) }),
      done: () => state.commit(),
      choose,
      press: (index) => state.values.tool === "remove" && (remove(index), true),
      empty: (at) => {
        if (state.values.tool === "plus") add(at, 1);
        if (state.values.tool === "minus") add(at, -1);
      },
      key: (index, name) => {
        const [x, y, label] = this.list[index];
        if (name === "Delete" || name === "Backspace") remove(index);
        else if (name === "+" || name === "-") add([x + 0.3, y + 0.3], name === "+" ? 1 : -1);
        else if (name === " ") state.change({ points: replace(index, [x, y, -label]) });
        else return false;
        return true;
      },
    });
  }

  /** The points of now: [x1, x2, label] each. */
  get list() {
    const { points } = this.stage.state.values;
    return points.length ? points : (this.stage.answer?.points ?? []);
  }

  /** Size is weight, hollow means none, a cross is misclassified; alpha and classes are the answer's. */
  draw(answer) {
    const list = this.stage.state.values.points.length ? this.list : (answer?.points ?? []);
    const known = answer?.alpha?.length === list.length;
    const most = known ? Math.max(...answer.alpha, 1e-12) : 1;
    const [least, more] = list.length > 50 ? [3.5, 4] : [5, 5]; // pixels: many points want room
    this.handles.draw(list.map(([x, y, label], index) => {
      const { shape, colour } = labelStyle(label);
      const kind = known ? answer.classes[index] : 0;
      const weight = known ? answer.alpha[index] / most : 0;
      const words = `Point ${index + 1} of ${list.length}, class ${label > 0 ? "plus" : "minus"}, at ${x}, ${y}`;
      return {
        at: [x, y], shape, radius: least + more * Math.sqrt(weight), stroke: colour,
        fill: kind ? colour : "var(--paper)", mark: kind === 3 ? "cross" : undefined,
        words: known ? `${words}, ${CLASSES[kind]}, weight ${shortNumber(answer.alpha[index])}` : words,
      };
    }));
  }
}
