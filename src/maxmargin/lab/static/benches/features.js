// SPDX-License-Identifier: BSD-3-Clause
// Feature maps: the input space beside the feature space, where a plane separates what no line could.

import { classColours, draw, Handles, heat, labelStyle, levelWay, lineAndMargins, shortNumber, spot, unpacked } from "../drawing.js";
import { dataControl, PlanePoints, POINTS_HELP, TOOL } from "../points.js";

const NAMES = {
  identity: ["x₁", "x₂"], polar: ["r, the distance", "angle"], prototypes: ["nearness to the first", "nearness to the second"],
};
const isMap = (...names) => ({ map }) => names.includes(map);

export default {
  initial: {
    data: "rings", points: [], tool: "move", map: "lift", C: 10, prototypes: [[-1, 0.5], [1, -0.5]], gamma: 1, degree: 2, buckets: 4,
    pairs: 10, seed: 0, azimuth: 30, elevation: 20,
  },

  controls: [
    { kind: "choice", name: "map", label: "The map", options: {
      identity: "none", polar: "polar", lift: "lift to 3-D", prototypes: "prototypes", monomials: "monomials", buckets: "buckets", fourier: "Fourier" } },
    dataControl({ rings: "rings", moons: "moons", xor: "XOR", spiral: "spiral", overlapping: "overlapping clouds" }),
    { kind: "range", name: "azimuth", label: "Turn", from: 0, to: 360, step: 2, when: isMap("lift") },
    { kind: "range", name: "elevation", label: "Tilt", from: 0, to: 90, step: 1, when: isMap("lift") },
    { kind: "range", name: "gamma", label: "γ, how near is near", from: -1.5, to: 1.5, step: 0.05, log: true, when: isMap("prototypes", "fourier") },
    { kind: "range", name: "degree", label: "Degree", from: 1, to: 8, step: 1, when: isMap("monomials") },
    { kind: "range", name: "buckets", label: "Buckets of each column", from: 2, to: 12, step: 1, when: isMap("buckets") },
    { kind: "range", name: "pairs", label: "Pairs of features", from: 1, to: 200, step: 1, when: isMap("fourier") },
    { kind: "range", name: "seed", label: "Draw", from: 0, to: 20, step: 1, when: isMap("fourier") },
    { kind: "range", name: "C", label: "C, the price of slack", from: -2, to: 3, step: 0.1, log: true },
    TOOL,
  ],

  asks: ({ tool, azimuth, elevation, ...values }) => values,

  build(stage) {
    const plane = stage.plot({ title: `The points as they are. ${POINTS_HELP}`, x: [-4, 4], y: [-3, 3], xLabel: "x₁", yLabel: "x₂", equal: true, share: 1 });
    const space = stage.plot({ title: "The points in the feature space, and what separates them there", x: [-1, 1], y: [-1, 1], xLabel: " ", yLabel: " ", ratio: 0.75, share: 1 });
    const [colours, levels] = [plane.layer(), plane.layer()];
    const [behind, separating, images] = [space.layer(), space.layer(), space.layer()];
    const points = new PlanePoints(stage, plane, { most: 200 });
    const prototypes = new Handles(plane, {
      showChosen: false,
      move: (index, at) => {
        const moved = at.map((value) => Number(value.toFixed(3)));
        stage.state.set({ prototypes: stage.state.values.prototypes.map((each, place) => (place === index ? moved : each)) });
      },
      done: () => stage.state.commit(),
    });

    function drawPlane(answer, values) {
      const scores = unpacked(answer.scores);
      const colour = classColours(stage.section, 0.4);
      draw(colours, [["image", heat(plane, scores, (score) => colour(score / 2), [-2, 2])]]);
      const line = { stroke: "var(--ink)", fill: "none" };
      const items = [
        ["path", { d: levelWay(plane, scores, 0), "stroke-width": 2.5, ...line }],
        ["path", { d: levelWay(plane, scores, 1) + levelWay(plane, scores, -1), "stroke-width": 1.2, "stroke-dasharray": "2 2", ...line }],
      ];
      if (answer.exact_scores) items.push(["path", { d: levelWay(plane, unpacked(answer.exact_scores), 0), stroke: "var(--third)", fill: "none", "stroke-width": 2.5, "stroke-dasharray": "7 4" }]);
      draw(levels, items);
      drawPrototypes(values);
    }

    function drawPrototypes({ map, prototypes: places }) {
      prototypes.draw(map !== "prototypes" ? [] : places.map((at, index) => (
        { at, shape: "square", radius: 9, fill: "var(--third)", words: `Prototype ${index + 1} of 2, at ${at[0]}, ${at[1]}` })));
    }

    const mark = (place, label) => {
      const { shape: kind, colour } = labelStyle(label);
      return spot(space, place, kind, 5, { fill: "none", stroke: colour, "stroke-width": 1.8 });
    };

    function fitTo(places) {
      const [low, high] = [0, 1].map((axis) => {
        const along = places.map((place) => place[axis]);
        const [least, most] = [Math.min(...along), Math.max(...along)];
        const room = 0.08 * (most - least) || 0.5;
        return [least - room, most + room];
      });
      space.range(low, high);
    }

    function name(x, y) {
      Object.assign(space.options, { xLabel: x, yLabel: y });
    }

    /** A plane that is shown as it is, with the line in it. */
    function drawFlat({ images: places, points: list, w, b }, map) {
      name(...NAMES[map]);
      fitTo(places);
      draw(behind, []);
      draw(separating, lineAndMargins(space, w, b));
      draw(images, places.map((place, index) => mark(place, list[index][2])));
    }

    /** A space of many columns from the side: the plane is a line. */
    function drawSide({ images: places, points: list, w }) {
      name("distance from the plane", "where the points differ most");
      fitTo([...places, [-1.3 / w[0], places[0][1]], [1.3 / w[0], places[0][1]]]);
      draw(behind, []);
      draw(separating, lineAndMargins(space, [w[0], 0], 0));
      draw(images, places.map((place, index) => mark(place, list[index][2])));
    }

    /** Three columns, turned; the plane as a sheet over the points, those below it drawn before it. */
    function drawLift({ images: places, points: list, w, b }, { azimuth, elevation }) {
      name("turn and tilt it", "");
      const tall = Math.max(...places.map((place) => place[2]), 1);
      const [turn, tilt] = [azimuth, elevation].map((angle) => (angle * Math.PI) / 180);
      const wide = Math.max(...places.flatMap(([x, y]) => [Math.abs(x), Math.abs(y)]), 1);
      const seen = ([x, y, z]) => {
        const [across, deep] = [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)];
        return [across / wide, ((z / tall) * 1.6 - 0.8) * Math.cos(tilt) + (deep / wide) * Math.sin(tilt)];
      };
      space.range([-1.6, 1.6], [-1.45, 1.45]);
      const base = [[-wide, -wide, 0], [wide, -wide, 0], [wide, wide, 0], [-wide, wide, 0]];
      const posts = base.map(([x, y]) => space.way([seen([x, y, 0]), seen([x, y, tall])])).join("");
      draw(behind, [
        ["path", { d: space.way(base.map(seen), true), fill: "var(--grid)", stroke: "var(--line)" }],
        ["path", { d: posts, stroke: "var(--line)", "stroke-dasharray": "2 3" }],
      ]);
      const height = ([x, y]) => -(b + w[0] * x + w[1] * y) / w[2];
      const sheet = Math.abs(w[2]) < 1e-9 ? [] : base.map(([x, y]) => seen([x, y, height([x, y])]));
      const marks = places.map((place, index) => [place, mark(seen(place), list[index][2])]);
      const isBelow = ([place]) => place[2] < height(place);
      draw(separating, [
        ...marks.filter(isBelow).map((each) => each[1]),
        ["path", { d: space.way(sheet, true), fill: "var(--third)", "fill-opacity": 0.3, stroke: "var(--third)", "stroke-width": 1.5 }],
      ]);
      draw(images, marks.filter((each) => !isBelow(each)).map((each) => each[1]));
    }

    function say(answer, { map }) {
      const share = `${shortNumber(100 * answer.accuracy, 3)} % of the points`;
      if (map !== "fourier") {
        return stage.say(`One plane in a space of ${answer.columns} ${answer.columns === 1 ? "column" : "columns"} has ${share} on the right side.`);
      }
      return stage.say(`${answer.columns} random features have ${share} on the right side. What they prove of the exact kernel: `
        + `its best value lies between ${shortNumber(answer.lower, 5)} and ${shortNumber(answer.upper, 5)}; it is ${shortNumber(answer.exact, 5)}.`);
    }

    return {
      sketch(values, answer) {
        points.draw(answer);
        drawPrototypes(values);
      },
      draw(answer, values) {
        drawPlane(answer, values);
        points.draw(answer);
        if (values.map === "lift") drawLift(answer, values);
        else if (values.map in NAMES) drawFlat(answer, values.map);
        else drawSide(answer);
        stage.numbers([
          ["accuracy", "share on the right side", answer.accuracy], ["columns", "columns of the feature space", answer.columns],
          ["P", "P, the value of this plane", answer.primal], ["D", "D, no plane is below", answer.dual], ["gap", "gap P − D", answer.gap],
          ...(answer.exact_scores ? [["lower", "exact kernel, at least", answer.lower], ["upper", "exact kernel, at most", answer.upper], ["exact", "exact kernel, its value", answer.exact]] : []),
        ]);
        stage.legend([
          ["triangle", "var(--plus)", "class +1"], ["circle", "var(--minus)", "class −1"], ["line", "var(--ink)", "score 0"], ["dashes", "var(--ink)", "score ±1"],
          ...(values.map === "lift" ? [["area", "var(--third)", "the separating plane"]] : []),
          ...(values.map === "prototypes" ? [["square", "var(--third)", "prototypes: drag them"]] : []),
          ...(answer.exact_scores ? [["dashes", "var(--third)", "score 0 of the exact kernel"]] : []),
        ]);
        say(answer, values);
      },
    };
  },
};
