// Results that were marked right or wrong, in a strip below the query: press one to take its mark away.

import { byId, element } from "./dom.js";
import { nameOf } from "./results.js";

export function createMarks(thumbnails, { onUnmark }) {
  const strip = byId("examples");

  return {
    show(marks) {
      strip.replaceChildren(...[...marks.entries()].map(([id, { hit, right }]) => {
        const told = `${right ? "Right" : "Wrong"}: ${nameOf(hit)}`;
        return element("li", {}, element("button", {
          type: "button", class: right ? "is-right" : "is-wrong", title: `${told}. Press to take the mark away.`,
          "aria-label": `${told}. Take the mark away.`, on: { click: () => onUnmark(id) },
        }, thumbnails.thumbnail(hit.thumbnail, "")));
      }));
    },
  };
}

/** The marks with one more, or without it where it was there already. */
export function marked(marks, hit, right) {
  const next = new Map(marks);
  if (next.get(hit.id)?.right === right) next.delete(hit.id);
  else next.set(hit.id, { hit, right });
  return next;
}

/** "3 right, 1 wrong". */
export function marksTold(marks) {
  const right = [...marks.values()].filter((mark) => mark.right).length;
  return `${right} right, ${marks.size - right} wrong`;
}

/** The name that most of the right ones carry, or the query's own. */
export function likelyKind(marks, query) {
  const votes = new Map();
  for (const { hit, right } of marks.values()) {
    if (right && hit.label !== null) votes.set(hit.label, (votes.get(hit.label) ?? 0) + 1);
  }
  return [...votes.entries()].sort((a, b) => b[1] - a[1])[0]?.[0] ?? query?.label ?? "";
}

/** What marks say of labels: the right ones are of the kind, a wrong one keeps another label or is background. */
export function labelsOf(marks, kind) {
  const labels = {};
  const background = [];
  for (const [id, { hit, right }] of marks) {
    if (right) labels[id] = kind;
    else if (hit.label !== null && hit.label !== kind) labels[id] = hit.label;
    else background.push(id);
  }
  return { labels, background };
}
