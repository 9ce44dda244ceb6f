// One search, and the hits at hand for it: some at first, more when a threshold may accept more.

const AT_FIRST = 60;

/**
 * What is asked: `query` (told, picture, and one of chip, embedding, image), `where`, `marks` (id to hit and how it
 * is marked), `metric` (null is the one in use).
 */
export async function find(api, asked, signal) {
  const image = asked.query.chip || asked.query.embedding ? null : asked.query.image;
  const answer = await api.search(requestOf(asked, { k: AT_FIRST }), { image, signal });
  const all = answer.hits.length < AT_FIRST;
  return {
    asked: { ...asked, metric: answer.metric, query: known(asked.query, answer.example) },
    hits: answer.hits,
    knownDownTo: all ? -Infinity : answer.hits.at(-1).score,
    accepted: null, // where a rate accepts more than the server hands out, how many
    rate: null, // that was asked for last
    threshold: null, // of that rate
    expected: null, // false hits at it
    rows: answer.rows_searched,
    metric: answer.metric,
    notes: answer.notes ?? [],
  };
}

/** The same search with every hit that the rate accepts. */
export async function findMore(api, found, rate, signal) {
  const answer = await api.search(requestOf(found.asked, { false_alarm_rate: rate }), { signal });
  const threshold = answer.threshold?.value ?? -Infinity;
  const last = answer.hits.at(-1)?.score ?? Infinity;
  const knownDownTo = answer.truncated ? last : threshold;
  const below = found.hits.filter((hit) => hit.score < Math.min(knownDownTo, last));
  const fresh = new Set(answer.hits.map((hit) => hit.id));
  return {
    ...found,
    hits: [...answer.hits, ...below.filter((hit) => !fresh.has(hit.id))],
    knownDownTo: Math.min(knownDownTo, found.knownDownTo),
    accepted: answer.truncated ? answer.accepted : null,
    rate,
    threshold: answer.threshold,
    expected: answer.expected_false_hits,
    notes: answer.notes ?? found.notes,
  };
}

/** Whether several examples stand for the query; the quarter turns of an image count as one. */
export function hasSeveral({ marks }) {
  return [...marks.values()].some(({ how }) => how === "right");
}

/** The request in the words of the API. */
export function requestOf({ query, where, marks, metric }, size) {
  const marked = [...marks.entries()];
  return {
    examples: [
      ...(query.chip ? [query.chip] : query.embedding ? [query.embedding] : []),
      ...marked.filter(([, { how }]) => how === "right").map(([id]) => id),
    ],
    counter_examples: marked.filter(([, { how }]) => how !== "right").map(([id]) => id),
    ...(where ? { where } : {}),
    ...(metric ? { metric } : {}),
    turned: true, // an image may lie in any direction
    ...size,
  };
}

// An image is sent once; afterwards its embedding stands for it.
function known(query, answered) {
  if (query.chip) return query;
  return { ...query, image: null, embedding: answered.embedding, picture: query.picture ?? answered.thumbnail };
}
