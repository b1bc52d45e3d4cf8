// SPDX-License-Identifier: BSD-3-Clause
// Bounds: what theory promises of Pegasos and of its regret, and what is measured.

import { draw, shortNumber, spot } from "../drawing.js";

const LEAST = 1e-6; // the smallest value that is drawn: a run may be at the optimum but for rounding

export default {
  initial: { data: "overlapping", lambda: 0.01, doublings: 5, seeds: 8, batch: 1 },

  controls: [
    { kind: "range", name: "lambda", label: "λ, of the regulariser", from: -3, to: -0.5, step: 0.1, log: true },
    { kind: "range", name: "doublings", label: "Length, in epochs", from: 1, to: 7, step: 1, words: (value) => String(2 ** value) },
    { kind: "range", name: "batch", label: "Rows of a step, k", from: 1, to: 20, step: 1 },
    { kind: "range", name: "seeds", label: "Runs", from: 1, to: 12, step: 1 },
    { kind: "choice", name: "data", label: "Points", options: { overlapping: "overlapping", clouds: "two clouds", outlier: "an outlier", xor: "XOR" } },
  ],

  build(stage) {
    const axes = { logX: true, logY: true, x: [10, 1000], y: [1e-3, 10], xLabel: "steps T", ratio: 1, share: 1 };
    const value = stage.plot({ ...axes, title: "Suboptimality of the mean of all iterates, and its bound", yLabel: "F(mean) − F*" });
    const regret = stage.plot({ ...axes, title: "Regret of one run, and its bound", yLabel: "regret" });
    const [measured, paid] = [value.layer(), regret.layer()];
    stage.legend([
      ["diamond", "var(--plus)", "the bound"], ["dashes", "var(--plus)", "sharper: from the subgradients met"],
      ["line", "var(--faint)", "single runs"], ["circle", "var(--minus)", "measured"],
    ]);

    const floor = (heights) => heights.map((height) => Math.max(height, LEAST));
    const curve = (plot, steps, heights, attributes) =>
      ["path", { d: plot.way(floor(heights).map((height, k) => [steps[k], height])), fill: "none", ...attributes }];
    const marks = (plot, steps, heights, kind, fill) => floor(heights).map((height, k) => spot(plot, [steps[k], height], kind, 5, { fill }));

    function fitRange(plot, steps, ...all) {
      const heights = floor(all.flat());
      plot.range([steps[0] / 1.3, steps.at(-1) * 1.3], [Math.min(...heights) / 2, Math.max(...heights) * 2]);
    }

    return {
      draw(answer) {
        const { steps, off, mean, bound } = answer;
        fitRange(value, steps, off.flat(), bound);
        draw(measured, [
          ...off.map((run) => curve(value, steps, run, { stroke: "var(--faint)" })),
          curve(value, steps, bound, { stroke: "var(--plus)", "stroke-width": 2.5 }), ...marks(value, steps, bound, "diamond", "var(--plus)"),
          curve(value, steps, mean, { stroke: "var(--minus)", "stroke-width": 2.5 }), ...marks(value, steps, mean, "circle", "var(--minus)"),
        ]);
        fitRange(regret, steps, answer.regret, answer.regret_bound);
        draw(paid, [
          curve(regret, steps, answer.regret_bound, { stroke: "var(--plus)", "stroke-width": 2.5 }), ...marks(regret, steps, answer.regret_bound, "diamond", "var(--plus)"),
          curve(regret, steps, answer.sharp_bound, { stroke: "var(--plus)", "stroke-width": 1.5, "stroke-dasharray": "6 4" }),
          curve(regret, steps, answer.regret, { stroke: "var(--minus)", "stroke-width": 2.5 }), ...marks(regret, steps, answer.regret, "circle", "var(--minus)"),
        ]);
        const last = (list) => list.at(-1);
        stage.numbers([
          ["T", "steps T", last(steps)], ["measured", "F(mean) − F*, mean of the runs", last(mean)], ["bound", "its bound", last(bound)],
          ["regret", "regret of the first run", last(answer.regret)], ["regret_bound", "its bound", last(answer.regret_bound)], ["best", "F*", answer.best],
        ]);
        stage.say(`After ${last(steps)} steps the bound is ${shortNumber(last(bound) / Math.max(last(mean), LEAST), 2)} times what is measured, `
          + `and the regret is ${shortNumber((100 * last(answer.regret)) / last(answer.regret_bound), 2)} % of what theory allows.`);
      },
    };
  },
};
