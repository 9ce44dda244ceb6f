// Pictures of the ground below the map, from an address with {z}, {x} and {y} that whoever started the server gave.

import { drawn } from "./dom.js";

const SIDE = 256; // pixels of a tile
const FINEST = 19;
const MOST = 60; // tiles at a time

/** The tiles between two corners of the view, as SVG images. */
export function tilesOf(url, scale, [left, top], [right, bottom], toScreen) {
  const z = Math.max(0, Math.min(FINEST, Math.round(Math.log2(scale / SIDE))));
  const n = 2 ** z;
  const span = (low, high) => [Math.max(0, Math.floor(low * n)), Math.min(n - 1, Math.floor(high * n))];
  const [[x0, x1], [y0, y1]] = [span(left, right), span(top, bottom)];
  if ((x1 - x0 + 1) * (y1 - y0 + 1) > MOST) return [];
  const found = [];
  for (let x = x0; x <= x1; x++) {
    for (let y = y0; y <= y1; y++) {
      const [px, py] = toScreen([x / n, y / n]);
      const side = scale / n;
      const href = url.replace("{z}", z).replace("{x}", x).replace("{y}", y);
      found.push(drawn("image", { href, x: px, y: py, width: side + 0.5, height: side + 0.5, preserveAspectRatio: "none" }));
    }
  }
  return found;
}
