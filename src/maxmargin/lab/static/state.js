// SPDX-License-Identifier: BSD-3-Clause
// What a bench shows is a state: a few named values, each a number, a word, a truth or a list of rows of
// numbers. It can be undone, and written into an address that brings it back.

/** The values of a bench. Listeners of "change" redraw; listeners of "commit" write the address. */
export class State extends EventTarget {
  #initial;
  #history;
  #place = 0;

  constructor(initial, text = "") {
    super();
    this.#initial = initial;
    this.values = { ...initial, ...read(text, initial) };
    this.#history = [this.values];
  }

  /** Change some values; a step of undo ends with commit(). */
  set(patch) {
    this.values = { ...this.values, ...patch };
    this.dispatchEvent(new Event("change"));
  }

  /** The end of a gesture: one step of undo, and a new address. */
  commit() {
    if (this.values === this.#history[this.#place]) return;
    this.#history = [...this.#history.slice(0, this.#place + 1), this.values].slice(-200);
    this.#place = this.#history.length - 1;
    this.dispatchEvent(new Event("commit"));
  }

  change(patch) {
    this.set(patch);
    this.commit();
  }

  undo() {
    this.#go(this.#place - 1);
  }

  redo() {
    this.#go(this.#place + 1);
  }

  reset() {
    this.change({ ...this.#initial });
  }

  get canUndo() {
    return this.#place > 0;
  }

  get canRedo() {
    return this.#place < this.#history.length - 1;
  }

  /** The values that are not the initial ones, for an address. */
  get text() {
    return Object.entries(this.values)
      .filter(([name, value]) => written(value) !== written(this.#initial[name]))
      .map(([name, value]) => `${name}=${written(value)}`)
      .join("&");
  }

  #go(place) {
    if (place < 0 || place >= this.#history.length) return;
    this.#place = place;
    this.values = this.#history[place];
    this.dispatchEvent(new Event("change"));
    this.dispatchEvent(new Event("commit"));
  }
}

function written(value) {
  if (Array.isArray(value)) return value.map((row) => row.join(",")).join(";");
  if (typeof value === "number") return value === Infinity ? "inf" : String(value);
  return encodeURIComponent(String(value));
}

/** The values of an address that are of the kind of the initial ones; others are left out. */
function read(text, initial) {
  const values = {};
  for (const part of text.split("&")) {
    const [name, value] = part.split("=");
    if (!Object.hasOwn(initial, name) || value === undefined) continue;
    const known = readLike(initial[name], value);
    if (known !== undefined) values[name] = known;
  }
  return values;
}

function readLike(like, text) {
  if (Array.isArray(like)) {
    const rows = text ? text.split(";").map((row) => row.split(",").map(Number)) : [];
    return rows.flat().every(Number.isFinite) ? rows : undefined;
  }
  if (typeof like === "boolean") return text === "true";
  if (typeof like === "number") {
    const value = text === "inf" ? Infinity : Number(text);
    return text !== "" && !Number.isNaN(value) ? value : undefined;
  }
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
