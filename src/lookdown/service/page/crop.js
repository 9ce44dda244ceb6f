// Cutting one object out of an image before it is searched for, with the mouse, a finger or the keyboard.

import { byId, element } from "./dom.js";

const LONGEST = 900; // pixels of the canvas
const ENLARGED = 4; // how much a small image grows at most
const LEAST = 8; // pixels of a box
const GRIP = 14; // how near to a corner counts as on it
const PICTURE = 256; // pixels of the picture that is kept of a query
const STEP = 0.02; // of the image's longer side, at a key press

/** Ask for a part of the image. Resolves to the part, to null where it was cancelled, or to "unreadable". */
export async function cropped(file, { tooLarge, pixels }) {
  let image;
  try {
    image = await createImageBitmap(file);
  } catch {
    return "unreadable";
  }
  const box = await boxOf(image, tooLarge ?? (image.width * image.height > pixels ? "The image has too many pixels. Cut a part out of it." : null));
  if (!box) return null;
  const name = file.name || "a pasted image";
  if (isWhole(box, image)) return { image: file, told: name, picture: pictureOf(image, image.width, image.height) };
  const canvas = element("canvas", { width: box.width, height: box.height });
  canvas.getContext("2d").drawImage(image, box.x, box.y, box.width, box.height, 0, 0, box.width, box.height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return {
    image: new File([blob], "part.png", { type: "image/png" }),
    told: `a part of ${name}`,
    picture: pictureOf(canvas, box.width, box.height),
  };
}

function boxOf(image, tooLarge) {
  const dialog = byId("crop");
  const whole = { x: 0, y: 0, width: image.width, height: image.height };
  const scale = Math.min(ENLARGED, LONGEST / Math.max(image.width, image.height));
  const canvas = element("canvas", {
    width: Math.round(image.width * scale), height: Math.round(image.height * scale), tabindex: 0, role: "application",
    "aria-label": "The image with the box; arrow keys move it, with Shift they size it",
  });
  byId("crop-frame").replaceChildren(canvas);
  let box = { ...whole };

  function draw() {
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const [x, y, w, h] = [box.x, box.y, box.width, box.height].map((value) => value * scale);
    context.fillStyle = "rgb(0 0 0 / 55%)";
    context.beginPath();
    context.rect(0, 0, canvas.width, canvas.height);
    context.rect(x, y, w, h);
    context.fill("evenodd");
    context.lineWidth = 2;
    context.strokeStyle = "#fff";
    context.strokeRect(x + 1, y + 1, w - 2, h - 2);
    for (const [cx, cy] of corners(x, y, w, h)) {
      context.fillStyle = "#fff";
      context.fillRect(cx - 4, cy - 4, 8, 8);
    }
    byId("crop-told").value = isWhole(box, image)
      ? `whole image, ${image.width} × ${image.height} pixels` : `box of ${box.width} × ${box.height} pixels`;
    byId("crop-search").disabled = isWhole(box, image) && tooLarge !== null;
  }

  function set(next) {
    box = kept(next, image);
    draw();
  }

  followPointer(canvas, scale, () => box, set, () => set(whole));
  canvas.addEventListener("keydown", (event) => {
    const next = keyed(event, box, Math.max(1, Math.round(STEP * Math.max(image.width, image.height))), image);
    if (!next) return;
    event.preventDefault();
    set(next);
  });
  byId("crop-problem").textContent = tooLarge ?? "";
  byId("crop-whole").hidden = tooLarge !== null;
  draw();
  dialog.showModal();
  (tooLarge ? canvas : byId("crop-search")).focus();
  return new Promise((resolve) => {
    const end = new AbortController();
    const finish = (answer) => { end.abort(); dialog.close(); resolve(answer); };
    const on = (id, type, answer) => byId(id).addEventListener(type, () => finish(answer()), { signal: end.signal });
    on("crop-search", "click", () => box);
    on("crop-whole", "click", () => whole);
    on("crop-cancel", "click", () => null);
    on("crop", "cancel", () => null);
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !byId("crop-search").disabled) finish(box);
    }, { signal: end.signal });
  });
}

// A press on a corner sizes the box, inside moves it (unless it is the whole image), elsewhere begins a new one.
function followPointer(canvas, scale, get, set, clear) {
  let drag = null;
  const at = (event) => {
    const frame = canvas.getBoundingClientRect();
    const grow = canvas.width / frame.width / scale;
    const within = (value, most) => Math.min(most, Math.max(0, value)) * grow;
    return { x: within(event.clientX - frame.left, frame.width), y: within(event.clientY - frame.top, frame.height), grip: GRIP * grow };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = begun(at(event), get(), canvas.width / scale, canvas.height / scale);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const { x, y } = at(event);
    if (drag.move) set({ ...drag.box, x: drag.box.x + x - drag.x, y: drag.box.y + y - drag.y });
    else set({ x: Math.min(x, drag.x), y: Math.min(y, drag.y), width: Math.abs(x - drag.x), height: Math.abs(y - drag.y) });
  });
  canvas.addEventListener("pointerup", (event) => {
    const { x, y } = at(event);
    if (drag && !drag.move && Math.hypot(x - drag.x, y - drag.y) < LEAST / scale / 2) clear();
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => (drag = null));
}

function begun(point, box, width, height) {
  const points = corners(box.x, box.y, box.width, box.height);
  const near = points.findIndex(([x, y]) => Math.hypot(x - point.x, y - point.y) < point.grip);
  if (near >= 0) {
    const [x, y] = points[3 - near]; // the corner across stays
    return { x, y };
  }
  const inside = point.x > box.x && point.x < box.x + box.width && point.y > box.y && point.y < box.y + box.height;
  const whole = box.width > width - 2 && box.height > height - 2;
  return inside && !whole ? { move: true, x: point.x, y: point.y, box } : { x: point.x, y: point.y };
}

const corners = (x, y, w, h) => [[x, y], [x + w, y], [x, y + h], [x + w, y + h]];

function keyed(event, box, step, image) {
  const way = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
  if (!way) return null;
  const first = isWhole(box, image); // the whole image cannot move: begin with its middle half
  const from = first && !event.shiftKey
    ? { x: box.width / 4, y: box.height / 4, width: box.width / 2, height: box.height / 2 } : box;
  if (event.shiftKey) return { ...from, width: from.width + way[0], height: from.height + way[1] };
  return { ...from, x: from.x + way[0], y: from.y + way[1] };
}

function kept(box, image) {
  const width = Math.round(Math.min(image.width, Math.max(LEAST, box.width)));
  const height = Math.round(Math.min(image.height, Math.max(LEAST, box.height)));
  return {
    width, height,
    x: Math.round(Math.min(image.width - width, Math.max(0, box.x))),
    y: Math.round(Math.min(image.height - height, Math.max(0, box.y))),
  };
}

const isWhole = (box, image) => box.width === image.width && box.height === image.height;

// A small picture of a canvas or an image, as a data URL.
function pictureOf(source, width, height) {
  const scale = Math.min(1, PICTURE / Math.max(width, height));
  const canvas = element("canvas", { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) });
  canvas.getContext("2d").drawImage(source, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.9);
}
