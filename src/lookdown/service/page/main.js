// The page as a whole: what is searched now, and how its parts hear of each other.

import { byId, element, takesText } from "./dom.js";
import { createApi } from "./api.js";
import { CSV, GEOJSON, download } from "./download.js";
import { createEmbeddingsMap } from "./embeddings_map.js";
import { createFilters } from "./filters.js";
import { createFootprintsMap } from "./footprints_map.js";
import { createLearning } from "./learning.js";
import { createMarks, marked, marksTold } from "./marks.js";
import { createQuery } from "./query.js";
import { isSame } from "./rates.js";
import { createResults, nameOf } from "./results.js";
import { createSearches } from "./searches.js";
import { find, findMore, hasSeveral } from "./searching.js";
import { askForToken, explain, hush, say, waitForServer } from "./status.js";
import { createSteps } from "./steps.js";
import { createThreshold } from "./threshold.js";
import { createThumbnails } from "./thumbnails.js";
import { count, counted, sentence } from "./wording.js";

const CHIPS = 48; // to click on before any search, at a time
const PAUSE = 600; // milliseconds without a change until it is said aloud

const api = createApi({ waitForServer, askForToken });
const thumbnails = createThumbnails(api);
const rates = new Map(); // name of a metric to what is known of its rates
let stats = null;
let search = null; // the current one: what `find` returned, with a number
let marks = new Map(); // id to the hit and how it is marked
let searched = 0;
let running = new AbortController(); // the search that is under way
let speaking = 0; // the timer of what is to be said aloud
let chips = []; // of the gallery, shown before any search

const point = (id) => { for (const view of [results, map, plane]) view.point(id); };
const select = (id) => { point(id); results.focusOn(id); };

const steps = createSteps();
const results = createResults(byId("grid"), thumbnails, { onMark: mark, onSearch: searchForChip, onPoint: point, onSelect: select });
const map = createFootprintsMap(byId("map"), byId("map-told"), { onPoint: point, onSelect: select, onArea: (box) => filters.setArea(box) });
const plane = createEmbeddingsMap(api, thumbnails, { onPoint: point, onSelect: select, onSearch: searchForChip });
const query = createQuery({ onQuery: (asked) => begin(asked, new Map()), limits: () => stats.limits, canEmbed: () => stats?.can_embed, thumbnails });
const strip = createMarks(thumbnails, { onUnmark: (id) => mark(marks.get(id).hit, marks.get(id).how) });
const filters = createFilters({ onChange: filtered, onDraw: () => map.draw() });
const threshold = createThreshold({ onMove: accept, onSettle: settle });
const searches = createSearches({ small: query.small, onReturn: goTo });
const learning = createLearning(api, thumbnails, {
  now: () => ({ search, marks }), metric: () => stats.metric.name, steps, onMetric: metricChanged, onLabels: refreshStats,
});

byId("again").addEventListener("click", () => begin(search.asked.query, marks));
byId("geojson").addEventListener("click", () => save(GEOJSON));
byId("csv").addEventListener("click", () => save(CSV));
byId("more").addEventListener("click", () => showChips());
byId("map-in").addEventListener("click", () => map.zoom(1.5));
byId("map-out").addEventListener("click", () => map.zoom(1 / 1.5));
byId("map-fit").addEventListener("click", () => map.fit());
window.addEventListener("keydown", (event) => {
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || takesText(event.target)) return;
  event.preventDefault();
  if (!document.querySelector("dialog[open]")) steps.undo();
});

function searchForChip(chip) {
  begin(query.ofChip(chip), new Map());
}

/** Search, show what was found, and make it a step that can be undone. */
async function begin(asked, examples) {
  const signal = began();
  byId("found").classList.add("searching");
  try {
    const where = filters.where();
    const found = await find(api, { query: asked, where, whereTold: filters.told(), marks: new Map(examples), metric: null }, signal);
    const thresholds = await thresholdsOf(found.metric);
    if (signal.aborted) return;
    hush();
    const [before, marksBefore] = [search, marks]; // as they are by now: some may have been marked meanwhile
    const anew = asked !== before?.asked.query;
    if (anew) learning.forget();
    searched += 1;
    search = { ...found, number: searched };
    if (anew) marks = new Map(examples); // else those that were not searched with stay too
    const more = examples.size ? `with ${marksTold(examples)}` : filters.told() ?? "";
    steps.add(`Searched for ${asked.told} ${more}`.trim(), () => goBack(before, marksBefore));
    searches.keep(search);
    show(thresholds);
    if (byId("found").getBoundingClientRect().top < 0) byId("found").scrollIntoView();
    await settle();
  } catch (error) {
    explain(error, () => begin(asked, examples));
  } finally {
    ended(signal);
  }
}

