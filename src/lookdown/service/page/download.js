// The accepted hits as a file, made by the server.

import { element } from "./dom.js";
import { requestOf } from "./searching.js";

export const GEOJSON = { accept: "application/geo+json", ending: "geojson" };
export const CSV = { accept: "text/csv", ending: "csv" };

/** Save what the rate accepts, or where no rate is known the hits at hand; returns how many are accepted. */
export async function download(api, found, rate, { accept, ending }) {
  const size = rate === null ? { k: Math.max(1, found.hits.length) } : { false_alarm_rate: rate };
  const answer = await api.searchAs(accept, requestOf(found.asked, size));
  const url = URL.createObjectURL(await answer.blob());
  const link = element("a", { href: url, download: `lookdown-${plain(found.asked.query.told)}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return Number(answer.headers.get("X-Lookdown-Accepted"));
}

function plain(text) {
  return text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "hits";
}
