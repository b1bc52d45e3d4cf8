// SPDX-License-Identifier: BSD-3-Clause
// Optimisers: the iterates of the course's methods on the level lines of the objective.

import { draw, levelWay, shortNumber, spot } from "../drawing.js";

const LEVELS = 14;
const SMALLEST = 1e-9; // the smallest relative distance from the best value that is drawn
const hasSizes = ({ method }) => method === "subgradient" || method === "stochastic";
const isStochastic = ({ method }) => method === "stochastic" || method === "pegasos";
const canAverage = (values) => hasSizes(values) || values.method === "pegasos";

export default {
  initial: {
    data: "overlapping", points: [], method: "subgradient", C: 0.1, intercept: "none", rule: "decreasing", eta: 3, t0: 1,
    batch: 1, pace: 1, average: "last", T_0: 50, seed: 0, step: 200,
  },

  controls: [
    { kind: "choice", name: "method", label: "Method", options: {
      subgradient: "subgradient", stochastic: "stochastic", pegasos: "Pegasos", perceptron: "perceptron",
      dual_ascent: "dual ascent", newton: "Newton" } },
    { kind: "choice", name: "data", label: "Points", options: { overlapping: "overlapping", clouds: "two clouds", outlier: "an outlier" } },
    { kind: "player", name: "step", label: "Step", last: (answer) => answer.iterates.length - 1, seconds: 8 },
    { kind: "choice", name: "rule", label: "Step size", when: hasSizes, options: { constant: "η", decreasing: "η / (t + t₀)", lambda: "η / (λ t)" } },
    { kind: "range", name: "eta", label: "η", from: -2, to: 2, step: 0.1, log: true, when: hasSizes },
    { kind: "range", name: "t0", label: "t₀", from: 0, to: 100, step: 1, when: (values) => hasSizes(values) && values.rule === "decreasing" },
    { kind: "range", name: "batch", label: "Rows of a step, k", from: 1, to: 60, step: 1, when: isStochastic },
    { kind: "choice", name: "average", label: "The answer", when: canAverage, options: { last: "the last iterate", all: "mean of all", T_0: "mean from T₀ on" } },
    { kind: "range", name: "T_0", label: "T₀", from: 1, to: 200, step: 1, when: (values) => canAverage(values) && values.average === "T_0" },
    { kind: "range", name: "C", label: "C, the price of slack", from: -2, to: 1, step: 0.1, log: true },
    { kind: "choice", name: "intercept", label: "Intercept b", options: { none: "none", exact: "free" } },
    { kind: "range", name: "pace", label: "Own step for b, times", from: -2, to: 2, step: 0.25, log: true, when: (values) => canAverage(values) && values.intercept === "exact" },
    { kind: "range", name: "seed", label: "Draw of the rows", from: 0, to: 20, step: 1, when: ({ method }) => method !== "subgradient" && method !== "newton" },
  ],

  asks: ({ step, ...values }) => values,

  build(stage) {
    const plane = stage.plot({ title: "The objective over w, and the iterates", x: [-1, 1], y: [-1, 1], xLabel: "w₁", yLabel: "w₂", equal: true, share: 1.2 });
    const [levels, ball, way, now] = Array.from({ length: 4 }, () => plane.layer());
    const gap = stage.plot({ title: "Distance from the best value, step by step", x: [0, 1], y: [1e-6, 1], logY: true, xLabel: "step t", yLabel: "(P − P*) / P*", ratio: 0.9, share: 1 });
    const [curves, mark] = [gap.layer(), gap.layer()];

    function drawLevels({ grid, primal, radius, half }) {
      const highest = Math.max(...grid.flat());
      draw(levels, Array.from({ length: LEVELS }, (_, k) => {
        const level = primal + (highest - primal) * ((k + 0.6) / LEVELS) ** 2.5;
        return ["path", { d: levelWay(plane, grid, level), stroke: "var(--line)", fill: "none" }];
      }));
      if (!radius) return draw(ball, []);
      const [x, y] = plane.at([0, 0]);
      return draw(ball, [["circle", { cx: x, cy: y, r: plane.length(Math.min(radius, 10 * half)), fill: "none", stroke: "var(--third)", "stroke-width": 2, "stroke-dasharray": "8 5" }]]);
    }

    /** The first step whose answer is a mean; none is where the last iterate is the answer. */
    const firstMean = (values) => (!canAverage(values) || values.average === "last" ? Infinity : values.average === "all" ? 1 : values.T_0);

    function drawWay({ iterates, answers, best }, step, first) {
      const ends = iterates.slice(0, step + 1);
      const items = [["path", { d: plane.way(ends.map(([w1, w2]) => [w1, w2])), fill: "none", stroke: "var(--minus)", "stroke-width": 1.2 }]];
      const few = Math.max(1, Math.ceil(ends.length / 120));
      ends.forEach((point, k) => {
        if (k % few === 0) items.push(spot(plane, point, "circle", 2.5, { fill: "var(--minus)" }));
      });
      if (step >= first) items.push(["path", { d: plane.way(answers.slice(first, step + 1).map(([w1, w2]) => [w1, w2])), fill: "none", stroke: "var(--plus)", "stroke-width": 2.5 }]);
      draw(way, items);
      const spots = [spot(plane, best, "diamond", 9, { fill: "var(--ink)" }), spot(plane, iterates[step], "circle", 7, { fill: "var(--minus)", stroke: "var(--paper)" })];
      if (step >= first) spots.push(spot(plane, answers[step], "triangle", 8, { fill: "var(--plus)", stroke: "var(--paper)" }));
      draw(now, spots);
    }

    function drawGap({ values, answer_values: answered, primal }, step, first) {
      const off = (value) => Math.max((value - primal) / primal, SMALLEST);
      const heights = values.map(off);
      const low = Math.max(SMALLEST, Math.min(...heights, ...answered.map(off)) / 2);
      gap.range([0, Math.max(1, values.length - 1)], [low, Math.max(...heights) * 2]);
      const items = [["path", { d: gap.way(heights.map((height, k) => [k, height])), fill: "none", stroke: "var(--minus)", "stroke-width": 1.3 }]];
      if (first < answered.length) items.push(["path", { d: gap.way(answered.map((value, k) => [k, off(value)]).slice(first)), fill: "none", stroke: "var(--plus)", "stroke-width": 2.5 }]);
      draw(curves, items);
      const spots = [spot(gap, [step, heights[step]], "circle", 6, { fill: "var(--minus)" })];
      if (step >= first) spots.push(spot(gap, [step, off(answered[step])], "triangle", 7, { fill: "var(--plus)" }));
      draw(mark, spots);
    }

    /** How far an iterate is from the optimum, b included. */
    const away = ({ iterates, best }, step) => Math.hypot(...iterates[step].map((value, k) => value - best[k]));

    function say(answer, step) {
      if (step === 0) return stage.say("Every run begins at w = 0. Press Play, or go step by step.");
      const [before, after] = [answer.values[step - 1], answer.values[step]];
      const [far, near] = [away(answer, step - 1), away(answer, step)];
      const value = after > before ? "rises" : "falls";
      const place = near < far ? "comes closer to the optimum" : "moves away from it";
      return stage.say(`Step ${step}: the value ${value} from ${shortNumber(before)} to ${shortNumber(after)}, and the iterate ${place}, from ${shortNumber(far, 3)} to ${shortNumber(near, 3)}.`
        + (after > before && near < far ? " A subgradient step may do both." : ""));
    }

    return {
      draw(answer, values) {
        const step = Math.min(values.step, answer.iterates.length - 1);
        const first = firstMean(values);
        const averaged = step >= first;
        plane.range([-answer.half, answer.half], [-answer.half, answer.half]);
        drawLevels(answer);
        drawWay(answer, step, first);
        drawGap(answer, step, first);
        const rises = answer.values.slice(1, step + 1).filter((value, k) => value > answer.values[k]).length;
        stage.numbers([
          ["best", "P*, the best value", answer.primal], ["value", "P at this iterate", answer.values[step]],
          ...(averaged ? [["answer", "P at the mean", answer.answer_values[step]]] : []),
          ["distance", "distance from the optimum", away(answer, step)], ["rises", "steps that rose so far", rises],
        ]);
        stage.legend([
          ["diamond", "var(--ink)", "the optimum"], ["circle", "var(--minus)", "iterates"],
          ...(averaged ? [["triangle", "var(--plus)", "their mean"]] : []), ["line", "var(--line)", values.intercept === "none" ? "level lines of P" : "level lines of P at the best b"],
          ...(answer.radius ? [["dashes", "var(--third)", "Pegasos' ball"]] : []),
        ]);
        say(answer, step);
      },
    };
  },
};
