// The grid: hits as cards, best first, with a line where the threshold cuts; or, before any search, chips to click on.

import { element } from "./dom.js";
import { UNKNOWN, alarm, day, fileName, score, share, takenFor } from "./wording.js";

const MOVES = { ArrowLeft: -1, ArrowRight: 1 };
const MARKS = { r: "right", w: "wrong", e: "empty" };

/** `onMark(hit, how)`, `onSearch(hit)`, `onPoint(id or null)` and `onSelect(id)` tell what was done. */
export function createResults(root, thumbnails, { onMark, onSearch, onPoint, onSelect }) {
  const cards = new Map(); // id to card
  const hits = new Map();
  const line = element("li", { class: "line" }, element("span", { text: "below the threshold" }));
  let order = [];

  root.addEventListener("keydown", (event) => {
    const card = event.target.closest(".card");
    if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = neighbour(card, event.key);
    if (to) {
      event.preventDefault();
      focus(to);
    } else if (hits.has(card.dataset.id) && (event.key in MARKS || event.key === "s") && event.target === card) {
      const hit = hits.get(card.dataset.id);
      if (event.key === "s") onSearch(hit);
      else onMark(hit, MARKS[event.key]);
    } else if (event.key === "Enter" && event.target === card) {
      onSelect(card.dataset.id);
    }
  });
  root.addEventListener("focusin", (event) => {
    const card = event.target.closest(".card");
    if (!card) return;
    rove(card);
    onPoint(card.dataset.id);
  });
  root.addEventListener("pointerover", (event) => onPoint(event.target.closest(".card")?.dataset.id ?? null));
  root.addEventListener("pointerleave", () => onPoint(null));

  function neighbour(card, key) {
    const all = [...cards.values()];
    const place = all.indexOf(card);
    if (key in MOVES) return all[place + MOVES[key]];
    if (key === "Home") return all[0];
    if (key === "End") return all.at(-1);
    if (key === "ArrowDown") return nearest(all.slice(place + 1).filter((one) => one.offsetTop > card.offsetTop), card);
    if (key === "ArrowUp") return nearest(all.slice(0, place).filter((one) => one.offsetTop < card.offsetTop).reverse(), card);
    return undefined;
  }

  function rove(card) {
    for (const one of root.querySelectorAll('[tabindex="0"]')) one.tabIndex = -1;
    card.tabIndex = 0;
    for (const button of card.querySelectorAll("button")) button.tabIndex = 0;
  }

  function focus(card) {
    rove(card);
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "nearest" });
  }

  // A card that shows the same as before stays, so that its picture does not flicker.
  function fill(items, made) {
    const before = new Map(cards);
    const wereShown = new Map(order.map((item) => [item.id, item]));
    cards.clear();
    order = items;
    root.replaceChildren(...items.map((item) => {
      const card = alike(item, wereShown.get(item.id)) ? before.get(item.id) : made(item);
      cards.set(item.id, card);
      return element("li", {}, card);
    }));
    if (items.length) rove(cards.get(items[0].id));
  }

  function hitCard(hit) {
    const button = (kind, text, told, run) =>
      element("button", { type: "button", class: kind, text, tabindex: -1, "aria-label": `${told}: ${nameOf(hit)}`, on: { click: run } });
    const card = element("article", { class: "card", tabindex: -1, "data-id": hit.id, "aria-label": spoken(hit) },
      element("div", { class: "picture" }, thumbnails.thumbnail(hit.thumbnail, "")),
      element("p", { class: "label", text: nameOf(hit), title: hit.label ?? hit.id }),
      ...(takenFor(hit) === null ? [] : [element("p", {
        class: "kind name", text: takenFor(hit), title: `${takenFor(hit)}: the likeliest of the kinds that the metric knows`,
      })]),
      element("dl", { class: "figures" },
        ...figure("score", score(hit.score), "log-likelihood ratio of same kind to different kinds"),
        ...figure("same", share(hit.posterior), "probability that it is of the same kind"),
        ...figure("false", alarm(hit.false_alarm_rate), rateTold(hit.false_alarm_rate)),
        ...figure("taken", day(hit.time) ?? UNKNOWN, hit.time)),
      element("p", { class: "source name", title: origin(hit), text: fileName(hit.source || hit.scene) }),
      element("div", { class: "marks" },
        ...Object.values(MARKS).map((how) => button(how, how, `Mark as ${how}`, () => onMark(hit, how))),
        button("like", "search", "Search for this", () => onSearch(hit))));
    card.addEventListener("click", (event) => { if (!event.target.closest("button")) onSelect(hit.id); });
    return card;
  }

  function chipCard(chip) {
    return element("button", {
      type: "button", class: "card chip", tabindex: -1, "data-id": chip.id,
      "aria-label": `Search for ${nameOf(chip)}`, on: { click: () => onSearch(chip) },
    },
      element("span", { class: "picture" }, thumbnails.thumbnail(chip.thumbnail, "")),
      element("span", { class: "label", text: nameOf(chip), title: chip.id }));
  }

  return {
    show(found) {
      hits.clear();
      for (const hit of found) hits.set(hit.id, hit);
      fill(found, hitCard);
    },
    showChips(chips) {
      hits.clear();
      fill(chips, chipCard);
    },
    /** Draw the line under the hits that reach the threshold, and return how many do. */
    accept(threshold) {
      line.remove();
      if (threshold === null) {
        for (const card of cards.values()) card.classList.remove("below");
        return order.length;
      }
      const accepted = order.filter((hit) => hit.score >= threshold).length;
      order.forEach((hit, place) => cards.get(hit.id).classList.toggle("below", place >= accepted));
      if (accepted < order.length) root.insertBefore(line, cards.get(order[accepted].id).parentNode);
      return accepted;
    },
    mark(marks) {
      for (const [id, card] of cards) {
        for (const how of Object.values(MARKS)) {
          const so = marks.get(id)?.how === how;
          card.classList.toggle(`is-${how}`, so);
          card.querySelector(`.marks .${how}`)?.setAttribute("aria-pressed", String(so));
        }
      }
    },
    point(id) {
      for (const card of root.querySelectorAll(".pointed")) card.classList.remove("pointed");
      cards.get(id)?.classList.add("pointed");
    },
    /** Focus a card, or the first where that one is not there. */
    focusOn(id) {
      const card = cards.get(id) ?? cards.values().next().value;
      if (card) focus(card);
    },
    get focused() {
      return document.activeElement?.closest?.(".card")?.dataset.id ?? null;
    },
  };
}

