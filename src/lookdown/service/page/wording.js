// Figures in words: short, plain, the same everywhere.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const UNKNOWN = "–";

/** 1234 as "1,234". */
export function count(n) {
  return whole.format(n);
}

/** "1 chip", "2 chips". */
export function counted(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** A score with two decimals, with a true minus. */
export function score(value) {
  if (value === null) return UNKNOWN;
  return value.toFixed(2).replace("-", "−");
}

/** A probability in per cent that never claims to be certain. */
export function share(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value > 0.999) return "> 99.9 %";
  if (value < 0.001) return "< 0.1 %";
  return `${(100 * value).toFixed(1)} %`;
}

/** The kind that a hit is taken for, as "F-16, 93 %"; null where the metric knows no kinds. */
export function takenFor({ kind, kind_probability: probability }) {
  if (probability === null || probability === undefined) return null;
  const percent = 100 * probability;
  const figure = percent > 99.9 ? "> 99.9" : percent < 1 ? "< 1" : percent.toFixed(percent < 99.5 ? 0 : 1);
  return `${kind ?? "none of these"}, ${figure} %`;
}

/** A rate as "1 in 250". */
export function oneIn(rate) {
  const n = 1 / rate;
  if (n < 10) return `1 in ${Number(n.toPrecision(2))}`;
  return `1 in ${n < 100_000 ? count(Number(n.toPrecision(3))) : short.format(n)}`;
}

/** The rate of a hit, with a question mark where the data do not support it. */
export function alarm(estimate) {
  if (!estimate) return UNKNOWN;
  const told = estimate.value > 0 ? oneIn(estimate.value) : estimate.high > 0 ? `< ${oneIn(estimate.high)}` : "~ 0";
  return estimate.supported ? told : `${told} ?`;
}

/** How many of the accepted to take for false: an estimate with its interval, null where none is known. */
export function expectation(expected, accepted) {
  if (accepted === 0) return "Nothing is accepted at this rate.";
  if (!expected) return `How many of ${count(accepted)} are false is not known.`;
  const { value } = expected;
  const range = interval(expected);
  if (value < 0.05) return `Expect hardly any false hit among ${count(accepted)}${range}.`;
  if (value < 0.95) return `Expect fewer than 1 false hit of ${count(accepted)}${range}.`;
  if (value >= accepted) {
    return `Expect about ${count(value)} false hits${range}, and ${count(accepted)} were accepted: all may be false.`;
  }
  return `Expect about ${count(value)} false of ${count(accepted)}${range}.`;
}

function interval({ low, high }) {
  const [from, to] = [low, high].map((n) => (n < 10 ? String(Number(n.toFixed(1))) : count(n)));
  return from === to ? "" : ` (${from} to ${to})`;
}

/** An instant as its day. */
export function day(time) {
  return time ? time.slice(0, 10) : null;
}

/** The end of a path, where a file's name is. */
export function fileName(path) {
  return path.split(/[\\/]/).pop() || path;
}

/** A message as a sentence: servers and libraries begin small and end without a stop. */
export function sentence(text) {
  const whole = text.trim();
  if (!whole) return whole;
  return whole[0].toUpperCase() + whole.slice(1) + (/[.!?…]$/.test(whole) ? "" : ".");
}

/** Bytes as "20 MB". */
export function bytes(n) {
  return n >= 1e6 ? `${Number((n / 1e6).toPrecision(3))} MB` : `${Math.ceil(n / 1e3)} kB`;
}
