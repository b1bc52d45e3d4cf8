// SPDX-License-Identifier: BSD-3-Clause
// Pictures of what is drawn: the plots of a bench, one below the other, as SVG or PNG.

import { svg } from "./drawing.js";

/** All plots as the text of one SVG, with the colours of now in the place of variables. */
export function asSvg(plots) {
  const space = 12;
  const sizes = plots.map((plot) => ({
    width: Number(plot.svg.getAttribute("width")),
    height: Number(plot.svg.getAttribute("height")),
  }));
  const width = Math.max(...sizes.map((size) => size.width));
  const height = sizes.reduce((sum, size) => sum + size.height + space, -space);
  const whole = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
  whole.append(svg("rect", { width, height, fill: "var(--ground)" }));
  let top = 0;
  plots.forEach((plot, k) => {
    const copy = plot.svg.cloneNode(true);
    copy.setAttribute("y", top);
    for (const reach of copy.querySelectorAll(".reach")) reach.remove();
    whole.append(copy);
    top += sizes[k].height + space;
  });
  const style = getComputedStyle(plots[0].frame);
  const text = new XMLSerializer().serializeToString(whole);
  return { width, height, text: text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim()) };
}

/** The same as a PNG of twice as many pixels. */
export async function asPng(plots) {
  const { width, height, text } = asSvg(plots);
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((settle) => canvas.toBlob(settle, "image/png"));
}

/** Hand a file to the browser's downloads. */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
