// SPDX-License-Identifier: BSD-3-Clause
// The controls of a bench, built from what it says of them, and kept in step with its state.
//
// { kind: "range", name, label, from, to, step, log, infinite }   a slider; log: of powers of ten, whose
//                                               exponents are from, to and step; infinite: the words for a
//                                               last place beyond `to`, where the value is Infinity
// { kind: "choice", name, label, options: { value: words } }
// { kind: "segments", name, label, options }    the same side by side, for few
// { kind: "check", name, label }
// { kind: "button", label, press(stage) }
// { kind: "player", name, label, last(answer), seconds }   steps of a run: back, on, play; `last` is the
//                                               number of the last one, `seconds` the time of the whole
// Every kind may have when(values): whether it is shown, and hint: words for who wonders.

import { html, shortNumber } from "./drawing.js";

let controls = 0;

/** Build all into the root; returns update(values), to be called when the state has changed. */
export function buildControls(root, list, stage) {
  const updates = list.map((control) => {
    const { element, update } = KINDS[control.kind](control, stage, `control-${++controls}`);
    if (control.hint) element.title = control.hint;
    element.dataset.control = control.name ?? control.label;
    root.append(element);
    return (values, answer) => {
      element.hidden = control.when ? !control.when(values) : false;
      update(values, answer);
    };
  });
  return (values, answer) => updates.forEach((update) => update(values, answer));
}

const KINDS = { range, choice, segments, check, button, player };

function range({ name, label, from, to, step, log, infinite, words }, { state }, id) {
  const places = Math.round((to - from) / step);
  const last = infinite ? places + 1 : places;
  const input = html("input", { type: "range", id, min: 0, max: last, step: 1 });
  const output = html("output", { for: id });
  const valueAt = (place) => {
    if (place > places) return Infinity;
    const value = Number((from + place * step).toFixed(10));
    return log ? Number((10 ** value).toPrecision(3)) : value;
  };
  const placeOf = (value) => (value === Infinity ? last : Math.round(((log ? Math.log10(value) : value) - from) / step));
  input.addEventListener("input", () => state.set({ [name]: valueAt(Number(input.value)) }));
  input.addEventListener("change", () => state.commit());
  const update = (values) => {
    const shown = values[name] === Infinity && infinite ? infinite : (words?.(values[name]) ?? shortNumber(values[name], 3));
    input.value = placeOf(values[name]);
    input.setAttribute("aria-valuetext", shown);
    output.textContent = shown;
  };
  return { element: html("div", { class: "control range" }, html("label", { for: id }, label), output, input), update };
}

function choice({ name, label, options, patch }, { state }, id) {
  const input = html("select", { id });
  for (const [value, words] of Object.entries(options)) input.append(html("option", { value }, words));
  input.addEventListener("change", () => state.change({ ...patch, [name]: input.value }));
  const update = (values) => (input.value = values[name]);
  return { element: html("div", { class: "control" }, html("label", { for: id }, label), input), update };
}

function segments({ name, label, options }, { state }, id) {
  const group = html("div", { class: "segments", role: "radiogroup", "aria-label": label });
  const inputs = Object.entries(options).map(([value, words]) => {
    const input = html("input", { type: "radio", name: id, value });
    input.addEventListener("change", () => state.change({ [name]: value }));
    group.append(html("label", {}, input, html("span", {}, words)));
    return input;
  });
  const update = (values) => inputs.forEach((input) => (input.checked = input.value === values[name]));
  return { element: html("div", { class: "control wide" }, html("span", { class: "label" }, label), group), update };
}

function check({ name, label }, { state }, id) {
  const input = html("input", { type: "checkbox", id });
  input.addEventListener("change", () => state.change({ [name]: input.checked }));
  const update = (values) => (input.checked = values[name]);
  return { element: html("div", { class: "control check" }, input, html("label", { for: id }, label)), update };
}

function button({ label, press }, stage) {
  const element = html("button", { type: "button" }, label);
  element.addEventListener("click", () => press(stage));
  return { element, update: () => {} };
}

const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const MOST_FRAMES = 1000;

function player({ name, label, last, seconds = 8 }, stage, id) {
  const { state } = stage;
  const input = html("input", { type: "range", id, min: 0, max: 0, step: 1 });
  const output = html("output", { for: id });
  const press = (words, title, act) => {
    const button = html("button", { type: "button", title, "aria-label": title }, words);
    button.addEventListener("click", act);
    return button;
  };
  let frame;
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = undefined;
    play.textContent = "Play";
    play.setAttribute("aria-label", "Play");
    state.commit();
  };
  const go = (step) => {
    if (frame !== undefined) stop();
    state.change({ [name]: Math.min(Number(input.max), Math.max(0, step)) });
  };
  /** From where it stands to the end, from the start if it stands there; no frame shows a step twice. */
  const run = () => {
    const end = Number(input.max);
    const first = state.values[name] >= end ? 0 : state.values[name];
    let begun;
    let before;
    play.textContent = "Pause";
    play.setAttribute("aria-label", "Pause");
    const show = (now) => {
      begun ??= now;
      if (before !== undefined) {
        if (performance.getEntriesByName("frame").length >= MOST_FRAMES) performance.clearMeasures("frame");
        performance.measure("frame", { start: before, end: now });
      }
      before = now;
      const step = Math.min(end, first + Math.floor(((now - begun) / 1000) * Math.max(2, end / seconds)));
      if (step !== state.values[name]) state.set({ [name]: step });
      if (step >= end || !input.isConnected) stop();
      else frame = requestAnimationFrame(show);
    };
    frame = requestAnimationFrame(show);
  };
  const play = press("Play", "Play", () => (frame === undefined ? run() : stop()));
  input.addEventListener("input", () => state.set({ [name]: Number(input.value) }));
  input.addEventListener("change", () => state.commit());
  const buttons = html("div", { class: "buttons" }, press("|◀", "To the start", () => go(0)),
    press("◀", "One step back", () => go(state.values[name] - 1)), play,
    press("▶", "One step on", () => go(state.values[name] + 1)), press("▶|", "To the end", () => go(Number(input.max))));
  const update = (values, answer) => {
    if (answer) input.max = last(answer);
    input.value = values[name];
    output.textContent = `${Math.min(values[name], Number(input.max))} of ${input.max}`;
    play.hidden = STILL.matches; // who wants no motion goes step by step
  };
  const element = html("div", { class: "control range player" }, html("label", { for: id }, label), output, input, buttons);
  return { element, update };
}
