// SPDX-License-Identifier: BSD-3-Clause
// The page: the list of benches, and the one that the address names: #margin?C=10&loss=hinge

import { html } from "./drawing.js";
import { State } from "./state.js";
import { SocketTransport } from "./transport.js";
import { mount } from "./workbench.js";

const token = new URLSearchParams(location.search).get("token");
const transport = new SocketTransport(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
const benches = await (await fetch("benches.json")).json();
const navigation = document.querySelector("nav");
const place = document.querySelector("main");
let end = () => {};
let shown; // what the address says when it was written here

for (const { name, title } of benches) {
  navigation.append(html("a", { href: `#${name}`, "data-bench": name }, title));
}

async function show() {
  if (location.hash === shown) return;
  shown = location.hash;
  const [name, text] = location.hash.slice(1).split("?");
  const info = benches.find((bench) => bench.name === name) ?? benches[0];
  const { default: bench } = await import(`./benches/${info.name}.js`);
  if (location.hash !== shown) return; // somebody went on
  end();
  const state = new State(bench.initial, text);
  state.addEventListener("commit", () => {
    shown = `#${info.name}${state.text ? `?${state.text}` : ""}`;
    history.replaceState(null, "", shown);
  });
  for (const link of navigation.children) {
    if (link.dataset.bench === info.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${info.title} – maxmargin lab`;
  end = mount(place, { info, bench, state, transport, link: () => location.href });
}

const present = document.querySelector("#present");
present.addEventListener("click", () => {
  const presenting = document.documentElement.classList.toggle("presenting");
  present.setAttribute("aria-pressed", presenting);
  // Everything has another size now, and the plots measure theirs anew.
  window.dispatchEvent(new Event("resize"));
});

addEventListener("hashchange", show);
await show();