function figure(name, value, title) {
  return [element("dt", { text: name, title }), element("dd", { text: value, title })];
}

/** What a chip shows, as far as it is known. */
export function nameOf(chip) {
  return chip.label ?? (chip.background ? "background" : "no label");
}

function origin({ source, scene, time, sensor }) {
  return [source, scene, time, sensor].filter(Boolean).join("\n");
}

function spoken(hit) {
  const same = hit.posterior === null ? "" : `, ${share(hit.posterior)} likely the same kind`;
  const kind = takenFor(hit);
  return `${nameOf(hit)}, score ${score(hit.score)}${same}${kind === null ? "" : `, taken for ${kind}`}`;
}

function rateTold(estimate) {
  if (!estimate) return "this metric knows no false-alarm rates";
  const doubt = estimate.supported ? "" : "; the data do not support it: a rough guide";
  return `how often a chip of another kind scores as much, ${estimate.method}${doubt}`;
}

function alike(item, before) {
  return before !== undefined && JSON.stringify(item) === JSON.stringify(before);
}

function nearest(candidates, card) {
  const row = candidates.filter((one) => one.offsetTop === candidates[0].offsetTop);
  return row.sort((a, b) => Math.abs(a.offsetLeft - card.offsetLeft) - Math.abs(b.offsetLeft - card.offsetLeft))[0];
}
