// SPDX-License-Identifier: BSD-3-Clause
// The drawing kit: plots with axes, handles that mouse, finger and keyboard move, level lines and heat.
//
// Colours are variables of the style sheet, var(--minus) and so on, so that light and dark need no redrawing.

const NAMESPACE = "http://www.w3.org/2000/svg";
let plots = 0;

/** A new SVG element. */
export function svg(tag, attributes = {}) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A new HTML element with attributes and children. */
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const drawn = new WeakMap(); // the attributes of an element, as they were last drawn

/** Make a group hold these items, [tag, attributes, text?], with as few changes as can be. */
export function draw(group, items) {
  const { children } = group;
  items.forEach(([tag, attributes, text], place) => {
    let element = children[place];
    if (element?.tagName !== tag) {
      const fresh = svg(tag);
      if (element) element.replaceWith(fresh);
      else group.append(fresh);
      element = fresh;
    }
    const before = drawn.get(element) ?? {};
    for (const name in before) if (!(name in attributes)) element.removeAttribute(name);
    for (const name in attributes) {
      if (before[name] !== attributes[name]) element.setAttribute(name, attributes[name]);
    }
    drawn.set(element, attributes);
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  });
  while (children.length > items.length) group.lastChild.remove();
}

/** A number for people: four digits, no noise. */
export function shortNumber(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const words = size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 2).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(digits)));
  return words.replace("e+", "e").replaceAll("-", "−");
}

/** A rectangle of the plane with axes, in an SVG that fills the width it is given. */
export class Plot {
  #layers;
  #axes;
  unit = 16; // pixels: the size of type

  /**
   * Options: title (for screen readers), x and y ([low, high] each), xLabel, yLabel, equal (one unit is
   * as long in both directions), ratio (height over width where it is not), logX and logY, xTicks and yTicks
   * (false: none), bare (no axes), share (of the width, where plots with shares lie side by side).
   */
  constructor(parent, options) {
    this.options = { ratio: 0.6, equal: false, ...options };
    this.x = options.x;
    this.y = options.y;
    const clip = `inside-${++plots}`;
    this.frame = html("div", { class: options.share ? "plot shared" : "plot" });
    if (options.share) this.frame.style.flexGrow = options.share;
    this.svg = svg("svg", { role: "group", "aria-label": options.title });
    this.clip = svg("rect");
    const clipPath = svg("clipPath", { id: clip });
    clipPath.append(this.clip);
    this.#axes = svg("g", { "aria-hidden": "true" });
    this.#layers = svg("g", { "clip-path": `url(#${clip})` });
    this.over = svg("g");
    this.svg.append(clipPath, this.#axes, this.#layers, this.over);
    this.frame.append(this.svg);
    parent.append(this.frame);
    this.onresize = () => {};
    this.#measure();
    new ResizeObserver(() => {
      if (this.#measure()) this.onresize();
    }).observe(this.frame);
  }

  /** A group that is drawn above the earlier ones, cut off at the frame. */
  layer() {
    const group = svg("g");
    this.#layers.append(group);
    return group;
  }

  /** Show another part of the plane. */
  range(x, y) {
    if (String([x, y]) === String([this.x, this.y])) return;
    [this.x, this.y] = [x, y];
    this.#layout();
  }

  /** Pixels of a point of the plane, within the SVG. */
  at([x, y]) {
    return [this.left + this.inner * this.#share(x, this.x, this.options.logX),
      this.top + this.depth * (1 - this.#share(y, this.y, this.options.logY))];
  }

  /** The point of the plane under a pointer. */
  from(event) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / this.zoom, (event.clientY - box.top) / this.zoom];
    return [this.#value((x - this.left) / this.inner, this.x, this.options.logX),
      this.#value(1 - (y - this.top) / this.depth, this.y, this.options.logY)];
  }

  /** Pixels for a length of the plane. */
  length(value) {
    return (value * this.inner) / (this.x[1] - this.x[0]);
  }

  /** The length of the plane from corner to corner. */
  get across() {
    return Math.hypot(this.x[1] - this.x[0], this.y[1] - this.y[0]);
  }

  /** The attribute d of a way through points of the plane. */
  way(points, closed = false) {
    if (!points.length) return "";
    const pixels = points.map((point) => this.at(point).map((value) => value.toFixed(1)).join(" "));
    return `M${pixels.join("L")}${closed ? "Z" : ""}`;
  }

  #share(value, [low, high], log) {
    return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  }

  #value(share, [low, high], log) {
    return log ? low * (high / low) ** share : low + share * (high - low);
  }

  /** Whether the size has changed. */
  #measure() {
    const { clientWidth } = this.frame;
    // Where type is larger than usual, so are points and lines: all is drawn for type of 16 pixels.
    this.zoom = parseFloat(getComputedStyle(this.frame).fontSize) / this.unit;
    const measured = [clientWidth, this.zoom, window.innerHeight].join();
    if (measured === this.measured || !clientWidth) return false;
    this.measured = measured;
    this.available = clientWidth / this.zoom;
    this.#layout();
    return true;
  }

