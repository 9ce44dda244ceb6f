// What went wrong and what to do: a banner that covers nothing and moves nothing, and the question for the token.

import { byId, element } from "./dom.js";
import { Refused } from "./api.js";

const BUSY = "urn:lookdown:busy"; // it will be done in a moment
const FIRST_PAUSE = 2; // seconds until the first try; each pause is twice the last, up to
const LAST_PAUSE = 15;

const banner = byId("banner");
let lost = null; // the promise of a server that is being waited for

/** Say something; `action` is a button's text and what it does. */
export function say(text, action = null) {
  if (lost) return; // nothing else matters until the server is back
  show(text, ...(action ? [button(action.text, action.run)] : []), button("Close", hush));
}

/** Take the banner away. */
export function hush() {
  banner.hidden = true;
  banner.replaceChildren();
}

/** Say what a failed request means; `again` repeats it. An aborted one says nothing. */
export function explain(error, again = null) {
  if (error.name === "AbortError") return;
  const retry = again && { text: "Try again", run: () => { hush(); again(); } };
  if (!(error instanceof Refused)) {
    say(error.message, retry);
  } else if (error.status === 413) {
    say(`The image is too large. ${error.message}`);
  } else if (error.status === 415) {
    say(`That file was not taken. ${error.message}`);
  } else if (error.status === 429) {
    const pause = error.retryAfter ? ` Wait ${error.retryAfter} s.` : "";
    say(`The server has too much to do. ${error.message}${pause}`, retry);
  } else {
    say(error.message, error.status >= 500 || error.type === BUSY ? retry : null);
  }
}

/** Resolve when the server answers again; it is tried by itself, and at once when the button is pressed. */
export function waitForServer() {
  lost ??= untilBack().finally(() => {
    lost = null;
    hush();
  });
  return lost;
}

async function untilBack() {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
    await countDown(pause);
    try {
      if ((await fetch("/healthz", { cache: "no-store" })).ok) return;
    } catch {
      // still gone
    }
  }
}

function countDown(seconds) {
  return new Promise((resolve) => {
    const told = element("span");
    const text = () => `The server does not answer. Is lookdown serve still running? Trying again in ${seconds} s.`;
    const done = () => { clearInterval(timer); told.textContent = "Trying …"; resolve(); };
    const timer = setInterval(() => {
      seconds -= 1;
      if (seconds <= 0) done();
      else told.textContent = text();
    }, 1000);
    told.textContent = text();
    show(told, button("Try again now", done));
  });
}

/** Ask for the token; resolves when one was typed. */
export function askForToken(refused) {
  const dialog = byId("token");
  const text = byId("token-text");
  if (refused) byId("token-told").textContent = "That token was refused. Check it with whoever started the server.";
  text.value = "";
  const open = () => {
    if (!dialog.open) dialog.showModal();
    text.focus();
  };
  open();
  return new Promise((resolve) => {
    dialog.addEventListener("close", open); // nothing works without it
    byId("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.removeEventListener("close", open);
      dialog.close();
      resolve(text.value.trim());
    }, { once: true });
  });
}

function show(...children) {
  banner.replaceChildren(...children.map((child) => (typeof child === "string" ? element("span", { text: child }) : child)));
  banner.hidden = false;
}

function button(text, run) {
  return element("button", { type: "button", text, on: { click: run } });
}