async function thresholdsOf(name) {
  if (!rates.has(name)) rates.set(name, await api.thresholds(name));
  return rates.get(name);
}

function show(thresholds, { sameSearch = false } = {}) {
  const focused = results.focused;
  const several = hasSeveral(search.asked);
  query.show(search.asked.query);
  results.show(search.hits);
  map.show(search.hits, stats.bounds, { stay: sameSearch });
  map.showArea(search.asked.where?.box);
  plane.show(search.hits);
  threshold.show(thresholds, search.hits, several);
  byId("found-title").textContent = search.hits.length ? "Results" : "No chip was found";
  byId("notes").textContent = !search.hits.length ? "No chip meets the filters. Widen or clear them."
    : several ? "" : search.notes.map(sentence).join(" "); // with several examples the slider says it
  byId("more").hidden = true;
  for (const id of ["geojson", "csv"]) byId(id).disabled = !search.hits.length;
  showMarks();
  accept();
  if (focused) results.focusOn(focused);
}

/** Draw the line at the slider's rate; works on the hits at hand, so it can follow the hand. */
function accept() {
  if (!search) return;
  const cut = threshold.current()?.value ?? null;
  const accepted = results.accept(cut);
  const asked = isSettled();
  const counts = asked && search.accepted !== null; // more than the server hands out
  const open = cut !== null && cut < search.knownDownTo && !counts;
  const all = counts ? search.accepted : accepted;
  for (const view of [map, plane]) view.accept(cut);
  threshold.expect(all, search.rows, open, asked ? search.expected : null);
  const most = all > accepted ? `, the best ${count(search.hits.length)} of them shown` : "";
  const told = cut === null ? counted(search.hits.length, "hit") : `${count(all)}${open ? " or more" : ""} accepted${most}`;
  tell(`${told}, of ${counted(search.rows, "chip")} searched with ${search.metric}`);
}

/** Say what is shown; aloud with what to expect of it, once the slider has come to rest. */
function tell(told) {
  byId("found-told").textContent = told;
  byId("found-told").title = told; // it may be cut short
  clearTimeout(speaking);
  speaking = setTimeout(() => { byId("spoken").textContent = `${sentence(told)} ${byId("expected").textContent}`; }, PAUSE);
}

const isSettled = () => search.rate !== null && isSame(search.rate, threshold.rate());

/** Ask the server for all that the rate accepts, and how many of them to take for false. */
async function settle() {
  if (!search || !threshold.current() || isSettled()) return;
  const signal = began();
  try {
    const found = await findMore(api, search, threshold.rate(), signal);
    const thresholds = await thresholdsOf(found.metric);
    if (signal.aborted) return;
    threshold.learn(found.rate, found.threshold);
    search = found;
    searches.keep(search);
    show(thresholds, { sameSearch: true });
  } catch (error) {
    explain(error, settle);
  } finally {
    ended(signal);
  }
}

/** Only the last search counts: end the one before. */
function began() {
  running.abort();
  running = new AbortController();
  byId("found").setAttribute("aria-busy", "true");
  return running.signal;
}

function ended(signal) {
  if (running.signal !== signal) return;
  byId("found").removeAttribute("aria-busy");
  byId("found").classList.remove("searching");
}

function mark(hit, how) {
  const before = marks;
  marks = marked(marks, hit, how);
  const name = nameOf(hit);
  const told = marks.has(hit.id) ? `Marked ${name} ${how}` : `Took the mark of ${name} away`;
  steps.add(told, () => { marks = before; showMarks(); });
  showMarks();
}

function showMarks() {
  results.mark(marks);
  strip.show(marks);
  byId("again").disabled = !marks.size || !search;
  byId("again").textContent = marks.size ? `Search again with ${marksTold(marks)}` : "Search again with marks";
  learning.update();
}

