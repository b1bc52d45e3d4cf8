// SPDX-License-Identifier: BSD-3-Clause
// Separators: lines of a perceptron in other orders of the rows, and the one of largest margin.

import { draw, lineAndMargins, lineOf, shortNumber, spot } from "../drawing.js";
import { dataControl, PlanePoints, POINTS_HELP, TOOL } from "../points.js";

export default {
  initial: { data: "close", points: [], orders: 12, chosen: 1, pass: 200, tool: "move" },

  controls: [
    TOOL,
    { kind: "range", name: "orders", label: "Orders of the points", from: 1, to: 40, step: 1 },
    { kind: "range", name: "chosen", label: "The order that is shown", from: 1, to: 40, step: 1 },
    { kind: "player", name: "pass", label: "Its passes over the points", seconds: 4,
      last: (answer) => Math.max(...answer.passes) },
    dataControl({ close: "two clouds that are close", clouds: "two clouds", outlier: "an outlier", overlapping: "overlapping", many: "200 points" }),
  ],

  asks: ({ data, points, orders }) => ({ data, points, orders }),

  build(stage) {
    const plot = stage.plot({
      title: `Points in the plane. ${POINTS_HELP}`,
      x: [-4, 4], y: [-3, 3], xLabel: "x₁", yLabel: "x₂", equal: true,
    });
    const [others, widest, now] = Array.from({ length: 3 }, () => plot.layer());
    const scale = stage.plot({
      title: "The margin of every line", x: [0, 1], y: [0, 1], ratio: 0.12, yTicks: false, xLabel: "margin: the distance of the nearest point",
    });
    const marks = scale.layer();
    stage.legend([
      ["triangle", "var(--plus)", "class +1"], ["circle", "var(--minus)", "class −1"],
      ["line", "var(--faint)", "perceptron, other orders"], ["line", "var(--wrong)", "the order that is shown"],
      ["line", "var(--ink)", "the largest margin"],
    ]);
    const points = new PlanePoints(stage, plot, {});
    const way = ([w1, w2, b]) => plot.way(lineOf(plot, [w1, w2], b));

    function drawLines(answer, chosen, pass) {
      const lines = answer.lines.filter((_, index) => index !== chosen);
      draw(others, lines.map((line) => ["path", { d: way(line), stroke: "var(--faint)", "stroke-width": 1 }]));
      draw(widest, answer.widest ? lineAndMargins(plot, answer.widest.slice(0, 2), answer.widest[2]) : []);
      const line = pass ? answer.ways[chosen][pass - 1] : undefined;
      draw(now, line ? [["path", { d: way(line), stroke: "var(--wrong)", "stroke-width": 2.5 }]] : []);
    }

    /** One mark for every order on the axis of margins, and the largest margin that there is. */
    function drawMargins(answer, chosen) {
      const known = answer.margins.filter((margin) => margin !== null);
      const most = answer.margin ?? Math.max(...known, 0.1);
      scale.range([Math.min(0, ...known), 1.15 * most], [0, 1]);
      const mark = (margin, index) => {
        if (margin === null) return [];
        if (index === chosen) return [spot(scale, [margin, 0.72], "diamond", 7, { fill: "var(--wrong)" })];
        return [spot(scale, [margin, 0.3], "diamond", 5, { fill: "none", stroke: "var(--faint)", "stroke-width": 1.5 })];
      };
      const items = answer.margins.flatMap(mark);
      if (answer.widest) {
        const [x, y1] = scale.at([answer.margin, 1]);
        const [, y2] = scale.at([answer.margin, 0]);
        items.push(["line", { x1: x, x2: x, y1, y2, stroke: "var(--ink)", "stroke-width": 2.5 }]);
      }
      draw(marks, items);
    }

    function showNumbers(answer, chosen) {
      const { margins } = answer;
      const list = [
        ["best", "best margin of these orders", Math.max(...margins)], ["worst", "worst of them", Math.min(...margins)],
      ];
      if (answer.widest) list.unshift(["margin", "the largest margin", answer.margin]);
      list.push(["mistakes", "corrections in this order", answer.mistakes[chosen]], ["passes", "passes in this order", answer.passes[chosen]]);
      if (answer.widest) list.push(["bound", "corrections, at most (Novikoff)", Math.floor(answer.bound)]);
      stage.numbers(list);
    }

    return {
      sketch(values, answer) {
        points.draw(answer);
      },
      draw(answer, values) {
        const chosen = Math.min(values.chosen, answer.lines.length) - 1;
        const pass = Math.min(values.pass, answer.ways[chosen].length);
        drawLines(answer, chosen, pass);
        drawMargins(answer, chosen);
        points.draw(answer);
        showNumbers(answer, chosen);
        stage.say(answer.inseparable
          ? `${answer.inseparable} The perceptron would go on for ever; it was stopped after ${answer.passes[chosen]} passes.`
          : `Order ${chosen + 1}: after ${answer.passes[chosen]} passes and ${answer.mistakes[chosen]} corrections the perceptron is content with a margin of `
            + `${shortNumber(answer.margins[chosen])}. The largest is ${shortNumber(answer.margin)}, and no order changes it.`);
      },
    };
  },
};
