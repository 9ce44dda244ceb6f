// How scores of same and of different pairs are spread, with the threshold in them (Figure 1 of the paper).

import { drawn } from "./dom.js";
import { score } from "./wording.js";

const WIDTH = 300;
const HEIGHT = 124;
const FLOOR = 98; // where the curves stand
const TOP = 30; // above it are names and the threshold
const NEAR = 70; // pixels between two peaks
const LOWEST = 0.1; // of the scores are left out below, and few above: long tails would press the rest into a corner
const HIGHEST = 0.998;

/** Draw both curves, the hits below them and the line; without curves the place stays and says so. */
export function createDistributions(root) {
  let scale = null;
  const line = drawn("line", { class: "cut", y1: 14, y2: FLOOR });
  const told = drawn("text", { class: "cut-told", y: 10 });
  const tail = drawn("rect", { y: 0, height: HEIGHT });

  function show(distributions, hits) {
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "distributions", role: "img" });
    root.replaceChildren(svg);
    scale = distributions ? scaleOf(distributions, hits) : null;
    if (!scale) {
      svg.setAttribute("aria-label", "No score distributions are known");
      svg.append(
        drawn("line", { class: "axis", x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR }),
        drawn("text", { class: "quiet", x: WIDTH / 2, y: 60, "text-anchor": "middle", text: "no distributions known" }),
      );
      return;
    }
    svg.setAttribute("aria-label", "Spread of the scores of pairs of the same kind and of different kinds, with the threshold");
    const { scores, same, different } = distributions;
    svg.append(
      drawn("defs", {}, drawn("clipPath", { id: "beyond" }, tail)),
      drawn("path", { class: "different", d: area(scores, different) }),
      drawn("path", { class: "same", d: same ? area(scores, same) : "" }),
      drawn("path", { class: "false", d: area(scores, different), "clip-path": "url(#beyond)" }),
      drawn("path", { class: "hits", d: hits.map(({ score: s }) => `M${scale.x(s)} ${FLOOR + 2}v5`).join("") }),
      drawn("line", { class: "axis", x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR }),
      ...names(scores, { different, same }),
      drawn("text", { class: "quiet", x: 0, y: HEIGHT - 3, text: score(scale.low) }),
      drawn("text", { class: "quiet", x: WIDTH / 2, y: HEIGHT - 3, "text-anchor": "middle", text: "score" }),
      drawn("text", { class: "quiet", x: WIDTH, y: HEIGHT - 3, "text-anchor": "end", text: score(scale.high) }),
      line,
      told,
    );
  }

  function area(scores, density) {
    const steps = scores.map((s, i) => `L${scale.x(s).toFixed(1)} ${scale.y(density[i]).toFixed(1)}`).join("");
    return `M${scale.x(scores[0]).toFixed(1)} ${FLOOR}${steps}L${scale.x(scores.at(-1)).toFixed(1)} ${FLOOR}Z`;
  }

  // Above the peaks; where these are close, each name keeps to its own side.
  function names(scores, densities) {
    const peaks = Object.entries(densities).filter(([, density]) => density).map(([name, density]) => {
      const peak = density.indexOf(Math.max(...density));
      return { name, x: scale.x(scores[peak]), y: scale.y(density[peak]) - 4 };
    });
    const close = peaks.length > 1 && Math.abs(peaks[0].x - peaks[1].x) < NEAR;
    return peaks.map(({ name, x, y }) => {
      const anchor = !close ? "middle" : name === "different" ? "end" : "start";
      const kept = Math.min(WIDTH - (anchor === "end" ? 0 : 34), Math.max(anchor === "start" ? 0 : 34, x));
      return drawn("text", { class: `name-${name}`, x: kept, y, "text-anchor": anchor, text: name });
    });
  }

  function cut(threshold) {
    const known = scale !== null && Number.isFinite(threshold);
    for (const node of [line, told, tail]) node.classList.toggle("unseen", !known);
    if (!known) return;
    const x = scale.x(threshold);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    tail.setAttribute("x", x);
    tail.setAttribute("width", WIDTH - x);
    told.setAttribute("x", x);
    told.setAttribute("text-anchor", x < 60 ? "start" : x > WIDTH - 60 ? "end" : "middle");
    told.textContent = `accepted from ${score(threshold)}`;
  }

  return { show, cut };
}

function scaleOf({ scores, same: known, different }, hits) {
  const same = known ?? different;
  const highest = Math.max(...same, ...different);
  if (!(highest > 0)) return null;
  const low = Math.min(quantile(scores, different, LOWEST), quantile(scores, same, LOWEST));
  const high = Math.max(quantile(scores, different, HIGHEST), quantile(scores, same, HIGHEST), hits[0]?.score ?? -Infinity);
  const x = (s) => Math.min(WIDTH, Math.max(0, ((s - low) / (high - low)) * WIDTH));
  return { low, high, x, y: (density) => FLOOR - (density / highest) * (FLOOR - TOP) };
}

function quantile(scores, density, part) {
  const total = density.reduce((sum, value) => sum + value, 0);
  let sum = 0;
  return scores[density.findIndex((value) => (sum += value) >= part * total)] ?? scores[0];
}
