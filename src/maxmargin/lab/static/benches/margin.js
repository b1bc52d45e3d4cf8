// SPDX-License-Identifier: BSD-3-Clause
// The margin: points in the plane, the line between them, and what every point is to it.

import { arrow, draw, labelStyle, letters, lineAndMargins, lineOf, shortNumber, spot } from "../drawing.js";
import { CLASSES, dataControl, PlanePoints, POINTS_HELP, TOOL } from "../points.js";

export default {
  initial: { data: "outlier", points: [], C: 1, loss: "hinge", intercept: "exact", hulls: false, tool: "move", view: [] },

  controls: [
    TOOL,
    { kind: "range", name: "C", label: "C, the price of slack", from: -3, to: 3, step: 0.05, log: true, infinite: "∞: the hard margin" },
    { kind: "choice", name: "loss", label: "Loss", options: { hinge: "hinge", squared_hinge: "squared hinge", logistic: "logistic" },
      when: (values) => values.C !== Infinity },
    { kind: "choice", name: "intercept", label: "Intercept b", options: { exact: "free (exact)", regularised: "regularised", none: "none (b = 0)" } },
    dataControl({ outlier: "an outlier", clouds: "two clouds", overlapping: "overlapping", many: "200 points", xor: "XOR", moons: "moons" }),
    { kind: "check", name: "hulls", label: "Convex hulls and their nearest points" },
  ],

  asks: ({ tool, view, ...values }) => values,

  build(stage) {
    const { view } = stage.state.values; // the lower left and the upper right corner of the plane
    const plot = stage.plot({
      title: `Points in the plane. ${POINTS_HELP}`,
      x: [view[0]?.[0] ?? -4, view[1]?.[0] ?? 4], y: [view[0]?.[1] ?? -3, view[1]?.[1] ?? 3], xLabel: "x₁", yLabel: "x₂", equal: true,
    });
    const [areas, hulls, lines, slacks] = Array.from({ length: 4 }, () => plot.layer());
    const weights = stage.plot({ title: "The weight of every support vector", x: [0, 1], y: [0, 1], ratio: 0.2, yLabel: "α", xTicks: false });
    const [bars, cap] = [weights.layer(), weights.layer()];
    stage.legend([
      ["triangle", "var(--plus)", "class +1, size: weight α"], ["circle", "var(--minus)", "class −1"],
      ["open circle", "var(--minus)", "α = 0"], ["line", "var(--ink)", "line"], ["dashes", "var(--ink)", "margin"],
      ["line", "var(--wrong)", "slack"], ["cross", "var(--faint)", "misclassified"],
    ]);

    const points = new PlanePoints(stage, plot, { choose: () => showChosen(stage.answer) });

    function drawLine({ w, b }) {
      if (!w || !lineOf(plot, w, b).length) {
        draw(areas, []);
        draw(lines, []);
        return;
      }
      const far = (2 * plot.across) / Math.hypot(...w);
      const beyond = (sign, level) => {
        const [one, two] = lineOf(plot, w, b, level);
        const move = ([x, y]) => [x + sign * far * w[0], y + sign * far * w[1]];
        return plot.way([one, two, move(two), move(one)], true);
      };
      draw(areas, [
        ["path", { d: beyond(1, 0), fill: "var(--plus-tint)", opacity: 0.55 }],
        ["path", { d: beyond(-1, 0), fill: "var(--minus-tint)", opacity: 0.55 }],
        ["path", { d: beyond(1, 1), fill: "var(--plus-tint)" }],
        ["path", { d: beyond(-1, -1), fill: "var(--minus-tint)" }],
      ]);
      draw(lines, lineAndMargins(plot, w, b));
    }

    /** Slack as arrows: from a point to the margin it should be behind, across xi margins. */
    function drawSlack({ w, margins, points: list }) {
      const squared = w ? w[0] ** 2 + w[1] ** 2 : 0;
      draw(slacks, squared < 1e-18 ? [] : list.flatMap(([x, y, label], index) => {
        const slack = 1 - margins[index];
        if (slack < 1e-6) return [];
        const way = (label * slack) / squared;
        return arrow(plot, [x, y], [x + way * w[0], y + way * w[1]], "var(--wrong)", 1.2);
      }));
    }

    function drawHulls(found) {
      if (!found) return draw(hulls, []);
      const area = (outline, colour) => ["path", { d: plot.way(outline, true), fill: colour, "fill-opacity": 0.15, stroke: colour, "stroke-width": 1.5 }];
      draw(hulls, [
        area(found.positive, "var(--plus)"), area(found.negative, "var(--minus)"),
        ["path", { d: plot.way(found.nearest), stroke: "var(--third)", "stroke-width": 2.5 }],
        ...found.nearest.map((at) => spot(plot, at, "square", 5, { fill: "var(--third)" })),
      ]);
    }

    /** One bar for every support vector, the heaviest first; the cap is C. */
    function drawWeights({ alpha = [], points: list, cap: highest }) {
      const order = alpha.map((_, index) => index).filter((index) => alpha[index] > 0).sort((a, b) => alpha[b] - alpha[a]);
      const most = Math.max(highest ?? 0, ...alpha, 1e-12);
      weights.range([0, Math.max(order.length, 12)], [0, 1.3 * most]);
      draw(bars, order.map((index, place) => {
        const [x, y] = weights.at([place + 0.12, alpha[index]]);
        const [end, floor] = weights.at([place + 0.88, 0]);
        const chosen = index === points.handles.chosen ? { stroke: "var(--ink)", "stroke-width": 2 } : {};
        return ["rect", { x, y, width: end - x, height: floor - y, fill: labelStyle(list[index][2]).colour, ...chosen }];
      }));
      const [left, y] = weights.at([weights.x[0], highest ?? 0]);
      const [right] = weights.at([weights.x[1], 0]);
      const words = { x: right - 6, y: y - 4, "text-anchor": "end", ...letters(weights, 0.8) };
      draw(cap, highest === null || highest === undefined ? [] : [
        ["line", { x1: left, x2: right, y1: y, y2: y, stroke: "var(--ink)", "stroke-dasharray": "4 3" }],
        ["text", words, "C caps every weight"],
      ]);
    }

    function showNumbers(answer) {
      const { w, b_interval: interval, classes = [], hulls: found } = answer;
      const count = (kind) => classes.filter((each) => each === kind).length;
      const list = [];
      if (w) {
        list.push(["P", "P, the value of this line", answer.primal], ["D", "D, no line is below", answer.dual],
          ["gap", "gap P − D", answer.gap, shortNumber(answer.gap, 3)], ["b", "b", answer.b]);
        if (interval && shortNumber(interval[0]) !== shortNumber(interval[1])) {
          list.push(["b_interval", "b may lie in", interval.join(), `${shortNumber(interval[0])} … ${shortNumber(interval[1])}`]);
        }
        list.push(["width", "width of the margin", 2 / Math.hypot(...w)]);
        [1, 2, 3].forEach((kind) => list.push([CLASSES[kind], CLASSES[kind], count(kind)]));
      }
      if (found) list.push(["distance", "distance of the hulls", found.meet ? 0 : found.distance]);
      stage.numbers(list);
    }

    function showChosen(answer) {
      if (!answer) return;
      if (answer.inseparable) {
        stage.say(answer.inseparable);
        return;
      }
      const index = points.handles.chosen;
      if (index >= answer.alpha.length) return;
      const [, , label] = answer.points[index];
      const slack = Math.max(0, 1 - answer.margins[index]);
      stage.say(`The chosen point, class ${label > 0 ? "+1" : "−1"}: ${CLASSES[answer.classes[index]]}, `
        + `weight α = ${shortNumber(answer.alpha[index])}, slack ξ = ${shortNumber(slack < 1e-6 ? 0 : slack)}.`
        + (answer.hulls?.meet ? " The hulls meet (green square): no line separates the classes." : ""));
      drawWeights(answer);
    }

    return {
      sketch(values, answer) {
        points.draw(answer);
      },
      draw(answer) {
        drawLine(answer);
        drawSlack(answer);
        drawHulls(answer.hulls);
        points.draw(answer);
        drawWeights(answer);
        showNumbers(answer);
        showChosen(answer);
      },
    };
  },
};