  #layout() {
    const { unit, options } = this;
    this.left = options.yLabel ? 3.9 * unit : options.bare ? 1 : 2.6 * unit;
    this.top = options.bare ? 1 : 0.7 * unit;
    const right = options.bare ? 1 : 0.9 * unit;
    const bottom = options.bare ? 1 : options.xLabel ? 3.1 * unit : options.xTicks === false ? 0.5 * unit : 1.8 * unit;
    const span = ([low, high]) => high - low;
    const ratio = options.equal ? span(this.y) / span(this.x) : options.ratio;
    const deepest = Math.max(16 * unit, (0.7 * window.innerHeight) / this.zoom);
    this.inner = this.available - this.left - right;
    this.depth = options.equal ? this.inner * ratio : Math.max(this.inner * ratio, 6 * unit);
    if (this.depth > deepest) {
      if (options.equal) this.inner *= deepest / this.depth;
      this.depth = deepest;
    }
    const width = this.left + this.inner + right;
    const height = this.top + this.depth + bottom;
    const size = { width: width * this.zoom, height: height * this.zoom, viewBox: `0 0 ${width} ${height}` };
    for (const [name, value] of Object.entries(size)) {
      this.svg.setAttribute(name, value);
    }
    const box = { x: this.left, y: this.top, width: this.inner, height: this.depth };
    for (const [name, value] of Object.entries(box)) this.clip.setAttribute(name, value);
    this.#drawAxes(box);
  }

  #drawAxes(box) {
    const { unit, options } = this;
    const items = [["rect", { ...box, fill: "var(--paper)", stroke: "var(--line)" }]];
    const small = { "font-size": 0.8 * unit, fill: "var(--faint)" };
    const end = this.top + this.depth;
    if (!options.bare) {
      for (const value of options.xTicks === false ? [] : ticks(this.x, this.inner / (3.2 * unit), options.logX)) {
        const [x] = this.at([value, this.y[1]]);
        items.push(["line", { x1: x, x2: x, y1: this.top, y2: end, stroke: "var(--grid)" }]);
        items.push(["text", { x, y: end + 1.1 * unit, "text-anchor": "middle", ...small }, tickWords(value)]);
      }
      for (const value of options.yTicks === false ? [] : ticks(this.y, this.depth / (2.6 * unit), options.logY)) {
        const [, y] = this.at([this.x[0], value]);
        items.push(["line", { x1: this.left, x2: this.left + this.inner, y1: y, y2: y, stroke: "var(--grid)" }]);
        const place = { x: this.left - 0.4 * unit, y: y + 0.28 * unit, "text-anchor": "end" };
        items.push(["text", { ...place, ...small }, tickWords(value)]);
      }
    }
    const words = { "font-size": 0.9 * unit, fill: "var(--ink)", "text-anchor": "middle" };
    if (options.xLabel) {
      items.push(["text", { x: this.left + this.inner / 2, y: end + 2.5 * unit, ...words }, options.xLabel]);
    }
    if (options.yLabel) {
      const y = this.top + this.depth / 2;
      const turn = `rotate(-90 ${unit} ${y})`;
      items.push(["text", { x: unit, y, transform: turn, ...words }, options.yLabel]);
    }
    draw(this.#axes, items);
    for (const text of this.#axes.querySelectorAll("text")) text.setAttribute("font-family", "system-ui, sans-serif");
  }
}

