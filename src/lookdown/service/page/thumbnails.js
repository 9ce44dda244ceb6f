// Pictures of chips. A picture cannot carry a token, so with one it is fetched and shown as a blob.

import { element } from "./dom.js";

const AT_ONCE = 6; // fetched at a time
const AGAIN = 1500; // milliseconds until a picture that failed is tried once more

export function createThumbnails(api) {
  const waiting = [];
  let running = 0;

  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      waiting.push(target);
      work();
    }
  }, { rootMargin: "300px" });

  async function work() {
    if (running >= AT_ONCE || !waiting.length) return;
    const picture = waiting.shift();
    running += 1;
    try {
      const url = URL.createObjectURL(await api.picture(picture.dataset.path));
      picture.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
      picture.src = url;
    } catch {
      picture.classList.add("missing");
    }
    running -= 1;
    work();
  }

  /** A picture of a square's size whose place is kept while it loads. */
  function thumbnail(path, alt) {
    const picture = element("img", { class: "thumbnail", alt, width: 128, height: 128, decoding: "async", draggable: "false" });
    if (api.hasToken) {
      picture.dataset.path = path;
      seen.observe(picture);
    } else {
      picture.loading = "lazy";
      picture.addEventListener("error", () => again(picture, path), { once: true });
      picture.src = path;
    }
    return picture;
  }

  return { thumbnail };
}

function again(picture, path) {
  picture.addEventListener("error", () => picture.classList.add("missing"), { once: true });
  setTimeout(() => { picture.src = path; }, AGAIN);
}