function filtered() {
  map.showArea(filters.where()?.box);
  if (search) begin(search.asked.query, search.asked.marks);
}

async function goTo(other) {
  if (other.number === search?.number) return;
  const [before, marksBefore] = [search, marks];
  try {
    await goBack(other, other.asked.marks);
    steps.add(`Went back to ${other.asked.query.told}`, () => goBack(before, marksBefore));
  } catch (error) {
    explain(error, () => goTo(other));
  }
}

async function goBack(other, theirMarks) {
  const signal = began();
  try {
    const thresholds = await thresholdsOf(other?.metric ?? stats.metric.name); // may fail, so first
    signal.throwIfAborted(); // a newer search counts
    search = other;
    marks = new Map(theirMarks);
    filters.set(other?.asked.where);
    searches.show(other);
    if (other) show(thresholds);
    else await start(thresholds);
  } finally {
    ended(signal);
  }
  if (!signal.aborted) await settle();
}

async function metricChanged() {
  rates.clear();
  await refreshStats();
  if (byId("found").classList.contains("searching")) return; // what comes is under the metric in use
  const signal = began();
  const now = search;
  try {
    const found = now && await find(api, { ...now.asked, metric: null }, signal);
    const thresholds = await thresholdsOf(found?.metric ?? stats.metric.name);
    if (signal.aborted) return;
    if (now) {
      search = { ...found, number: now.number };
      searches.keep(search);
      show(thresholds);
    } else {
      threshold.show(thresholds, [], false);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    ended(signal);
  }
  if (!signal.aborted) await settle();
}

async function save(kind) {
  try {
    const accepted = await download(api, search, threshold.current() ? threshold.rate() : null, kind);
    if (accepted > stats.limits.hits) {
      say(`The file holds the best ${count(stats.limits.hits)} of ${counted(accepted, "accepted hit")}: the server hands out no more. Be stricter, or filter, to have all.`);
    }
  } catch (error) {
    explain(error, () => save(kind));
  }
}

async function refreshStats() {
  stats = await api.stats();
  document.title = `${stats.name} · lookdown`;
  byId("gallery-told").textContent = [stats.name, counted(stats.chips, "chip"), `metric ${stats.metric.name}`].join(" · ");
  filters.setLabels(stats.labels);
  learning.setKinds(stats.labels);
  learning.allow(stats.access);
  threshold.setLowest(stats.lowest_rate);
  plane.renew();
}

/** Before any search: chips of the gallery to click on. */
async function start(thresholds) {
  search = null;
  query.show(null);
  map.show([], stats.bounds);
  plane.show([]);
  threshold.show(thresholds, [], false);
  threshold.clear();
  byId("found-title").textContent = "Chips of this gallery";
  byId("notes").textContent = "";
  for (const id of ["geojson", "csv"]) byId(id).disabled = true;
  chips = [];
  showMarks();
  await showChips();
}

async function showChips() {
  const first = chips.length === 0;
  const { chips: more, total } = await api.chips(CHIPS, chips.length);
  if (search) return; // meanwhile
  const next = more[0]?.id;
  chips = [...chips, ...more];
  results.showChips(chips);
  if (!first && next) results.focusOn(next);
  tell(total ? "Click one to find what looks like it." : "");
  byId("more").hidden = chips.length >= total;
  if (!total) showEmpty();
}

function showEmpty() {
  byId("found-title").textContent = "This gallery is empty";
  byId("grid").replaceChildren(element("li", { class: "empty" },
    element("p", { text: "Put chips into it on the command line, then load this page again:" }),
    element("code", { text: `lookdown index ${stats.name} FOLDER` }),
    element("p", {}, element("button", { type: "button", text: "Load again", on: { click: () => location.reload() } }))));
}

async function open() {
  try {
    await refreshStats();
    if (stats.tile_url) map.useTiles(stats.tile_url);
    if (!stats.can_embed) query.refuseUploads();
    const thresholds = await thresholdsOf(stats.metric.name);
    if (!search) await start(thresholds);
  } catch (error) {
    explain(error, open);
  }
}

byId("filters").open = matchMedia("(min-width: 1181px) and (min-height: 900px)").matches;
open();
