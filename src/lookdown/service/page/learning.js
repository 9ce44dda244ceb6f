// Teaching the metric by marks, measuring its rates anew, and adapting it to the archive; each is kept or dropped.

import { byId, element } from "./dom.js";
import { Refused } from "./api.js";
import { finished } from "./jobs.js";
import { keepIt } from "./comparison.js";
import { labelsOf, likelyKind, marksTold } from "./marks.js";
import { find } from "./searching.js";
import { explain, say } from "./status.js";
import { counted, sentence } from "./wording.js";

const READ_ONLY = "This server only answers searches. To teach it, start it with lookdown serve --access learn.";

/**
 * `now()` gives the current search (null before any) and its marks, `metric()` the one in use, `steps` takes what can
 * be undone, `onMetric()` is called when another metric is in use, `onLabels()` when labels have changed.
 */
export function createLearning(api, thumbnails, { now, metric, steps, onMetric, onLabels }) {
  const buttons = ["teach", "recalibrate", "adapt"].map(byId);
  const kind = byId("kind");
  let allowed = false;
  let busy = false;
  let typed = false; // the name was given by hand

  byId("teach").addEventListener("click", () => run(teach));
  byId("recalibrate").addEventListener("click", () => run(recalibrate));
  byId("adapt").addEventListener("click", () => run(adapt));
  kind.addEventListener("input", () => { typed = kind.value !== ""; update(); });

  function update() {
    const { search, marks } = now();
    const right = [...marks.values()].filter(({ how }) => how === "right").length;
    if (!typed) kind.value = likelyKind(marks, search?.asked.query);
    for (const field of [kind, byId("clusters")]) field.disabled = !allowed;
    for (const button of buttons) button.disabled = !allowed || busy;
    byId("teach").disabled ||= !right || !kind.value.trim();
    byId("learning-told").textContent = !allowed ? READ_ONLY
      : !marks.size ? "Mark results right, wrong or empty first."
        : !kind.value.trim() ? `${marksTold(marks)}. Say what the right ones are.`
          : `${marksTold(marks)}. Wrong ones keep another label, if any; empty ones are background.`;
  }

  function hold(held) {
    busy = held;
    steps.hold(held);
    update();
  }

  // What can be repeated by itself is run by itself, so that a server that was busy at it need not begin again.
  async function run(work) {
    hold(true);
    try {
      await work();
    } catch (error) {
      explain(error, error instanceof Refused ? () => run(work) : null);
    }
    hold(false);
  }

  async function teach() {
    const { marks } = now();
    const { labels, background } = labelsOf(marks, kind.value.trim());
    const { before } = await api.setLabels(labels, background);
    const written = Object.keys(labels).length + background.length;
    steps.add(`Labelled ${counted(written, "chip")} by ${marksTold(marks)}`, async () => {
      await restore(before);
      await onLabels();
    });
    await onLabels();
    await run(async () => tryMetric(await finished(api, api.teach, "Teaching the metric"), "Taught the metric"));
  }

  async function adapt() {
    const text = byId("clusters").value.trim();
    const clusters = text === "" || text === "auto" ? null : Number(text);
    if (clusters !== null && !(Number.isInteger(clusters) && clusters >= 2)) {
      say("The number of kinds must be a whole number of at least 2; leave it empty to have it found.");
      return;
    }
    await tryMetric(await finished(api, () => api.adapt(clusters), "Adapting the metric"), "Adapted the metric");
  }

  async function recalibrate() {
    const result = await finished(api, api.calibrate, "Measuring false-alarm rates");
    if (result?.metric) await run(() => use(result.metric, "Recalibrated"));
  }

  /** Compare a new metric with the one in use; keep it as a step, or drop it. */
  async function tryMetric(result, told) {
    if (!result?.changed || !result.metric) {
      say(sentence(result?.reason ?? "nothing better was found; the metric stays as it is"));
      return;
    }
    const { search } = now();
    const [before, after] = await Promise.all([metric(), result.metric].map((name) => hitsUnder(search, name)));
    const kept = await keepIt({ before, after, thumbnails, ...result });
    await run(() => (kept ? use(result.metric, told) : api.dropMetric(result.metric)));
  }

  async function hitsUnder(search, name) {
    return search ? find(api, { ...search.asked, metric: name }) : { metric: name, hits: [] };
  }

  async function use(name, told) {
    const before = metric();
    await api.useMetric(name);
    steps.add(`${told}: ${name} is in use`, async () => {
      await api.useMetric(before);
      await onMetric();
    });
    await onMetric();
  }

  /** Put labels back, those that had come with the chips as such. */
  async function restore(before) {
    for (const marked of [true, false]) {
      const chips = Object.entries(before).filter(([, was]) => was.marked === marked);
      if (!chips.length) continue;
      const labels = Object.fromEntries(chips.filter(([, was]) => !was.background).map(([id, was]) => [id, was.label]));
      await api.setLabels(labels, chips.filter(([, was]) => was.background).map(([id]) => id), marked);
    }
  }

  return {
    update,
    allow(access) {
      allowed = access !== "read";
      update();
    },
    setKinds(labels) {
      byId("kinds").replaceChildren(...Object.keys(labels).map((label) => element("option", { value: label })));
    },
    /** Another query: the name given by hand was for the last. */
    forget() {
      typed = false;
    },
  };
}
