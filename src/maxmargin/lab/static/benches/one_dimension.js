// SPDX-License-Identifier: BSD-3-Clause
// One-dimensional features: what a linear machine can say of one number depends on how it is told.

import { draw, Handles, labelStyle, shortNumber, spot } from "../drawing.js";

const QUANTITIES = { temperature: "temperature, in °C", bought: "how often it was bought", wave: "x" };
const ROW = { 1: 0.62, "-1": -0.62 }; // the heights of the two classes, in shares of the largest score shown

export default {
  initial: { quantity: "temperature", rows: [], features: "number", degree: 3, buckets: 5, C: 10, against: "degree" },

  controls: [
    { kind: "choice", name: "quantity", label: "The number", patch: { rows: [] }, options: {
      temperature: "temperature", bought: "times bought", wave: "a wave" } },
    { kind: "choice", name: "features", label: "Its features", options: {
      number: "x itself", square: "a square", log: "log(1 + x)", buckets: "buckets", powers: "powers" } },
    { kind: "range", name: "degree", label: "Degree", from: 1, to: 12, step: 1, when: ({ features }) => features === "powers" },
    { kind: "range", name: "buckets", label: "Buckets", from: 2, to: 12, step: 1, when: ({ features }) => features === "buckets" },
    { kind: "range", name: "C", label: "C, the price of slack", from: -2, to: 4, step: 0.25, log: true },
    { kind: "segments", name: "against", label: "Errors against", options: { degree: "the degree", C: "C" } },
  ],

  asks: (values) => ({ ...values, features: features(values) }),

  build(stage) {
    const plot = stage.plot({
      title: "Rows along one axis, and the score. Arrows left and right move a row, Space changes its class.",
      x: [34, 41], y: [-3, 3], xLabel: QUANTITIES.temperature, yLabel: "score", ratio: 0.5,
    });
    const [areas, line] = [plot.layer(), plot.layer()];
    const errors = stage.plot({ title: "Shares of errors", x: [1, 12], y: [0, 0.5], xLabel: "degree", yLabel: "errors", ratio: 0.34 });
    const [curves, now] = [errors.layer(), errors.layer()];
    stage.legend([
      ["triangle", "var(--plus)", "label +1"], ["circle", "var(--minus)", "label −1"], ["line", "var(--ink)", "score"],
      ["area", "var(--plus-tint)", "where it answers +1"], ["open circle", "var(--ink)", "errors, training rows"], ["square", "var(--wrong)", "errors, unseen rows"],
    ]);
    const list = () => (stage.state.values.rows.length ? stage.state.values.rows : (stage.answer?.rows ?? []));
    const replace = (index, row) => list().map((each, place) => (place === index ? row : each));
    const handles = new Handles(plot, {
      move: (index, [x]) => stage.state.set({ rows: replace(index, [Number(x.toFixed(2)), list()[index][1]]) }),
      done: () => stage.state.commit(),
      key: (index, name) => {
        if (name !== " ") return false;
        const [x, label] = list()[index];
        stage.state.change({ rows: replace(index, [x, -label]) });
        return true;
      },
    });

    function drawRows(high) {
      const rows = list();
      handles.draw(rows.map(([x, label], index) => {
        const { shape: kind, colour } = labelStyle(label);
        // A little up or down, so that rows of one place can be told apart.
        const at = [x, high * (ROW[label] + 0.09 * ((index % 5) - 2) / 2)];
        return { at, shape: kind, radius: 6, stroke: colour, fill: colour, words: `Row ${index + 1} of ${rows.length}, label ${label > 0 ? "plus" : "minus"}, at ${x}` };
      }));
    }

    function drawScore({ across, scores, low, high: most }, values) {
      const largest = Math.min(Math.max(2, ...scores.map(Math.abs)), 4);
      plot.options.xLabel = QUANTITIES[values.quantity];
      plot.range([low, most], [-largest, largest]);
      const [, zero] = plot.at([low, 0]);
      const [, top] = plot.at([low, largest]);
      const [, floor] = plot.at([low, -largest]);
      const tiles = [];
      let start = 0;
      for (let k = 1; k <= across.length; k++) {
        if (k < across.length && scores[k] > 0 === scores[start] > 0) continue;
        const [x1] = plot.at([across[start], 0]);
        const [x2] = plot.at([across[Math.min(k, across.length - 1)], 0]);
        const fill = scores[start] > 0 ? "var(--plus-tint)" : "var(--minus-tint)";
        tiles.push(["rect", { x: x1, y: top, width: Math.max(0, x2 - x1), height: floor - top, fill }]);
        start = k;
      }
      draw(areas, [...tiles, ["line", { x1: plot.left, x2: plot.left + plot.inner, y1: zero, y2: zero, stroke: "var(--faint)" }]]);
      draw(line, [["path", { d: plot.way(across.map((x, k) => [x, scores[k]])), stroke: "var(--ink)", fill: "none", "stroke-width": 2.5 }]]);
      return largest;
    }

    function drawErrors({ places, curves: both, train, unseen }, values) {
      const isC = values.against === "C";
      Object.assign(errors.options, { logX: isC, xLabel: isC ? "C" : "degree of the powers" });
      const highest = Math.max(0.1, ...both.flat());
      errors.range(isC ? [places[0] / 1.5, places.at(-1) * 1.5] : [0.5, places.at(-1) + 0.5], [-0.04 * highest, 1.12 * highest]);
      const way = (which) => errors.way(places.map((place, k) => [place, both[k][which]]));
      const marks = (which, kind, style) => places.map((place, k) => spot(errors, [place, both[k][which]], kind, 4.5, { "stroke-width": 1.6, ...style }));
      draw(curves, [
        ["path", { d: way(0), stroke: "var(--ink)", fill: "none", "stroke-width": 1.5 }],
        ["path", { d: way(1), stroke: "var(--wrong)", fill: "none", "stroke-width": 1.5, "stroke-dasharray": "6 4" }],
        ...marks(0, "circle", { fill: "var(--paper)", stroke: "var(--ink)" }), ...marks(1, "square", { fill: "var(--wrong)" }),
      ]);
      const place = isC ? values.C : features(values) === "powers" ? values.degree : null;
      const ring = (value) => spot(errors, [place, value], "circle", 10, { fill: "none", stroke: "var(--third)", "stroke-width": 2.5 });
      draw(now, place === null ? [] : [ring(train), ring(unseen)]);
    }

    return {
      sketch() {
        drawRows(plot.y[1]);
      },
      draw(answer, values) {
        drawRows(drawScore(answer, values));
        drawErrors(answer, values);
        stage.numbers([
          ["train", "errors, training rows", answer.train], ["unseen", "errors, unseen rows", answer.unseen],
          ["columns", "features", answer.columns], ["P", "P, the value of this fit", answer.primal],
          ["D", "D, none is below", answer.dual], ["gap", "gap P − D", answer.gap],
        ]);
        const [wrong, missed] = [answer.train, answer.unseen].map((share) => `${shortNumber(100 * share, 3)} %`);
        const overfits = answer.unseen > answer.train + 0.1;
        stage.say(`With ${answer.columns} ${answer.columns === 1 ? "feature" : "features"} it is wrong on ${wrong} of the training rows and on ${missed} of unseen ones.`
          + (overfits ? " It has learnt the noise: fewer features, or a smaller C, would do better." : ""));
      },
    };
  },
};

/** No logarithm where numbers can be negative. */
function features(values) {
  return values.quantity === "wave" && values.features === "log" ? "number" : values.features;
}
