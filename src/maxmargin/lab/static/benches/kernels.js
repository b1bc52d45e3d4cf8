// SPDX-License-Identifier: BSD-3-Clause
// Kernels: curved lines between points, the matrix behind them, and whether it is that of a kernel.

import { classColours, draw, heat, levelWay, shortNumber, unpacked } from "../drawing.js";
import { kernelControls } from "../kernel_controls.js";
import { CLASSES, dataControl, PlanePoints, POINTS_HELP, TOOL } from "../points.js";

export default {
  initial: {
    data: "moons", points: [], tool: "move", C: 1,
    kernel: "gaussian", gamma: 1, degree: 3, coef0: 1, combine: "alone", kernel2: "linear", gamma2: 1, degree2: 2, coef02: 1,
  },

  controls: [
    TOOL,
    dataControl({ moons: "moons", rings: "rings", xor: "XOR", spiral: "spiral", overlapping: "overlapping clouds", outlier: "an outlier", many: "200 points" }),
    { kind: "choice", name: "combine", label: "Kernels", options: { alone: "one", sum: "sum of two", product: "product of two" } },
    ...kernelControls("", "Kernel", () => true),
    ...kernelControls("2", "Second kernel", (values) => values.combine !== "alone"),
    { kind: "range", name: "C", label: "C, the price of slack", from: -3, to: 4, step: 0.05, log: true },
  ],

  asks: ({ tool, ...values }) => values,

  build(stage) {
    const plane = stage.plot({ title: `Points in the plane, with their scores. ${POINTS_HELP}`, x: [-4, 4], y: [-3, 3], xLabel: "x₁", yLabel: "x₂", equal: true, share: 1.9 });
    const column = stage.column(1);
    const matrix = stage.plot({ title: "The kernel matrix as a heat map, rows by class and then from left to right", x: [0, 1], y: [0, 1], equal: true, bare: true }, column);
    const witness = stage.plot({ title: "The vector v of the smallest eigenvalue", x: [0, 1], y: [-1, 1], ratio: 0.3, bare: true }, column);
    const [colours, levels] = [plane.layer(), plane.layer()];
    const [cells, borders] = [matrix.layer(), matrix.layer()];
    const bars = witness.layer();
    const points = new PlanePoints(stage, plane, { choose: () => say(stage.answer), most: 200 });
    stage.legend([
      ["triangle", "var(--plus)", "class +1, size: weight α"], ["circle", "var(--minus)", "class −1"], ["open circle", "var(--minus)", "α = 0"],
      ["line", "var(--ink)", "score 0"], ["dashes", "var(--ink)", "score ±1, the margin"],
      ["area", "var(--plus)", "score, or matrix value, above 0"], ["area", "var(--minus)", "below 0"],
    ]);

    function drawScores(answer) {
      const values = unpacked(answer.scores);
      const colour = classColours(stage.section, 0.45);
      draw(colours, [["image", heat(plane, values, (score) => colour(score / 2), [-2, 2])]]);
      const line = { stroke: "var(--ink)", fill: "none" };
      draw(levels, [
        ["path", { d: levelWay(plane, values, 0), "stroke-width": 2.5, ...line }],
        ["path", { d: levelWay(plane, values, 1) + levelWay(plane, values, -1), "stroke-width": 1.2, opacity: 0.75, "stroke-dasharray": "2 2", ...line }],
      ]);
    }

    /** The first row is at the top; lines part the classes. */
    function drawMatrix(answer) {
      const values = unpacked(answer.matrix).reverse();
      const most = Math.max(Math.abs(answer.matrix.low), Math.abs(answer.matrix.high), 1e-12);
      const colour = classColours(stage.section, 1);
      draw(cells, [["image", heat(matrix, values, (value) => colour(value / most), [-most, most], false)]]);
      const share = answer.negative_share;
      const line = { stroke: "var(--ink)", "stroke-width": 1, "stroke-dasharray": "4 3", fill: "none" };
      draw(borders, [
        ["path", { d: matrix.way([[share, 0], [share, 1]]) + matrix.way([[0, 1 - share], [1, 1 - share]]), ...line }],
      ]);
    }

    function drawWitness({ witness: vector, valid }) {
      const most = Math.max(...vector.map(Math.abs), 1e-12);
      witness.range([0, vector.length], [-1.1 * most, 1.1 * most]);
      draw(bars, vector.map((value, place) => {
        const [x, top] = witness.at([place + 0.1, Math.max(value, 0)]);
        const [end, low] = witness.at([place + 0.9, Math.min(value, 0)]);
        return ["rect", { x, y: top, width: end - x, height: low - top, fill: valid ? "var(--faint)" : "var(--wrong)" }];
      }));
    }

    function say(answer) {
      if (!answer) return;
      const index = points.handles.chosen;
      const chosen = index < answer.alpha.length
        ? ` The chosen point: ${CLASSES[answer.classes[index]]}, weight α = ${shortNumber(answer.alpha[index])}.` : "";
      const moved = answer.code.includes("ChiSquared") ? " (It takes no negative values, so it sees the plane from its lower left corner.)" : "";
      stage.say(`${answer.code}.${moved} ${answer.verdict} The bars below the matrix are the vector v of v'Kv.${chosen}`);
    }

    return {
      sketch(values, answer) {
        points.draw(answer);
      },
      draw(answer) {
        drawScores(answer);
        drawMatrix(answer);
        drawWitness(answer);
        points.draw(answer);
        stage.numbers([
          ["P", "P, the value of this machine", answer.primal],
          ["D", answer.proven ? "D, none is below" : "D, no bound here", answer.dual],
          ["gap", "gap P − D", answer.gap, answer.proven ? shortNumber(answer.gap, 3) : "not proven"],
          ["b", "b", answer.b],
          ["support vectors", "support vectors", answer.alpha.filter((value) => value > 0).length],
          ["accuracy", "right on these points", answer.accuracy, `${shortNumber(100 * answer.accuracy, 3)} %`],
          ["smallest eigenvalue", "smallest eigenvalue of K", answer.smallest_eigenvalue, shortNumber(answer.smallest_eigenvalue, 3)],
          ["mercer", "Mercer's condition", answer.valid ? "holds here" : "fails"],
        ]);
        say(answer);
      },
    };
  },
};
