// SPDX-License-Identifier: BSD-3-Clause
// A bench in its place: words, figures, controls, numbers and buttons around what the bench itself draws.

import { buildControls } from "./controls.js";
import { html, Plot, shape, shortNumber, svg } from "./drawing.js";
import { asPng, asSvg, download } from "./exporting.js";

const MOST_MEASURES = 1000;

/**
 * Put a bench into the root and keep it going; returns a function that ends it.
 *
 * info: name, title, invitation and tour, as the server tells them. bench: the default export of its file.
 * link(): the address that brings the present state back; none where there is no address.
 */
export function mount(root, { info, bench, state, transport, link }) {
  const stage = new Stage(root, info, bench, state, transport, link);
  return () => stage.end();
}

class Stage {
  #busy = false;
  #again = false;
  #since;
  #answer;
  #asked;
  #question;
  #ending = new AbortController();

  constructor(root, info, bench, state, transport, link) {
    this.info = info;
    this.state = state;
    this.transport = transport;
    this.bench = bench;
    this.plots = [];
    this.#build(root, link);
    this.figure = bench.build(this);
    this.update = buildControls(this.controls, bench.controls, this);
    for (const plot of this.plots) plot.onresize = () => this.redraw();
    this.#listen();
    this.#changed();
  }

  /** A plot below the others; options as in drawing.js. */
  plot(options, parent = this.figures) {
    const plot = new Plot(parent, options);
    this.plots.push(plot);
    return plot;
  }

  /** A place beside other plots with shares of the width, for several plots one below the other. */
  column(share) {
    const column = html("div", { class: "plot shared" });
    column.style.flexGrow = share;
    this.figures.append(column);
    return column;
  }

  /** What a bench asks now: the values of its state, or what its asks(values) makes of them. */
  get asks() {
    return plainValues(this.bench.asks ? this.bench.asks(this.state.values) : this.state.values);
  }

  /** Another question than "show"; the answer, or undefined where it was refused. */
  async ask(want, values = this.asks) {
    try {
      return await this.transport.ask(this.info.name, want, plainValues(values));
    } catch (error) {
      this.refuse(error.message);
      return undefined;
    }
  }

