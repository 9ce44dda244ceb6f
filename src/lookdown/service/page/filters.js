// Which chips to search: labels, time, area, labelled or not, background or not.

import { byId, element } from "./dom.js";
import { count } from "./wording.js";

const SIDES = ["west", "south", "east", "north"];
const FLAGS = ["labelled", "background"];

/** `onChange()` is called when `where()`, the conditions in the words of the API, null where there is none, has changed. */
export function createFilters({ onChange, onDraw }) {
  const form = byId("filters-form");
  const fields = form.elements;
  let valid = { where: null, told: null }; // the last conditions that can be searched with

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", changed);
  form.addEventListener("reset", () => setTimeout(changed)); // the fields are emptied after this event
  byId("draw-area").addEventListener("click", onDraw);

  function changed() {
    const problem = wrong();
    byId("filters-problem").textContent = problem ?? "";
    if (problem) return;
    take();
    onChange();
  }

  function take() {
    valid = { where: where(), told: told() };
    byId("filters-told").textContent = valid.told ?? "no filter";
  }

  const chosen = () => [...form.querySelectorAll("#labels input:checked")].map((box) => box.value);
  const sides = () => SIDES.map((side) => fields[side].value.trim().replace(",", "."));

  function area() {
    const typed = sides();
    return typed.every((text) => text === "") ? null : typed.map(Number);
  }

  function wrong() {
    const typed = sides();
    const box = area();
    if (box && (typed.includes("") || box.some((value) => !Number.isFinite(value)))) return "Give all four sides of the area, in degrees.";
    if (box && (box.some((value, i) => Math.abs(value) > (i % 2 ? 90 : 180)) || box[1] > box[3])) {
      return "South must not be north of north; degrees go from −180 to 180 and from −90 to 90.";
    }
    if (fields.since.value && fields.until.value && fields.since.value > fields.until.value) return "The first day is after the last.";
    return null;
  }

  function where() {
    const found = { label: chosen(), since: fields.since.value, until: fields.until.value, box: area() };
    if (!found.label.length) delete found.label;
    for (const name of ["since", "until", "box"]) if (!found[name]) delete found[name];
    for (const flag of FLAGS) if (fields[flag].value) found[flag] = fields[flag].value === "true";
    return Object.keys(found).length ? found : null;
  }

  function told() {
    const [since, until] = [fields.since.value, fields.until.value];
    const parts = [
      chosen().join(" or "),
      since && until ? `${since} to ${until}` : since ? `from ${since}` : until ? `to ${until}` : "",
      area() ? "in an area" : "",
      ...FLAGS.map((flag) => (fields[flag].value ? `${fields[flag].value === "true" ? "only" : "not"} ${flag}` : "")),
    ].filter(Boolean);
    return parts.length ? parts.join(", ") : null;
  }

  return {
    where: () => valid.where,
    told: () => valid.told,
    setLabels(labels) {
      const kept = new Set(chosen());
      const names = Object.entries(labels).filter(([label]) => label !== "").sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      byId("labels").replaceChildren(...names.map(([label, n]) => {
        const box = element("input", { type: "checkbox", value: label });
        box.checked = kept.has(label);
        return element("label", {}, box, element("span", { class: "name", text: label }), element("span", { class: "hint", text: count(n) }));
      }));
      if (!names.length) byId("labels").replaceChildren(element("p", { class: "hint", text: "No chip has a label yet." }));
      if (!wrong()) take(); // a label may have gone
    },
    setArea(box) {
      SIDES.forEach((side, i) => { fields[side].value = box ? box[i].toFixed(4) : ""; });
      byId("filters").open = true;
      changed();
    },
    /** Show the conditions of another search, without searching. */
    set(conditions) {
      const wanted = conditions ?? {};
      for (const box of form.querySelectorAll("#labels input")) box.checked = wanted.label?.includes(box.value) ?? false;
      fields.since.value = wanted.since ?? "";
      fields.until.value = wanted.until ?? "";
      SIDES.forEach((side, i) => { fields[side].value = wanted.box ? String(wanted.box[i]) : ""; });
      for (const flag of FLAGS) fields[flag].value = wanted[flag] === undefined ? "" : String(wanted[flag]);
      byId("filters-problem").textContent = "";
      take();
    },
  };
}
