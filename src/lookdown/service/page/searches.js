// The searches of this visit, the last first; pressing one goes back to it.

import { byId, element } from "./dom.js";
import { count } from "./wording.js";

export function createSearches({ small, onReturn }) {
  const list = byId("searches");
  const all = [];

  function show(current) {
    const rows = all.map((search) => {
      const { query, marks, whereTold } = search.asked;
      const told = [marks.size ? `${marks.size} marked` : null, whereTold, `${count(search.hits.length)} hits`, search.metric];
      return element("li", {}, element("button", {
        type: "button", class: "search", "aria-current": search.number === current?.number ? "true" : null,
        on: { click: () => onReturn(search) },
      }, small(query), element("span", { class: "words" },
        element("span", { class: "name", text: query.told }),
        element("span", { class: "hint", text: told.filter(Boolean).join(" · ") }))));
    }).reverse();
    list.replaceChildren(...(rows.length ? rows : [element("li", { class: "hint", text: "None yet." })]));
  }

  show(null);
  return {
    show,
    /** Add a search, or put one with more hits in the place of the same. */
    keep(search) {
      const place = all.findIndex(({ number }) => number === search.number);
      if (place < 0) all.push(search);
      else all[place] = search;
      show(search);
    },
  };
}
