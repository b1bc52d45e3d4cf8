// SPDX-License-Identifier: BSD-3-Clause
// Sequential minimal optimisation, pair by pair: the box of two multipliers and the line they move on.

import { draw, letters, levelWay, shortNumber, spot } from "../drawing.js";
import { kernelControls } from "../kernel_controls.js";
import { dataControl, PlanePoints, POINTS_HELP, TOOL } from "../points.js";

const FINE = 41; // values along a side of the box, for the level lines
const LEVELS = 10;

export default {
  initial: {
    data: "moons", points: [], tool: "move", C: 1, kernel: "gaussian", gamma: 1, degree: 3, coef0: 1,
    selection: "second_order", step: 0,
  },

  controls: [
    { kind: "player", name: "step", label: "Pairs moved", last: (answer) => answer.pairs.length, seconds: 15 },
    { kind: "choice", name: "selection", label: "The next pair", options: { second_order: "that gains most (second order)", maximal_violating_pair: "that violates most" } },
    { kind: "range", name: "C", label: "C, the side of the box", from: -2, to: 2, step: 0.05, log: true },
    dataControl({ moons: "moons", rings: "rings", xor: "XOR", spiral: "spiral", overlapping: "overlapping clouds", outlier: "an outlier" }),
    ...kernelControls("", "Kernel", () => true),
    TOOL,
  ],

  asks: ({ tool, step, ...values }) => values,

  build(stage) {
    const plane = stage.plot({ title: `Points in the plane; their size is their multiplier. ${POINTS_HELP}`, x: [-4, 4], y: [-3, 3], xLabel: "x₁", yLabel: "x₂", equal: true, share: 1.35 });
    const box = stage.plot({ title: "The box of the two multipliers, and the line on which they move", x: [-0.3, 1.3], y: [-0.3, 1.3], xLabel: "α of the first", yLabel: "α of the second", equal: true, share: 1 });
    const ascent = stage.plot({ title: "The dual value after every pair", x: [0, 1], y: [0, 1], ratio: 0.22, xLabel: "pairs moved", yLabel: "D" });
    const [links, inside, walls, curve] = [plane.layer(), box.layer(), box.layer(), ascent.layer()];
    const points = new PlanePoints(stage, plane, { most: 100 });
    stage.legend([
      ["line", "var(--third)", "this pair, and the line it may move on"], ["dashes", "var(--faint)", "the pair after it"],
      ["circle", "var(--ink)", "before"], ["cross", "var(--wrong)", "free maximum"], ["diamond", "var(--wrong)", "after: the clipped maximum"],
      ["line", "var(--line)", "level lines of D"],
    ]);

    /** Multipliers after so many pairs, with the classes that they tell. */
    function multipliers({ pairs, points: list, C }, step) {
      const alpha = list.map(() => 0);
      for (const { rows, after } of pairs.slice(0, step)) [alpha[rows[0]], alpha[rows[1]]] = after;
      return { points: list, alpha, classes: alpha.map((value) => (value <= 0 ? 0 : value < C ? 1 : 2)) };
    }

    function drawLinks({ pairs, points: list }, step) {
      const link = (pair, attributes) => {
        if (!pair) return [];
        const ends = pair.rows.map((row) => list[row].slice(0, 2));
        const rings = ends.map((end) => spot(plane, end, "circle", 14, { fill: "none", ...attributes }));
        return [["path", { d: plane.way(ends), fill: "none", ...attributes }], ...rings];
      };
      draw(links, [
        ...link(pairs[step + 1], { stroke: "var(--faint)", "stroke-width": 1.2, "stroke-dasharray": "3 3" }),
        ...link(pairs[step], { stroke: "var(--third)", "stroke-width": 2.5 }),
      ]);
    }

    /** D as a function of the two multipliers, up to a constant. */
    function valueAt({ before, slopes, curvature }, [first, second]) {
      const [d, e] = [first - before[0], second - before[1]];
      return slopes[0] * d + slopes[1] * e - 0.5 * (curvature[0] * d * d + curvature[1] * e * e) - curvature[2] * d * e;
    }

    function drawBox({ C, points: list }, pair) {
      box.range([-0.3 * C, 1.3 * C], [-0.3 * C, 1.3 * C]);
      if (!pair) {
        draw(inside, []);
        draw(walls, [["path", { d: box.way([[0, 0], [C, 0], [C, C], [0, C]], true), fill: "none", stroke: "var(--ink)", "stroke-width": 2.5 }]]);
        return;
      }
      const place = (k) => C * (-0.3 + (1.6 * k) / (FINE - 1));
      const values = Array.from({ length: FINE }, (_, row) => Array.from({ length: FINE }, (_, column) => valueAt(pair, [place(column), place(row)])));
      const [low, high] = [Math.min(...values.flat()), Math.max(...values.flat())];
      // Closer together towards the top, where a parabola is flat.
      draw(inside, Array.from({ length: LEVELS }, (_, k) => {
        const level = high - (high - low) * ((k + 0.5) / LEVELS) ** 2;
        return ["path", { d: levelWay(box, values, level), fill: "none", stroke: "var(--line)", "stroke-width": 1 }];
      }));
      const { before, after, L, H, raw } = pair;
      const equal = list[pair.rows[0]][2] === list[pair.rows[1]][2];
      const onLine = (second) => [before[0] + (equal ? 1 : -1) * (before[1] - second), second];
      const wall = (value, name) => {
        // On the side where the line of the pair does not end.
        const atLeft = (name === "H") !== equal;
        const [x, y] = box.at([(atLeft ? -0.28 : 1.28) * C, value]);
        return [
          ["path", { d: box.way([[-0.3 * C, value], [1.3 * C, value]]), stroke: "var(--faint)", "stroke-dasharray": "2 3" }],
          ["text", { x, y: y - 4, "text-anchor": atLeft ? "start" : "end", ...letters(box, 0.85) }, `${name} = ${shortNumber(value, 3)}`],
        ];
      };
      const items = [
        ["path", { d: box.way([[0, 0], [C, 0], [C, C], [0, C]], true), fill: "none", stroke: "var(--ink)", "stroke-width": 2.5 }],
        ["path", { d: box.way([onLine(-2 * C), onLine(3 * C)]), stroke: "var(--third)", "stroke-dasharray": "6 4" }],
        ["path", { d: box.way([onLine(L), onLine(H)]), stroke: "var(--third)", "stroke-width": 3.5 }],
        ...wall(L, "L"), ...(H - L > 0.06 * C ? wall(H, "H") : []),
        spot(box, before, "circle", 7, { fill: "var(--ink)" }),
        spot(box, after, "diamond", 7, { fill: "var(--wrong)" }),
      ];
      if (raw !== null) {
        items.push(spot(box, onLine(Math.min(1.27 * C, Math.max(-0.27 * C, raw))), "cross", 7, { fill: "none", stroke: "var(--wrong)", "stroke-width": 2.5 }));
      }
      draw(walls, items);
    }

    function drawAscent({ pairs, primal }, step) {
      const values = [0, ...pairs.map((pair) => pair.dual)];
      ascent.range([0, Math.max(1, pairs.length)], [0, 1.3 * Math.max(primal, ...values)]);
      draw(curve, [
        ["path", { d: ascent.way([[0, primal], [pairs.length, primal]]), stroke: "var(--plus)", "stroke-dasharray": "6 4", "stroke-width": 1.5 }],
        ["path", { d: ascent.way(values.map((value, k) => [k, value])), fill: "none", stroke: "var(--minus)", "stroke-width": 2 }],
        spot(ascent, [step, values[step]], "circle", 5, { fill: "var(--ink)" }),
        ["text", {
          x: ascent.left + ascent.inner - 6, y: ascent.at([0, primal])[1] - 5, "text-anchor": "end", ...letters(ascent, 0.8),
        }, "P at the end of the run"],
      ]);
    }

    function say(answer, pair) {
      if (!pair) {
        stage.say(answer.finished ? "No pair is left: the KKT conditions hold within 0.001." : "The run ends here, after 400 pairs.");
        return;
      }
      const [i, j] = pair.rows;
      const equal = answer.points[i][2] === answer.points[j][2];
      const clipped = pair.raw === null || Math.abs(pair.after[1] - pair.raw) > 1e-9 * answer.C;
      stage.say(`Points ${i + 1} and ${j + 1} have ${equal ? "equal labels: the sum of their multipliers" : "unequal labels: the difference of their multipliers"} stays. `
        + (clipped ? "The free maximum lies outside the box, so the step ends at the wall." : "The free maximum lies inside: the step ends there."));
    }

    return {
      sketch() {
        points.draw(undefined);
      },
      draw(answer, values) {
        const step = Math.min(values.step, answer.pairs.length);
        const pair = answer.pairs[step];
        points.draw(multipliers(answer, step));
        drawLinks(answer, step);
        drawBox(answer, pair);
        drawAscent(answer, step);
        const dual = step ? answer.pairs[step - 1].dual : 0;
        const shown = [["dual", "D now", dual], ["pairs", "pairs of the run", answer.pairs.length],
          ["P", "P at its end", answer.primal], ["D", "D at its end", answer.dual], ["gap", "gap P − D at its end", answer.gap, shortNumber(answer.gap, 3)]];
        const own = pair ? [["L", "L", pair.L], ["H", "H", pair.H], ["raw", "free maximum", pair.raw], ["clipped", "clipped to", pair.after[1]]] : [];
        stage.numbers([...own, ...shown]);
        say(answer, pair);
      },
    };
  },
};
