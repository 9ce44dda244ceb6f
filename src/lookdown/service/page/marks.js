// Results that were marked right, wrong or empty, in a strip below the query: press one to take its mark away.

import { byId, element } from "./dom.js";
import { nameOf } from "./results.js";
import { sentence } from "./wording.js";

/** What a result can be marked as; "empty" shows nothing of interest. */
export const WAYS = ["right", "wrong", "empty"];

export function createMarks(thumbnails, { onUnmark }) {
  const strip = byId("examples");

  return {
    show(marks) {
      strip.replaceChildren(...[...marks.entries()].map(([id, { hit, how }]) => {
        const told = `${sentence(how).slice(0, -1)}: ${nameOf(hit)}`;
        return element("li", {}, element("button", {
          type: "button", class: `is-${how}`, title: `${told}. Press to take the mark away.`,
          "aria-label": `${told}. Take the mark away.`, on: { click: () => onUnmark(id) },
        }, thumbnails.thumbnail(hit.thumbnail, "")));
      }));
    },
  };
}

/** The marks with one more, or without it where it was there already. */
export function marked(marks, hit, how) {
  const next = new Map(marks);
  if (next.get(hit.id)?.how === how) next.delete(hit.id);
  else next.set(hit.id, { hit, how });
  return next;
}

/** "3 right, 1 wrong"; the empty ones only where there are some. */
export function marksTold(marks) {
  const many = WAYS.map((way) => [...marks.values()].filter(({ how }) => how === way).length);
  return WAYS.map((way, i) => `${many[i]} ${way}`).filter((_, i) => i < 2 || many[i]).join(", ");
}

/** The name that most of the right ones carry, or the query's own. */
export function likelyKind(marks, query) {
  const votes = new Map();
  for (const { hit, how } of marks.values()) {
    if (how === "right" && hit.label !== null) votes.set(hit.label, (votes.get(hit.label) ?? 0) + 1);
  }
  return [...votes.entries()].sort((a, b) => b[1] - a[1])[0]?.[0] ?? query?.label ?? "";
}

/**
 * What marks say of labels: the right ones are of the kind, the empty ones background. A wrong one keeps what is known
 * of it; where that is nothing, or the kind itself, nothing is said: it is something else, nobody knows what.
 */
export function labelsOf(marks, kind) {
  const labels = {};
  const background = [];
  for (const [id, { hit, how }] of marks) {
    if (how === "right") labels[id] = kind;
    else if (how === "empty" || hit.background) background.push(id);
    else if (hit.label !== null && hit.label !== kind) labels[id] = hit.label;
  }
  return { labels, background };
}
