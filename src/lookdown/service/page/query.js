// What is searched for: an image that was dropped, pasted or chosen, or a chip; shown beside the results.

import { byId, element, takesText } from "./dom.js";
import { cropped } from "./crop.js";
import { bytes } from "./wording.js";
import { nameOf } from "./results.js";
import { say } from "./status.js";

/** `onQuery(query)` is called with what to search for; `limits()` and `canEmbed()` tell what the server takes. */
export function createQuery({ onQuery, limits, canEmbed, thumbnails }) {
  let offered = false; // an image is being asked about
  byId("choose").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", ({ target }) => {
    if (target.files[0]) offer(target.files[0]);
    target.value = ""; // so that the same file can be chosen again
  });
  window.addEventListener("paste", (event) => {
    const file = imageIn(event.clipboardData);
    if (file) offer(file);
    else if (!takesText(event.target)) say("There is no image on the clipboard. Copy a picture, not its link.");
  });
  listenForDrops(offer);

  async function offer(file) {
    if (offered || document.querySelector("dialog[open]")) return; // one question at a time
    offered = true;
    try {
      await ask(file);
    } finally {
      offered = false;
    }
  }

  async function ask(file) {
    if (!canEmbed()) {
      say("This gallery was made without an embedder, so it cannot search for a new image. Click one of its chips instead.");
      return;
    }
    const { upload_bytes: most, pixels } = limits();
    const tooLarge = file.size > most
      ? `The file has ${bytes(file.size)}, the server takes ${bytes(most)}. Cut a part out of it.` : null;
    const part = await cropped(file, { tooLarge, pixels });
    if (part === "unreadable") {
      if (tooLarge) say(`${tooLarge} This browser cannot open it, so cut it with another program.`);
      else onQuery({ told: file.name || "an image", image: file }); // perhaps the server can: GeoTIFF
    } else if (part) {
      onQuery({ told: part.told, image: part.image, picture: part.picture });
    }
  }

  return {
    ofChip(chip) {
      return { told: nameOf(chip), chip: chip.id, label: chip.label, path: chip.thumbnail };
    },
    show(query) {
      byId("query-told").textContent = query ? query.told : "Nothing yet.";
      byId("query-id").textContent = query?.chip ?? "\u00a0";
      const picture = !query ? null : query.path ? thumbnails.thumbnail(query.path, "The query")
        : query.picture ? element("img", { class: "thumbnail", src: query.picture, alt: "The query" }) : null;
      byId("query-picture").replaceChildren(...(picture ? [picture] : []));
    },
    /** The picture that a query is remembered by. */
    small(query) {
      if (query.path) return thumbnails.thumbnail(query.path, "");
      return query.picture ? element("img", { class: "thumbnail", src: query.picture, alt: "" }) : element("span", { class: "thumbnail" });
    },
    refuseUploads() {
      byId("choose").disabled = true;
      byId("query-hint").textContent = "This gallery has no embedder: search by clicking a chip.";
    },
  };
}

function imageIn(data) {
  return [...(data?.files ?? [])][0] ?? null;
}

function listenForDrops(offer) {
  const here = byId("drop-here");
  let depth = 0;
  const carriesFile = (event) => event.dataTransfer?.types.includes("Files");
  window.addEventListener("dragenter", (event) => { if (carriesFile(event)) here.hidden = ++depth === 0; });
  window.addEventListener("dragleave", (event) => { if (carriesFile(event)) here.hidden = --depth <= 0; });
  window.addEventListener("dragover", (event) => event.preventDefault());
  window.addEventListener("drop", (event) => {
    event.preventDefault(); // or the browser leaves the page for the file
    depth = 0;
    here.hidden = true;
    const file = imageIn(event.dataTransfer);
    if (file) offer(file);
    else say("That was no file. Drop an image from your disk, or copy and paste it.");
  });
}
