// Before and after, side by side for the current query: which hits came, went and moved.

import { byId, element } from "./dom.js";
import { nameOf } from "./results.js";
import { count, sentence } from "./wording.js";

const SHOWN = 20;

/** Show both and resolve to whether the new metric is kept; leaving with Escape drops it. */
export function keepIt({ before, after, reason, helped, thumbnails }) {
  const dialog = byId("comparison");
  byId("before-title").textContent = `Before: ${before.metric}`;
  byId("after-title").textContent = `After: ${after.metric}`;
  byId("comparison-told").textContent = told(before, after, reason, helped);
  fill(byId("before"), before.hits, after.hits, thumbnails, false);
  fill(byId("after"), after.hits, before.hits, thumbnails, true);
  dialog.showModal();
  byId(helped ? "keep" : "drop").focus();
  return new Promise((resolve) => {
    const end = new AbortController();
    const finish = (kept) => { end.abort(); dialog.close(); resolve(kept); };
    byId("keep").addEventListener("click", () => finish(true), { signal: end.signal });
    byId("drop").addEventListener("click", () => finish(false), { signal: end.signal });
    dialog.addEventListener("cancel", () => finish(false), { signal: end.signal });
  });
}

function told(before, after, reason, helped) {
  const [first, second] = [before, after].map(({ hits }) => hits.slice(0, SHOWN).map(({ id }) => id));
  const both = second.filter((id) => first.includes(id)).length;
  const overlap = first.length
    ? ` Of the first ${count(second.length)}, ${count(both)} were there before.` : " Search for something first to compare hits.";
  return `${helped ? "" : "It is not clear that this helps. "}${sentence(reason ?? "")}${overlap}`;
}

function fill(list, hits, others, thumbnails, isAfter) {
  const places = new Map(others.slice(0, SHOWN).map(({ id }, place) => [id, place]));
  list.replaceChildren(...hits.slice(0, SHOWN).map((hit, place) => {
    const other = places.get(hit.id);
    const news = other === undefined ? (isAfter ? "new" : "gone") : moved(isAfter ? other - place : place - other);
    return element("li", { class: other === undefined ? "changed" : null },
      thumbnails.thumbnail(hit.thumbnail, ""),
      element("span", { class: "name", text: nameOf(hit), title: nameOf(hit) }),
      element("span", { class: "hint", text: isAfter || news === "gone" ? news : "\u00a0" }));
  }));
}

function moved(by) {
  if (by === 0) return "same place";
  return by > 0 ? `up ${by}` : `down ${-by}`;
}
