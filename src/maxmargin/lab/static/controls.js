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
    return (values) => {
      element.hidden = control.when ? !control.when(values) : false;
      update(values);
    };
  });
  return (values) => updates.forEach((update) => update(values));
}

const KINDS = { range, choice, segments, check, button };

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
