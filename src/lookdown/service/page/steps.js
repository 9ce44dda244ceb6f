// What was done, the last first. Each step knows how to undo itself; they are undone one by one.

import { byId, element } from "./dom.js";
import { explain } from "./status.js";

export function createSteps() {
  const done = [];
  const list = byId("steps");
  const button = byId("undo");
  let busy = false;

  button.addEventListener("click", undo);

  async function undo() {
    if (busy || !done.length) return;
    busy = true;
    button.disabled = true;
    try {
      await done.at(-1).undo();
      done.pop();
    } catch (error) {
      explain(error, undo);
    }
    busy = false;
    show();
  }

  function show() {
    button.disabled = !done.length;
    button.title = done.length ? `Undo: ${done.at(-1).told}` : "";
    const rows = done.map(({ told }) => element("li", {}, element("span", { text: told }))).reverse();
    const none = element("li", { class: "hint", text: "Nothing yet. What you do is listed here and can be undone." });
    list.replaceChildren(...(rows.length ? rows : [none]));
  }

  show();
  return {
    undo,
    /** Remember what was done, in words, and how to undo it. */
    add(told, undoIt) {
      done.push({ told, undo: undoIt });
      show();
    },
  };
}
