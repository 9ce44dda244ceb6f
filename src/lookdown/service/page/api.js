// The server, one function a route. A lost server is waited for, a missing token is asked for.

import { sentence } from "./wording.js";

const TOKEN = "lookdown-token";
const LONGEST = 4000; // characters of an address: servers and proxies between refuse long ones

/** An answer that is not a success; the message is the server's sentence on what to do next. */
export class Refused extends Error {
  constructor(status, problem, retryAfter) {
    super(sentence(problem.detail || problem.title || `the server answered ${status}`));
    this.status = status;
    this.type = problem.type;
    this.retryAfter = retryAfter;
  }
}

/** No answer at all to something that must not be sent twice unasked. */
export class Unanswered extends Error {
  constructor() {
    super("The server does not answer. Try again when it is back.");
  }
}

/**
 * `waitForServer()` resolves when it answers again, `askForToken(refused)` resolves to a token.
 */
export function createApi({ waitForServer, askForToken }) {
  let token = sessionStorage.getItem(TOKEN);
  let asking = null;

  async function call(path, { method = "GET", json, form, accept = "application/json", signal, safe = method === "GET" } = {}) {
    for (;;) {
      const headers = { Accept: accept };
      if (token) headers.Authorization = `Bearer ${token}`;
      if (json !== undefined) headers["Content-Type"] = "application/json";
      const used = token;
      let response;
      try {
        response = await fetch(path, { method, headers, signal, body: json === undefined ? form : JSON.stringify(json) });
      } catch (error) {
        if (signal?.aborted) throw error;
        if (!safe) throw new Unanswered();
        await waitForServer();
        continue;
      }
      if (response.status === 401) {
        await renewToken(used);
        continue;
      }
      if (!response.ok) throw await refusal(response);
      return response;
    }
  }

  async function renewToken(used) {
    if (used !== token) return; // another call has a newer one already
    asking ??= askForToken(Boolean(used)).finally(() => (asking = null));
    token = await asking;
    sessionStorage.setItem(TOKEN, token);
  }

  const read = async (path, options) => (await call(path, options)).json();
  const change = (method, path, json) => read(path, { method, json });

  return {
    get hasToken() {
      return Boolean(token);
    },
    stats: () => read("/v1/stats"),
    thresholds: (metric) => read(`/v1/thresholds?metric=${encodeURIComponent(metric)}`),
    chips: (limit, offset) => read(`/v1/chips?limit=${limit}&offset=${offset}`),
    picture: async (path, signal) => (await call(path, { accept: "image/*", signal })).blob(),
    embeddingMap: async (limit, ids) => {
      const answers = await Promise.all(blocks(limit, ids).map((asked) => read(`/v1/embedding-map?${asked}`)));
      return { points: answers.flatMap(({ points }) => points) };
    },
    search: (request, { image, signal } = {}) => read("/v1/search", searchCall(request, image, { signal })),
    searchAs: (accept, request) => call("/v1/search", searchCall(request, null, { accept })),
    setLabels: (labels, background, marked = true) => change("PUT", "/v1/labels", { labels, background, marked }),
    useMetric: (name) => change("PUT", "/v1/metrics/current", { name }),
    dropMetric: (name) => call(`/v1/metrics/${encodeURIComponent(name)}`, { method: "DELETE" }),
    adapt: (clusters) => change("POST", "/v1/adapt", { clusters, method: "auto", labels: "marked" }),
    teach: () => change("POST", "/v1/teach", {}),
    calibrate: () => change("POST", "/v1/calibrate", {}),
    job: (id) => read(`/v1/jobs/${encodeURIComponent(id)}`),
  };
}

// The ids as parts of addresses, as many in each as it may be long.
function blocks(limit, ids) {
  const all = [`limit=${limit}`];
  for (const id of ids) {
    const part = `&ids=${encodeURIComponent(id)}`;
    if (all.at(-1).length + part.length > LONGEST) all.push(`limit=${limit}`);
    all.push(all.pop() + part);
  }
  return all;
}

function searchCall(request, image, options) {
  const asked = { method: "POST", safe: true, ...options };
  if (!image) return { ...asked, json: request };
  const form = new FormData();
  form.append("image", image, image.name || "query.png");
  form.append("request", JSON.stringify(request));
  return { ...asked, form };
}

async function refusal(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // a proxy may answer with a page of its own
  }
  return new Refused(response.status, problem, Number(response.headers.get("Retry-After")) || null);
}
