// SPDX-License-Identifier: BSD-3-Clause
// Convexity and duality: lines below a graph, and the lower bounds that a multiplier makes of them.

import { draw, Handles, letters, shortNumber, spot } from "../drawing.js";

const FAN = 7; // lines that are drawn between the smallest and the largest slope
const isLines = (values) => values.part === "lines";
const isDual = (values) => values.part === "dual";
const CONDITIONS = {
  constraint: "g(x) ≤ 0", multiplier: "α ≥ 0", slackness: "α g(x) = 0", stationarity: "f′(x) + α g′(x) = 0",
};

export default {
  initial: { part: "lines", graph: "hinge", x: 0.2, case: "svm", z: 0.4, alpha: 0.4 },

  controls: [
    { kind: "segments", name: "part", label: "Look at", options: { lines: "a function", dual: "a problem" } },
    { kind: "choice", name: "graph", label: "The function", when: isLines, options: {
      hinge: "hinge, max(0, 1 − x)", absolute: "|x|", squared_hinge: "squared hinge", logistic: "logistic",
      parabola: "x² / 2", wells: "two wells, not convex" } },
    { kind: "range", name: "x", label: "x", from: -3, to: 3, step: 0.05, when: isLines },
    { kind: "choice", name: "case", label: "The problem: least f(x) with g(x) ≤ 0", when: isDual, options: {
      svm: "the smallest SVM: w²/2, 1 − w ≤ 0", convex: "convex: no gap", gap: "not convex: a gap",
      slater: "no x has g(x) < 0" } },
    { kind: "range", name: "alpha", label: "α, the slope of the line", from: 0, to: 3, step: 0.01, when: isDual },
    { kind: "range", name: "z", label: "x", from: -1.8, to: 1.8, step: 0.02, when: isDual },
    { kind: "button", label: "Best x and best α", when: isDual, press: ({ answer, state }) => {
      if (answer?.part === "dual") state.change({ z: round(answer.best_x), alpha: round(answer.best_alpha) });
    } },
  ],

  asks: (values) => (isLines(values) ? pick(values, "part", "graph", "x") : pick(values, "part", "case", "z", "alpha")),

  build(stage) {
    const plot = stage.plot({ title: "The graph. Arrows move the point along it.", x: [-3, 3], y: [-1, 4], xLabel: "x", yLabel: "f(x)", ratio: 0.6 });
    const [below, curve, marks] = Array.from({ length: 3 }, () => plot.layer());
    const second = stage.plot({ title: "Its slopes", x: [-3, 3], y: [-2, 2], xLabel: "x", yLabel: "slopes", ratio: 0.32 });
    const [graph, spots] = [second.layer(), second.layer()];
    const handles = new Handles(plot, {
      showChosen: false,
      move: (_, at) => stage.state.set(moved(at)),
      done: () => stage.state.commit(),
    });

    /** The place of the graph that is nearest to where a hand is. */
    function moved([across, up]) {
      const { answer, state } = stage;
      if (isLines(state.values)) return { x: round(across) };
      const [px, py] = plot.at([across, up]);
      let best = 0;
      let least = Infinity;
      answer.x.forEach((_, place) => {
        const [x, y] = plot.at([answer.g[place], answer.f[place]]);
        const away = (x - px) ** 2 + (y - py) ** 2;
        if (away < least) [least, best] = [away, place];
      });
      return { z: round(answer.x[best]) };
    }

    const stroke = (d, colour, width, dashes) => ["path", { d, stroke: colour, fill: "none", "stroke-width": width, ...(dashes ? { "stroke-dasharray": dashes } : {}) }];
    const mark = (on, at, kind, colour, radius = 6) => spot(on, at, kind, radius, { fill: kind === "cross" ? "none" : colour, stroke: colour, "stroke-width": 2 });
    const words = (on, at, text, anchor = "start") => {
      const [x, y] = on.at(at);
      return ["text", { x: x + (anchor === "end" ? -8 : 8), y: y - 6, "text-anchor": anchor, ...letters(on, 0.85) }, text];
    };
    const zip = (one, two) => one.map((value, place) => [value, two[place]]);
    const name = (on, x, y) => Object.assign(on.options, { xLabel: x, yLabel: y });

    function drawLines(answer) {
      name(plot, "x", "f(x)");
      name(second, "x", "slopes at x");
      plot.range([-3, 3], [-1, 4]);
      const wide = Math.max(1.3, ...answer.slopes.map(Math.abs).filter((size) => size < 6));
      second.range([-3, 3], [-1.1 * wide, 1.1 * wide]);
      const { place, value, low, high, slope } = answer;
      const line = (steep) => plot.way([[-3, value + steep * (-3 - place)], [3, value + steep * (3 - place)]]);
      const fan = low === null ? [] : low === high ? [low] : Array.from({ length: FAN }, (_, k) => low + ((high - low) * k) / (FAN - 1));
      draw(below, low === null
        ? [stroke(line(slope), "var(--wrong)", 1.5, "6 4")]
        : fan.map((steep) => stroke(line(steep), "var(--minus)", fan.length > 1 ? 1.3 : 2)));
      draw(curve, [stroke(plot.way(zip(answer.across, answer.heights)), "var(--ink)", 2.5)]);
      draw(marks, []);
      const parts = answer.kink === null ? [zip(answer.across, answer.slopes)]
        : [-1, 1].map((side) => zip(answer.across, answer.slopes).filter(([x]) => side * (x - answer.kink) > 1e-9));
      if (answer.kink !== null) parts.push([[answer.kink, parts[0].at(-1)[1]], [answer.kink, parts[1][0][1]]]);
      draw(graph, [
        stroke(second.way([[-3, 0], [3, 0]]), "var(--line)", 1),
        ...parts.map((part) => stroke(second.way(part), "var(--faint)", 2)),
      ]);
      draw(spots, low === null ? [mark(second, [place, slope], "cross", "var(--wrong)")] : [
        stroke(second.way([[place, low], [place, high]]), "var(--minus)", 5),
        mark(second, [place, low], "circle", "var(--minus)"), mark(second, [place, high], "circle", "var(--minus)"),
      ]);
      handles.draw([{ at: [place, value], shape: "square", radius: 8, fill: "var(--plus)", words: `The point at x = ${shortNumber(place)}` }]);
      stage.legend([
        ["line", "var(--ink)", "the graph"], ["line", "var(--minus)", "lines below it that touch it"],
        ["dashes", "var(--wrong)", "a tangent that is not below"], ["square", "var(--plus)", "the point: drag it"],
      ]);
      stage.numbers([
        ["value", "f(x)", value], ["low", "smallest slope", low], ["high", "largest slope", high],
        ["least", "is 0 among them?", answer.least ? 1 : 0, answer.least ? "yes: x is a minimiser" : "no"],
      ]);
      stage.say(low === null
        ? "The tangent crosses the graph: no line touches it here and stays below. The function is not convex."
        : low === high ? `One line touches the graph here and stays below: the tangent, of slope ${shortNumber(low)}.`
          : `At the kink every slope from ${shortNumber(low)} to ${shortNumber(high)} gives a line below the graph: they are the subdifferential.`);
    }

    function drawDual(answer, values) {
      name(plot, "g(x)", "f(x)");
      name(second, "α", "q(α)");
      plot.range([-1.9, 3.3], [-0.6, 4.6]);
      const floor = Math.max(-1.5, Math.min(...answer.duals));
      second.range([0, 3], [floor, answer.primal + 0.25]);
      const { primal, dual, here, touches } = answer;
      const line = (g) => [g, dual - values.alpha * g];
      const allowed = plot.way([[-1.9, -9], [0, -9], [0, 9], [-1.9, 9]], true);
      draw(below, [
        ["path", { d: allowed, fill: "var(--plus-tint)" }],
        stroke(plot.way([[0, -9], [0, 9]]), "var(--faint)", 1.2),
        stroke(plot.way([line(-1.9), line(3.3)]), "var(--minus)", 2),
      ]);
      draw(curve, [stroke(plot.way(zip(answer.g, answer.f)), "var(--ink)", 2.5)]);
      draw(marks, [
        stroke(plot.way([answer.best, [0, primal]]), "var(--third)", 1.5, "3 3"),
        mark(plot, touches, "circle", "var(--minus)", 4),
        mark(plot, [0, primal], "diamond", "var(--third)", 8), words(plot, [0, primal], "p*"),
        mark(plot, [0, dual], "circle", "var(--minus)"), words(plot, [0, dual], "q(α)", "end"),
      ]);
      draw(graph, [
        stroke(second.way([[0, primal], [3, primal]]), "var(--third)", 2, "7 4"),
        stroke(second.way(zip(answer.multipliers, answer.duals)), "var(--ink)", 2),
      ]);
      draw(spots, [mark(second, [values.alpha, dual], "circle", "var(--minus)"), words(second, [0, primal], "p*")]);
      handles.draw([{ at: here, shape: "square", radius: 8, fill: "var(--plus)", words: `The point x = ${shortNumber(values.z)}` }]);
      stage.legend([
        ["line", "var(--ink)", "(g(x), f(x)) for all x"], ["area", "var(--plus-tint)", "allowed, g ≤ 0"],
        ["line", "var(--minus)", "slope −α, below the set"], ["diamond", "var(--third)", "p*, the best value"], ["square", "var(--plus)", "x: drag it"],
      ]);
      const lamps = Object.entries(CONDITIONS).map(([key, label]) => {
        const missed = answer.conditions[key];
        return [key, label, missed, missed <= answer.nearly ? "● holds" : `○ off by ${shortNumber(missed, 3)}`];
      });
      stage.numbers([["p", "p*, the best value", primal], ["q", "q(α), a lower bound", dual], ["d", "d*, the best bound", answer.best_dual], ...lamps]);
      const lit = lamps.every(([, , missed]) => missed <= answer.nearly);
      stage.say(lit ? "All four lamps are lit: this x is the best one, and α proves it."
        : primal - answer.best_dual > 0.01 ? `Lines below the set cannot reach p*: the best bound stays ${shortNumber(primal - answer.best_dual, 3)} below it. That is the duality gap.`
          : `Whatever α is, the line meets the axis at or below p*: here ${shortNumber(primal - dual, 3)} below. Move x and α until all four lamps are lit.`);
    }

    return {
      draw(answer, values) {
        if (answer.part === "lines") drawLines(answer);
        else drawDual(answer, values);
      },
    };
  },
};

function round(value) {
  return Number(value.toFixed(3));
}

function pick(values, ...names) {
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}
