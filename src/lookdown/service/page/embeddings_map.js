// The gallery's embeddings in two dimensions, with the hits in them; what is near is alike.

import { byId, element } from "./dom.js";
import { explain } from "./status.js";
import { nameOf } from "./results.js";

const LABEL = "The gallery's embeddings in two dimensions, the hits in colour: n and p go from hit to hit, Enter chooses one";
const SAMPLE = 2000;
const MOST_HITS = 150; // placed at a time
const REACH = 14; // pixels from the pointer
const EDGE = 10;

/** Points are fetched when the panel is first opened; `onPoint`, `onSelect` and `onSearch` tell what was done. */
export function createEmbeddingsMap(api, thumbnails, { onPoint, onSelect, onSearch }) {
  const panel = byId("embeddings");
  const canvas = element("canvas", { tabindex: 0, role: "application", "aria-label": LABEL });
  byId("plane").append(canvas);
  let points = [];
  let hits = new Map(); // id to hit
  let placed = new Map(); // id of a hit to its point
  let extent = null;
  let pointed = null;
  let fetched = 0; // how many times, so that a late answer is told from the last

  panel.addEventListener("toggle", () => { if (panel.open) load(); });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  async function load() {
    const mine = ++fetched;
    if (!panel.open) return draw();
    const ids = [...hits.keys()].slice(0, MOST_HITS);
    try {
      const sample = points.length ? points : (await api.embeddingMap(SAMPLE, [])).points;
      const own = ids.length ? (await api.embeddingMap(1, ids)).points : [];
      if (mine !== fetched) return undefined;
      points = sample;
      placed = new Map(own.filter(({ id }) => hits.has(id)).map((one) => [one.id, one]));
      extent = extentOf([...points, ...placed.values()]);
      draw();
    } catch (error) {
      explain(error, load);
    }
    return undefined;
  }

  const toScreen = ({ x, y }) => [
    EDGE + ((x - extent.x) / extent.width) * (canvas.clientWidth - 2 * EDGE),
    EDGE + ((extent.y + extent.height - y) / extent.height) * (canvas.clientHeight - 2 * EDGE),
  ];

  function draw() {
    const context = canvas.getContext("2d");
    const sharp = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * sharp;
    canvas.height = canvas.clientHeight * sharp;
    if (!extent || !canvas.width) return;
    const colour = (name) => getComputedStyle(canvas).getPropertyValue(name);
    context.scale(sharp, sharp);
    context.fillStyle = colour("--point");
    for (const point of points) dot(context, toScreen(point), 1.6);
    for (const [id, point] of placed) {
      context.globalAlpha = hits.get(id).below ? 0.4 : 1;
      context.fillStyle = colour("--accent");
      dot(context, toScreen(point), 3.4);
    }
    context.globalAlpha = 1;
    const one = placed.get(pointed) ?? points.find(({ id }) => id === pointed);
    if (!one) return;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(...toScreen(one), 7, 0, 2 * Math.PI);
    context.stroke();
  }

  function nearest(event) {
    if (!extent) return null;
    const frame = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - frame.left, event.clientY - frame.top];
    let best = null;
    let least = REACH;
    for (const point of [...points, ...placed.values()]) { // a hit wins over the same chip in the sample
      const [x, y] = toScreen(point);
      const apart = Math.hypot(x - px, y - py);
      if (apart <= least) [best, least] = [point, apart];
    }
    return best;
  }

  canvas.addEventListener("pointermove", (event) => {
    const one = nearest(event);
    canvas.classList.toggle("over", one !== null);
    if (one?.id !== pointed) onPoint(one?.id ?? null);
  });
  canvas.addEventListener("pointerleave", () => onPoint(null));
  canvas.addEventListener("click", (event) => {
    const one = nearest(event);
    if (one) choose(one);
  });
  canvas.addEventListener("keydown", (event) => {
    const all = placed.size ? [...placed.values()] : points; // from hit to hit, where there are some
    if (event.ctrlKey || event.metaKey || event.altKey || !all.length) return;
    const place = all.findIndex(({ id }) => id === pointed);
    if (event.key === "n") onPoint(all[(place + 1) % all.length].id);
    else if (event.key === "p") onPoint(all.at(Math.max(place, 0) - 1).id);
    else if (event.key === "Enter" && place >= 0) choose(all[place]);
    else return;
    event.preventDefault();
  });

  function choose(one) {
    tell(one);
    if (hits.has(one.id)) onSelect(one.id);
  }

  function tell(point) {
    const chip = hits.get(point.id) ?? { ...point, background: false, thumbnail: `/v1/chips/${encodeURIComponent(point.id)}/thumbnail` };
    byId("pointed").replaceChildren(
      thumbnails.thumbnail(chip.thumbnail, ""),
      element("span", { class: "name", text: nameOf(chip) }),
      element("button", { type: "button", text: "Search for this", on: { click: () => onSearch(chip) } }),
    );
  }

  return {
    show(found) {
      hits = new Map(found.map((hit) => [hit.id, { ...hit }]));
      placed = new Map();
      load();
    },
    /** The gallery has changed, and with it the plane. */
    renew() {
      points = [];
      load();
    },
    accept(threshold) {
      for (const hit of hits.values()) hit.below = threshold !== null && hit.score < threshold;
      draw();
    },
    point(id) {
      pointed = id;
      if (panel.open) draw();
    },
  };
}

function dot(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function extentOf(points) {
  if (!points.length) return null;
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y, width: Math.max(...xs) - x || 1, height: Math.max(...ys) - y || 1 };
}
