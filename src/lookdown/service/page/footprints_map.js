// Where the hits are: footprints on a graticule that needs no network; tiles lie below where an address is set.

import { drawn } from "./dom.js";
import { graticule, project, rings, unproject } from "./mercator.js";
import { tilesOf } from "./tiles.js";
import { followMap } from "./map_gestures.js";
import { nameOf } from "./results.js";

const SMALL = 7; // pixels: what is smaller is drawn as a dot
const CLOSEST = 2 ** 31; // pixels that the world is wide at most
const LINES = 5; // of the graticule, each way

/** `onPoint(id or null)`, `onSelect(id)` and `onArea([w, s, e, n])` tell what was done on the map. */
export function createFootprintsMap(root, told, { onPoint, onSelect, onArea }) {
  const [grid, tiles, marks, area] = ["graticule", "tiles", "footprints", "area"].map((name) => drawn("g", { class: name }));
  const sketch = drawn("rect", { class: "sketch unseen" });
  const svg = drawn("svg", {
    class: "footprints", tabindex: 0, role: "application",
    "aria-label": "Map of the hits: arrow keys move it, plus and minus zoom, 0 fits, n and p go from hit to hit",
  }, tiles, grid, area, marks, sketch);
  root.append(svg);
  let view = { x: 0.5, y: 0.5, scale: 400 }; // the middle, and how many pixels the world is wide
  let hits = [];
  let box = null;
  let tileUrl = null;
  let pointed = null;
  let waiting = false;
  let fitted = null; // what to show all of, once the map has a size

  const size = () => [svg.clientWidth || 300, svg.clientHeight || 220];
  const toScreen = ([x, y]) => {
    const [width, height] = size();
    return [(x - view.x) * view.scale + width / 2, (y - view.y) * view.scale + height / 2];
  };
  const toWorld = ([px, py]) => {
    const [width, height] = size();
    return [(px - width / 2) / view.scale + view.x, (py - height / 2) / view.scale + view.y];
  };

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawGraticule();
      if (tileUrl) tiles.replaceChildren(...tilesOf(tileUrl, view.scale, toWorld([0, 0]), toWorld(size()), toScreen));
      marks.replaceChildren(...[...hits].sort((a, b) => Number(b.below ?? 0) - Number(a.below ?? 0)).flatMap(footprint));
      area.replaceChildren(...(box ? [drawn("path", { d: pathOf(ringOf(box)) })] : []));
      point(pointed);
    });
  }

  function drawGraticule() {
    const [width, height] = size();
    const [west, north] = unproject(toWorld([0, 0]));
    const [east, south] = unproject(toWorld([width, height]));
    const lons = graticule(Math.max(-180, west), Math.min(180, east), LINES);
    const lats = graticule(Math.max(-85, south), Math.min(85, north), LINES);
    const nodes = [];
    for (const lon of lons.values) {
      const [x] = toScreen(project([lon, 0]));
      nodes.push(drawn("line", { x1: x, x2: x, y1: 0, y2: height }));
      if (x < width - 44 && x > 30) nodes.push(drawn("text", { x: x + 3, y: height - 4, text: degrees(lon, lons.decimals, "E", "W") }));
    }
    for (const lat of lats.values) {
      const [, y] = toScreen(project([0, lat]));
      nodes.push(drawn("line", { x1: 0, x2: width, y1: y, y2: y }));
      if (y > 14 && y < height - 16) nodes.push(drawn("text", { x: 3, y: y - 3, text: degrees(lat, lats.decimals, "N", "S") }));
    }
    grid.replaceChildren(...nodes);
  }

  const pathOf = (ring) => `M${ring.map((place) => toScreen(project(place)).map((v) => v.toFixed(1)).join(" ")).join("L")}Z`;

  function footprint(hit) {
    const shape = hit.rings[0].map((place) => toScreen(project(place)));
    const [xs, ys] = [shape.map(([x]) => x), shape.map(([, y]) => y)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const [width, height] = size();
    if (right < -20 || left > width + 20 || bottom < -20 || top > height + 20) return [];
    const small = right - left < SMALL && bottom - top < SMALL;
    const attributes = { class: `hit${hit.below ? " below" : ""}`, "data-id": hit.id };
    const title = drawn("title", { text: nameOf(hit) });
    if (small) return [drawn("circle", { ...attributes, cx: (left + right) / 2, cy: (top + bottom) / 2, r: 4 }, title)];
    return [drawn("path", { ...attributes, d: hit.rings.map(pathOf).join("") }, title)];
  }

  function point(id) {
    pointed = id;
    for (const node of marks.children) node.classList.toggle("pointed", node.dataset.id === id);
    const node = [...marks.children].find((one) => one.dataset.id === id);
    if (node && node !== marks.lastChild) marks.append(node); // above its neighbours
  }

  function fit(places) {
    fitted = places;
    if (!places.length || !svg.clientWidth) return redraw();
    const points = places.map(project);
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const [width, height] = size();
    const scale = 0.84 * Math.min(width / Math.max(right - left, 1e-7), height / Math.max(bottom - top, 1e-7));
    view = { x: (left + right) / 2, y: (top + bottom) / 2, scale: Math.min(scale, CLOSEST) };
    redraw();
  }

  function zoom(factor, [px, py] = size().map((side) => side / 2)) {
    const [x, y] = toWorld([px, py]);
    const scale = Math.min(CLOSEST, Math.max(Math.min(...size()) / 2, view.scale * factor));
    view = { x: x - (x - view.x) * (view.scale / scale), y: y - (y - view.y) * (view.scale / scale), scale };
    fitted = null;
    redraw();
  }

  function pan(dx, dy) {
    view = { ...view, x: view.x - dx / view.scale, y: Math.min(1, Math.max(0, view.y - dy / view.scale)) };
    fitted = null;
    redraw();
  }

  const everything = () => hits.flatMap((hit) => hit.rings.flat());
  const gestures = followMap(svg, sketch, {
    pan, zoom, onPoint, onSelect,
    fit: () => fit(everything()),
    step: (way) => {
      if (!hits.length) return;
      const place = hits.findIndex((hit) => hit.id === pointed);
      const next = hits[(place + way + hits.length) % hits.length];
      point(next.id);
      onPoint(next.id);
    },
    choose: () => pointed && onSelect(pointed),
    onBox: (from, to) => {
      const [[west, north], [east, south]] = [unproject(toWorld(from)), unproject(toWorld(to))];
      onArea([Math.max(-180, west), south, Math.min(180, east), north]);
    },
  });
  new ResizeObserver(() => (fitted ? fit(fitted) : redraw())).observe(svg);

  return {
    zoom,
    point,
    fit: () => fit(everything()),
    draw: gestures.beginBox,
    useTiles(url) {
      tileUrl = url;
      redraw();
    },
    show(found, bounds, { stay = false } = {}) {
      hits = found.map((hit) => ({ ...hit, rings: rings(hit.footprint) })).filter((hit) => hit.rings.length);
      const without = found.length - hits.length;
      told.textContent = !found.length ? "The hits of a search appear here."
        : without ? `${hits.length} hits on the map, ${without} without a place.` : `${hits.length} hits on the map.`;
      if (stay && !fitted) redraw(); // it was moved by hand
      else fit(hits.length ? everything() : bounds ? ringOf(bounds) : []);
    },
    accept(threshold) {
      for (const hit of hits) hit.below = threshold !== null && hit.score < threshold;
      redraw();
    },
    showArea(sides) {
      box = sides ?? null;
      redraw();
    },
  };
}

function degrees(value, decimals, positive, negative) {
  const side = Math.abs(value) < 1e-9 ? "" : value > 0 ? positive : negative;
  return `${Math.abs(value).toFixed(decimals)}°${side}`;
}

const ringOf = ([west, south, east, north]) => [[west, south], [east, south], [east, north], [west, north]];