/** Round values between low and high, at most about so many. */
export function ticks([low, high], most, log = false) {
  if (log) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first) / Math.max(1, most)));
    return Array.from({ length: Math.max(0, Math.floor((last - first) / step) + 1) }, (_, k) => 10 ** (first + k * step));
  }
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999);
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) values.push(k * step);
  return values;
}

function tickWords(value) {
  return shortNumber(Math.abs(value) < 1e-12 ? 0 : value, 6);
}

const SHAPES = {
  circle: (r) => `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`,
  triangle: (r) => `M0 ${-1.25 * r}L${1.15 * r} ${0.8 * r}L${-1.15 * r} ${0.8 * r}Z`,
  square: (r) => `M${-0.9 * r} ${-0.9 * r}H${0.9 * r}V${0.9 * r}H${-0.9 * r}Z`,
  diamond: (r) => `M0 ${-1.2 * r}L${1.2 * r} 0L0 ${1.2 * r}L${-1.2 * r} 0Z`,
  cross: (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`,
};

/** The attribute d of a shape around (0, 0). */
export function shape(name, radius) {
  return SHAPES[name](radius);
}

/** The item of a shape at a point of the plane. */
export function spot(plot, at, kind, radius, attributes) {
  const [x, y] = plot.at(at);
  return ["path", { d: shape(kind, radius), transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, ...attributes }];
}

/** The attributes of words on a plot, so many times as large as its type. */
export function letters(plot, size) {
  return { "font-size": size * plot.unit, fill: "var(--ink)", "font-family": "system-ui, sans-serif" };
}

/** The shape and colour of a label: circles are minus, triangles are plus. */
export function labelStyle(label) {
  return label > 0 ? { shape: "triangle", colour: "var(--plus)" } : { shape: "circle", colour: "var(--minus)" };
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const FINGER = 14; // pixels around a handle that a finger may miss it by

/**
 * Things to move on a plot. With the keyboard, Tab comes to the chosen one, Page Up and Page Down choose
 * another, arrows move it, with Shift by less.
 *
 * Options: move(index, [x, y]), done(), choose(index), key(index, name) for other keys: true if it was
 * meant; empty([x, y]) for a click on no handle.
 */
export class Handles {
  #items = [];
  #drawn = [];
  #group;

  constructor(plot, options) {
    this.plot = plot;
    this.options = options;
    this.chosen = 0;
    this.#group = svg("g");
    plot.over.append(this.#group);
    const { svg: surface } = plot;
    surface.addEventListener("pointerdown", (event) => this.#press(event));
    surface.addEventListener("touchstart", (event) => {
      if (this.#index(event.target) >= 0) event.preventDefault(); // the point moves, and not the page
    }, { passive: false });
    surface.addEventListener("keydown", (event) => this.#key(event));
    surface.addEventListener("focusin", (event) => this.#focus(event));
    surface.addEventListener("click", (event) => {
      if (this.#index(event.target) < 0 && !this.dragged) options.empty?.(plot.from(event));
    });
  }

  /** Show these: at ([x, y]), shape, radius, fill, stroke, mark (another shape on it), words (its name). */
  draw(items) {
    this.#items = items;
    this.chosen = Math.min(this.chosen, Math.max(0, items.length - 1));
    while (this.#group.children.length > items.length) this.#group.lastChild.remove();
    this.#drawn.length = this.#group.children.length;
    while (this.#group.children.length < items.length) {
      this.#group.append(svg("g", { class: "handle", role: "button", "aria-roledescription": "movable point" }));
    }
    items.forEach((item, index) => {
      const group = this.#group.children[index];
      const [x, y] = this.plot.at(item.at);
      const whole = JSON.stringify([item, x, y, index === this.chosen]);
      if (this.#drawn[index] === whole) return; // most stay where they are
      this.#drawn[index] = whole;
      group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      group.setAttribute("aria-label", item.words);
      group.setAttribute("tabindex", index === this.chosen ? 0 : -1);
      const { radius, fill = "var(--ink)", stroke = "var(--ink)" } = item;
      const parts = [["path", { class: "reach", d: shape("circle", radius + FINGER), fill: "transparent" }]];
      if (index === this.chosen && this.options.showChosen !== false) {
        parts.push(["path", { d: shape("circle", radius + 5), fill: "none", stroke: "var(--ink)", "stroke-dasharray": "3 2.5" }]);
      }
      parts.push(["path", {
        d: shape(item.shape ?? "circle", radius), fill, stroke, "stroke-width": item.width ?? 1.5, "stroke-linejoin": "round",
      }]);
      if (item.mark) {
        parts.push(["path", { d: shape(item.mark, 0.5 * radius), fill: "none", stroke: "var(--paper)", "stroke-width": 2 }]);
      }
      draw(group, parts);
    });
  }

  choose(index) {
    this.chosen = index;
    this.options.choose?.(index);
    this.draw(this.#items);
  }

  #index(target) {
    return [...this.#group.children].indexOf(target.closest?.(".handle"));
  }

  /** Of handles that lie close together, the nearest. */
  #nearest(event, found) {
    const [left, top] = this.plot.at(this.plot.from(event));
    const away = this.#items.map((item) => {
      const [x, y] = this.plot.at(item.at);
      return Math.hypot(x - left, y - top);
    });
    return away.reduce((best, value, index) => (value < away[best] ? index : best), found);
  }

  #press(event) {
    this.dragged = false; // after a drag by finger no click follows
    let index = this.#index(event.target);
    if (index < 0 || event.button) return;
    index = this.#nearest(event, index);
    if (this.options.press?.(index)) return;
    event.preventDefault();
    this.choose(index);
    this.#group.children[index].focus({ preventScroll: true });
    const { svg: surface } = this.plot;
    const begin = this.plot.from(event);
    const origin = this.#items[index].at;
    surface.setPointerCapture(event.pointerId);
    const move = (moved) => {
      const now = this.plot.from(moved);
      this.dragged = true;
      this.options.move(index, this.#inside([origin[0] + now[0] - begin[0], origin[1] + now[1] - begin[1]]));
    };
    const end = () => {
      surface.removeEventListener("pointermove", move);
      surface.removeEventListener("pointerup", end);
      surface.removeEventListener("pointercancel", end);
      this.options.done?.();
    };
    surface.addEventListener("pointermove", move);
    surface.addEventListener("pointerup", end);
    surface.addEventListener("pointercancel", end);
  }

  #inside([x, y]) {
    const within = (value, [low, high]) => Math.min(high, Math.max(low, value));
    return [within(x, this.plot.x), within(y, this.plot.y)];
  }

  #focus(event) {
    const index = this.#index(event.target);
    if (index >= 0 && index !== this.chosen) this.choose(index);
  }

  #key(event) {
    const index = this.#index(event.target);
    if (index < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const turn = { PageDown: 1, PageUp: -1 }[event.key];
    if (step) {
      const size = ((this.plot.x[1] - this.plot.x[0]) / 80) * (event.shiftKey ? 0.2 : 1);
      const [x, y] = this.#items[index].at;
      this.options.move(index, this.#inside([x + size * step[0], y + size * step[1]]));
      this.options.done?.();
    } else if (turn) {
      const next = (index + turn + this.#items.length) % this.#items.length;
      this.choose(next);
      this.#group.children[next].focus({ preventScroll: true });
    } else if (!this.options.key?.(index, event.key)) return;
    event.preventDefault();
  }

  /** Give the keyboard to the chosen one. */
  focus() {
    this.#group.children[this.chosen]?.focus({ preventScroll: true });
  }
}

/** The items of an arrow from one point of the plane to another. */
export function arrow(plot, from, to, colour, width = 1.5) {
  const [x1, y1] = plot.at(from);
  const [x2, y2] = plot.at(to);
  const long = Math.hypot(x2 - x1, y2 - y1);
  if (long < 1) return [];
  const [ux, uy] = [(x2 - x1) / long, (y2 - y1) / long];
  const head = Math.min(7, long);
  const corner = (side) => `${x2 - head * ux + 0.45 * side * head * uy} ${y2 - head * uy - 0.45 * side * head * ux}`;
  return [
    ["line", { x1, y1, x2, y2, stroke: colour, "stroke-width": width }],
    ["path", { d: `M${x2} ${y2}L${corner(1)}L${corner(-1)}Z`, fill: colour }],
  ];
}

/** Both ends, outside the plot, of the line <w, x> + b = level; nothing where w is 0. */
export function lineOf(plot, w, b, level = 0) {
  const squared = w[0] ** 2 + w[1] ** 2;
  if (squared < 1e-18) return [];
  const middle = [(plot.x[0] + plot.x[1]) / 2, (plot.y[0] + plot.y[1]) / 2];
  const away = (level - b - w[0] * middle[0] - w[1] * middle[1]) / squared;
  const foot = [middle[0] + away * w[0], middle[1] + away * w[1]];
  const far = plot.across / Math.sqrt(squared);
  return [[foot[0] - far * w[1], foot[1] + far * w[0]], [foot[0] + far * w[1], foot[1] - far * w[0]]];
}

/** The items of the line <w, x> + b = 0 and of its margins. */
export function lineAndMargins(plot, w, b) {
  const dashes = { stroke: "var(--ink)", "stroke-width": 1.3, "stroke-dasharray": "7 4" };
  const at = (level) => plot.way(lineOf(plot, w, b, level));
  return [["path", { d: at(0), stroke: "var(--ink)", "stroke-width": 2.5 }], ["path", { d: at(1), ...dashes }], ["path", { d: at(-1), ...dashes }]];
}

/**
 * Where values on a grid cross a level, as ways of points of the plane. values[row][column], rows from low
 * y to high y, over the whole of [x] and [y].
 */
export function levelLines(values, level, [x0, x1], [y0, y1]) {
  const [rows, columns] = [values.length, values[0].length];
  // The sides of the cells are numbered, those along x first; a line crosses from side to side.
  const upright = rows * columns;
  const next = new Map();
  const join = (side, other) => {
    if (next.has(side)) next.get(side).push(other);
    else next.set(side, [other]);
  };
  for (let row = 0; row + 1 < rows; row++) {
    const [below, above] = [values[row], values[row + 1]];
    for (let column = 0; column + 1 < columns; column++) {
      const corners = [below[column] < level, below[column + 1] < level, above[column + 1] < level, above[column] < level];
      if (corners[0] === corners[1] && corners[1] === corners[2] && corners[2] === corners[3]) continue;
      const place = row * columns + column;
      const sides = [place, upright + place + 1, place + columns, upright + place];
      const crossed = sides.filter((_, side) => corners[side] !== corners[(side + 1) % 4]);
      for (let k = 0; k + 1 < crossed.length; k += 2) {
        join(crossed[k], crossed[k + 1]);
        join(crossed[k + 1], crossed[k]);
      }
    }
  }
  const point = (side) => {
    const along = side < upright;
    const place = along ? side : side - upright;
    const [row, column] = [Math.floor(place / columns), place % columns];
    const first = values[row][column] - level;
    const second = (along ? values[row][column + 1] : values[row + 1][column]) - level;
    const share = first / (first - second);
    return [x0 + ((x1 - x0) * (column + (along ? share : 0))) / (columns - 1), y0 + ((y1 - y0) * (row + (along ? 0 : share))) / (rows - 1)];
  };
  // Ways that end at an edge begin there; what is left is closed.
  const ends = [...next.keys()].filter((side) => next.get(side).length === 1);
  const ways = [];
  for (const start of [...ends, ...next.keys()]) {
    if (!next.has(start)) continue;
    const way = [];
    for (let side = start; side !== undefined;) {
      way.push(point(side));
      const others = next.get(side) ?? [];
      next.delete(side);
      side = others.find((other) => next.has(other));
      if (side === undefined && way.length > 2 && others.includes(start)) way.push(way[0]);
    }
    ways.push(way);
  }
  return ways;
}

/** The attribute d of level lines on a plot. */
export function levelWay(plot, values, level) {
  return levelLines(values, level, plot.x, plot.y).map((way) => plot.way(way)).join("");
}

/** The colour of a variable of the style sheet as [red, green, blue]. */
export function colourOf(name, element = document.body) {
  const words = getComputedStyle(element).getPropertyValue(name).trim();
  return [1, 3, 5].map((place) => parseInt(words.slice(place, place + 2), 16));
}

const SHADES = 256; // more, the eye does not tell apart

/**
 * The attributes of an image of values on a grid over the whole plot, as for levelLines. colour(value)
 * gives [red, green, blue], for values from low to high; those beyond look like these two.
 */
export function heat(plot, values, colour, [low, high], smooth = true) {
  const [rows, columns] = [values.length, values[0].length];
  const shades = Array.from({ length: SHADES }, (_, k) => colour(low + ((high - low) * k) / (SHADES - 1)));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const { data } = context.createImageData(columns, rows);
  let place = 0;
  for (let row = rows - 1; row >= 0; row--) {
    for (const value of values[row]) {
      const share = Math.round(((value - low) / (high - low)) * (SHADES - 1));
      const [red, green, blue] = shades[Math.min(SHADES - 1, Math.max(0, share))];
      data[place++] = red;
      data[place++] = green;
      data[place++] = blue;
      data[place++] = 255;
    }
  }
  context.putImageData(new ImageData(data, columns), 0, 0);
  // Values belong to the middles of pixels, so that half a pixel sticks out on every side.
  const [dx, dy] = smooth ? [plot.inner / (columns - 1) / 2, plot.depth / (rows - 1) / 2] : [0, 0];
  return {
    x: plot.left - dx, y: plot.top - dy, width: plot.inner + 2 * dx, height: plot.depth + 2 * dy,
    href: canvas.toDataURL(), preserveAspectRatio: "none",
    "image-rendering": smooth ? "auto" : "pixelated",
  };
}

/** The matrix that packed.py has packed: values[row][column]. */
export function unpacked({ columns, low, high, steps }) {
  const text = atob(steps);
  const rows = [];
  for (let start = 0; start < text.length; start += 2 * columns) {
    const row = new Float64Array(columns);
    for (let k = 0; k < columns; k++) {
      const place = start + 2 * k;
      row[k] = low + ((high - low) * (text.charCodeAt(place) + 256 * text.charCodeAt(place + 1))) / 65535;
    }
    rows.push(row);
  }
  return rows;
}

/** From the colour of minus, at -1, over paper to that of plus, at 1; at most so strong. */
export function classColours(element, strength) {
  const [paper, plus, minus] = ["--paper", "--plus", "--minus"].map((name) => colourOf(name, element));
  return (share) => mixed(paper, share > 0 ? plus : minus, strength * Math.min(1, Math.abs(share)));
}

/** A mixture of two colours, the first where share is 0. */
export function mixed(first, second, share) {
  return first.map((value, k) => Math.round(value + share * (second[k] - value)));
}
