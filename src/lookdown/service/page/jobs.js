// Long work on the server, one at a time: its progress in a place that is always there.

import { byId } from "./dom.js";
import { sentence } from "./wording.js";

const PAUSE = 400; // milliseconds between two looks

/** Start a job and return its result; a failed one throws what the server says of it. */
export async function finished(api, start, told) {
  const place = byId("job");
  const bar = byId("job-progress");
  place.classList.add("running");
  bar.removeAttribute("value"); // moves without an end until one is known
  tell(`${told} …`);
  try {
    let job = await start();
    while (job.status !== "done") {
      if (job.status === "failed") throw new Error(sentence(job.error?.detail ?? "the work failed; the server's log says why"));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      job = await api.job(job.id);
      if (job.progress !== null && job.progress !== undefined) bar.value = job.progress;
      tell(job.status === "waiting" ? "Waiting for its turn …" : job.message ? sentence(job.message) : `${told} …`);
    }
    tell(sentence(job.result?.reason ?? "done"));
    return job.result;
  } catch (error) {
    tell("It did not work.");
    throw error;
  } finally {
    place.classList.remove("running");
  }
}

function tell(text) {
  byId("job-told").textContent = text;
}
