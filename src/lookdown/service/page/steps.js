// What was done, the last first. Each step knows how to undo itself; they are undone one by one.

import { byId, element } from "./dom.js";
import { explain } from "./status.js";

export function createSteps() {
  const done = [];
  const list = byId("steps");
  const button = byId("undo");
  let busy = false;
  let held = false; // something is under way that must not be undone half done

  button.addEventListener("click", undo);

  async function undo() {
    if (busy || held || !done.length) return;
    const step = done.at(-1);
    busy = true;
    button.disabled = true;
    try {
      await step.undo();
      done.splice(done.indexOf(step), 1); // another may have been added meanwhile
    } catch (error) {
      explain(error, undo);
    }
    busy = false;
    show();
  }

  function show() {
    button.disabled = busy || held || !done.length;
    button.title = done.length ? `Undo: ${done.at(-1).told}` : "";
    const rows = done.map(({ told }) => element("li", {}, element("span", { text: told }))).reverse();
    const none = element("li", { class: "hint", text: "Nothing yet. What you do is listed here and can be undone." });
    list.replaceChildren(...(rows.length ? rows : [none]));
  }

  show();
  return {
    undo,
    /** Undo nothing for now. */
    hold(now) {
      held = now;
      show();
    },
    /** Remember what was done, in words, and how to undo it. */
    add(told, undoIt) {
      done.push({ told, undo: undoIt });
      show();
    },
  };
}
