// Mouse, wheel, fingers and keys on the map, told as moves: pan, zoom, point at, select, draw a box.

const STILL = 4; // pixels that a press may wander and still be a click
const KEY_STEP = 40; // pixels
const FACTOR = 1.5;
const KEYS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** `sketch` is the rectangle that is shown while a box is drawn. */
export function followMap(svg, sketch, { pan, zoom, fit, step, choose, onPoint, onSelect, onBox }) {
  const fingers = new Map();
  let drawing = false;
  let pressed = null; // where a press began, and on what
  let box = null; // its corners so far

  const at = (event) => {
    const frame = svg.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const idAt = (event) => event.target.closest?.("[data-id]")?.dataset.id ?? null;

  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), at(event));
  }, { passive: false });

  svg.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, at(event));
    pressed = { place: at(event), id: idAt(event), moved: fingers.size > 1 };
    svg.setPointerCapture(event.pointerId);
    if (drawing) box = [at(event), at(event)];
  });

  svg.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return onPoint(idAt(event));
    const before = fingers.get(event.pointerId);
    const now = at(event);
    if (pressed && Math.hypot(now[0] - pressed.place[0], now[1] - pressed.place[1]) > STILL) pressed.moved = true;
    if (box) {
      box[1] = now;
      outline(sketch, box);
    } else if (fingers.size === 2) {
      pinch(event.pointerId, before, now);
    } else if (pressed?.moved) {
      pan(now[0] - before[0], now[1] - before[1]);
    }
    if (pressed?.moved || fingers.size === 2) fingers.set(event.pointerId, now);
    return undefined;
  });

  function pinch(id, before, now) {
    const [other] = [...fingers.entries()].filter(([one]) => one !== id).map(([, place]) => place);
    const apart = ([x, y]) => Math.max(1, Math.hypot(x - other[0], y - other[1]));
    zoom(apart(now) / apart(before), other);
  }

  const release = (event) => {
    fingers.delete(event.pointerId);
    if (box) {
      const [a, b] = box;
      const corners = [[Math.min(a[0], b[0]), Math.min(a[1], b[1])], [Math.max(a[0], b[0]), Math.max(a[1], b[1])]];
      const wide = corners[1][0] - corners[0][0] > STILL && corners[1][1] - corners[0][1] > STILL;
      endBox();
      if (wide) onBox(...corners);
    } else if (pressed && !pressed.moved && pressed.id && event.type === "pointerup") {
      onSelect(pressed.id);
    }
    pressed = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("pointerleave", () => onPoint(null));

  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in KEYS) pan(...KEYS[event.key].map((way) => way * KEY_STEP));
    else if (event.key === "+" || event.key === "=") zoom(FACTOR);
    else if (event.key === "-") zoom(1 / FACTOR);
    else if (event.key === "0") fit();
    else if (event.key === "n" || event.key === "p") step(event.key === "n" ? 1 : -1);
    else if (event.key === "Enter") choose();
    else if (event.key === "Escape") endBox();
    else return;
    event.preventDefault();
  });

  function endBox() {
    drawing = false;
    box = null;
    svg.classList.remove("drawing");
    sketch.classList.add("unseen");
  }

  return {
    beginBox() {
      drawing = true;
      svg.classList.add("drawing");
      svg.focus({ preventScroll: true });
      svg.scrollIntoView({ block: "nearest" });
    },
  };
}

function outline(sketch, [[x0, y0], [x1, y1]]) {
  sketch.setAttribute("x", Math.min(x0, x1));
  sketch.setAttribute("y", Math.min(y0, y1));
  sketch.setAttribute("width", Math.abs(x1 - x0));
  sketch.setAttribute("height", Math.abs(y1 - y0));
  sketch.classList.remove("unseen");
}
