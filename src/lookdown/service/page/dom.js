// Elements, made without any markup from data: texts are always set as text.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id; the page is wrong where it is missing, so that is an error. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}

/** A new element; attributes that are null or false are left out, `on` holds listeners, `text` its text. */
export function element(tag, attributes = {}, ...children) {
  return dressed(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function drawn(tag, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, tag), attributes, children);
}

function dressed(node, { on = {}, text, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  if (text !== undefined) node.textContent = text;
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Whether keys typed here are text, so that they are not commands. */
export function takesText(target) {
  return target instanceof HTMLElement && (target.matches("textarea, select") || isTextInput(target));
}

function isTextInput(target) {
  return target.matches("input") && !["checkbox", "radio", "range", "button", "file"].includes(target.type);
}
