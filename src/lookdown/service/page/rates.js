// False-alarm rates and the scores that go with them, worked out from the list that the server gives.

export const HIGHEST = 0.5;

/** The rate at a place of the slider: 0 is the highest, 1 the lowest, even steps are even factors. */
export function rateAt(place, lowest) {
  return HIGHEST * (lowest / HIGHEST) ** place;
}

/** The place of a rate on the slider. */
export function placeOf(rate, lowest) {
  return Math.min(1, Math.max(0, Math.log(rate / HIGHEST) / Math.log(lowest / HIGHEST)));
}

/** Whether two rates are the same but for the rounding of the slider. */
export function isSame(rate, other) {
  return Math.abs(rate / other - 1) < 1e-9;
}

/**
 * The rate that is really attained where one is asked for, null where the server does not say: below the last rate that
 * was measured the two are far apart.
 */
export function attainedAt(rates, rate) {
  const known = rates.filter((one) => Number.isFinite(one.attained?.value)).sort((a, b) => b.rate - a.rate);
  if (!known.length) return null;
  const after = known.findIndex((one) => one.rate <= rate * (1 + 1e-9));
  const low = known.at(after); // the lowest known where all are higher
  const high = after > 0 && !isSame(low.rate, rate) ? known[after - 1] : low;
  const part = high === low ? 0 : Math.log(high.rate / rate) / Math.log(high.rate / low.rate);
  const between = (name) => high.attained[name] + part * (low.attained[name] - high.attained[name]);
  return { value: between("value"), low: between("low"), high: between("high") };
}

/** The score to accept at, between the rates that are known by their logarithms; null where none is. */
export function thresholdAt(rates, rate) {
  const known = rates.filter((one) => Number.isFinite(one.threshold?.value)).sort((a, b) => b.rate - a.rate);
  if (!known.length) return null;
  const asked = known.find((one) => isSame(one.rate, rate));
  if (asked) return answer(asked, asked, 0);
  const after = known.findIndex((one) => one.rate < rate);
  if (after === 0) return { ...answer(known[0], known[0], 0), exact: false };
  if (after < 0) return { ...answer(known.at(-1), known.at(-1), 0), supported: false, exact: false };
  const [high, low] = [known[after - 1], known[after]];
  return answer(high, low, Math.log(high.rate / rate) / Math.log(high.rate / low.rate));
}

function answer(high, low, part) {
  return {
    value: high.threshold.value + part * (low.threshold.value - high.threshold.value),
    supported: high.threshold.supported && low.threshold.supported,
    exact: part === 0, // as the server says, not between two of its answers
    method: low.threshold.method,
  };
}