  /** Draw the last answer once more. */
  redraw() {
    if (this.#answer) this.figure.draw(this.#answer, this.#asked);
  }

  get answer() {
    return this.#answer;
  }

  /**
   * The numbers beside the figure: [name, label, value, words?]. The script prints the same as "name =
   * value"; words are shown in the place of the value.
   */
  numbers(list, root = this.values) {
    const cells = list.map(([name, label, value, words]) => {
      const shown = words ?? (typeof value === "string" ? value : shortNumber(value, 6));
      return html("div", {}, html("dt", {}, label), html("dd", { "data-name": name, "data-value": value }, shown));
    });
    root.replaceChildren(...cells);
  }

  /** One sentence below the figure that says what is seen; read aloud by screen readers. */
  say(sentence) {
    if (this.sentence.textContent !== sentence) this.sentence.textContent = sentence;
  }

  refuse(sentence) {
    this.refusal.textContent = sentence;
    this.refusal.hidden = !sentence;
  }

  /** What the marks mean: [shape or kind, colour, words]. Kinds besides shapes: line, dashes, area. */
  legend(list) {
    this.legendBox.replaceChildren(...list.map(([kind, colour, words]) => {
      const picture = svg("svg", { width: 22, height: 16, viewBox: "-11 -8 22 16", "aria-hidden": "true" });
      picture.append(legendMark(kind, colour));
      return html("span", {}, picture, words);
    }));
  }

  end() {
    this.#ending.abort();
    this.figure.end?.();
  }

  #build(root, link) {
    const { info, state } = this;
    this.figures = html("div", { class: "figures" });
    this.legendBox = html("p", { class: "legend" });
    this.sentence = html("p", { class: "sentence", "aria-live": "polite" });
    this.refusal = html("p", { class: "refusal", role: "alert", hidden: true });
    this.controls = html("div", { class: "controls" });
    this.values = html("dl", { class: "numbers" });
    const press = (label, title, act) => {
      const button = html("button", { type: "button", title }, label);
      button.addEventListener("click", act, { signal: this.#ending.signal });
      return button;
    };
    this.undo = press("Undo", "Ctrl+Z", () => state.undo());
    this.redo = press("Redo", "Ctrl+Shift+Z", () => state.redo());
    const actions = html("div", { class: "actions" }, this.undo, this.redo,
      press("Start over", "Back to the beginning of this bench", () => state.reset()),
      press("Copy as Python", "A script that computes what is shown", () => this.#showScript()));
    if (link) actions.append(press("Copy link", "An address that brings this back", () => this.#copyLink(link)));
    actions.append(
      press("SVG", "Save the figure as SVG", () => {
        download(new Blob([asSvg(this.plots).text], { type: "image/svg+xml" }), `${info.name}.svg`);
      }),
      press("PNG", "Save the figure as PNG", async () => download(await asPng(this.plots), `${info.name}.png`)));
    const tour = html("a", { href: `tour/${info.tour}.html${location.search}`, target: "_blank" }, "The tour explains it.");
    const invitation = html("p", { class: "invitation" }, info.invitation);
    if (link) invitation.append(" ", tour); // in a notebook there is no server that has the tour
    this.section = html("section", { class: "bench", "aria-label": info.title },
      html("h2", {}, info.title), invitation,
      html("div", { class: "board" }, this.figures, this.legendBox, this.sentence, this.refusal),
      html("div", { class: "side" }, this.controls, this.values, actions));
    root.replaceChildren(this.section);
  }

  #listen() {
    const { signal } = this.#ending;
    this.state.addEventListener("change", () => this.#changed(), { signal });
    const isUndo = (event) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
    this.section.ownerDocument.addEventListener("keydown", (event) => {
      if (!isUndo(event) || (!this.section.contains(event.target) && event.target !== document.body)) return;
      event.preventDefault();
      if (event.shiftKey) this.state.redo();
      else this.state.undo();
    }, { signal });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.redraw(), { signal });
    const showUndo = () => {
      this.undo.disabled = !this.state.canUndo;
      this.redo.disabled = !this.state.canRedo;
    };
    this.state.addEventListener("commit", showUndo, { signal });
    showUndo();
  }

  #changed() {
    // The first change that no answer has taken up yet: from there on somebody waits.
    this.#since ??= globalThis.event?.timeStamp ?? performance.now();
    const { values } = this.state;
    this.update(values, this.#answer);
    if (this.#answer && !this.#busy && JSON.stringify(this.asks) === this.#question) {
      this.#show(this.#answer, values, this.#taken()); // nothing that the answer depends on has changed
    } else {
      this.figure.sketch?.(values, this.#answer);
      this.#request();
    }
  }

  #taken() {
    const since = this.#since;
    this.#since = undefined;
    return since;
  }

  #show(answer, values, since) {
    [this.#answer, this.#asked] = [answer, values];
    this.update(this.state.values, answer);
    this.figure.draw(answer, values);
    requestAnimationFrame(() => measure("answer", since));
  }

  /** Ask for what is to be shown: one question at a time, and of those that wait the newest. */
  async #request() {
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    this.section.setAttribute("aria-busy", "true");
    const { values } = this.state;
    const since = this.#taken();
    this.#question = JSON.stringify(this.asks);
    const answer = await this.ask("show");
    this.#busy = false;
    if (this.#ending.signal.aborted) return;
    if (this.#again) {
      this.#again = false;
      this.#request();
    } else this.section.setAttribute("aria-busy", "false");
    if (!answer) {
      this.#question = undefined;
      return;
    }
    this.refuse("");
    this.#show(answer, this.#busy ? values : this.state.values, since);
  }

  async #showScript() {
    const answer = await this.ask("script");
    if (!answer) return;
    const close = html("button", { type: "button", autofocus: true }, "Close");
    const copied = html("span", { role: "status" });
    const code = html("pre", { tabindex: 0 }, answer.script);
    const dialog = html("dialog", { class: "script", "aria-label": "Python" }, code,
      html("div", { class: "actions" }, close, copied));
    this.section.append(dialog);
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
    copied.textContent = (await copy(answer.script)) ? "Copied." : "Select it and copy it.";
  }

  async #copyLink(link) {
    this.say((await copy(link())) ? "The link is copied." : "The link is in the address bar.");
  }
}

/** Infinity has no place in JSON. */
function plainValues(values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === Infinity ? "inf" : value]));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // the browser does not allow it
  }
}

/** How long something took, for who wants to know: performance.getEntriesByName(name). */
function measure(name, since) {
  if (since === undefined) return;
  if (performance.getEntriesByName(name).length >= MOST_MEASURES) performance.clearMeasures(name);
  performance.measure(name, { start: since, end: performance.now() });
}

function legendMark(kind, colour) {
  if (kind === "line" || kind === "dashes") {
    const dashes = kind === "dashes" ? { "stroke-dasharray": "5 3" } : {};
    return svg("line", { x1: -10, x2: 10, stroke: colour, "stroke-width": 2, ...dashes });
  }
  if (kind === "area") return svg("rect", { x: -9, y: -6, width: 18, height: 12, fill: colour });
  const open = kind.startsWith("open ");
  const name = open ? kind.slice(5) : kind;
  const fill = open || name === "cross" ? "none" : colour;
  return svg("path", { d: shape(name, 5), fill, stroke: colour, "stroke-width": 1.5 });
}
