// The slider: a false-alarm rate, the score that goes with it, and how many false hits to expect.

import { byId } from "./dom.js";
import { createDistributions } from "./distributions.js";
import { attainedAt, placeOf, rateAt, thresholdAt } from "./rates.js";
import { expectation, oneIn, sentence } from "./wording.js";

const AT_FIRST = 0.01;
const LOWEST = 1e-3; // where the gallery does not say

/** `onMove(threshold)` is called while the slider moves, `onSettle()` when it is let go. */
export function createThreshold({ onMove, onSettle }) {
  const slider = byId("slider");
  const distributions = createDistributions(byId("distributions"));
  let lowest = null; // the strictest rate, not known at first
  let known = null; // what the server says of the metric
  let rough = false; // several examples: rates were measured for one

  slider.addEventListener("input", () => {
    tell();
    onMove(current());
  });
  slider.addEventListener("change", onSettle);

  const rate = () => rateAt(Number(slider.value), lowest ?? LOWEST);
  const current = () => (known ? thresholdAt(known.rates, rate()) : null);

  function tell() {
    const now = current();
    const told = now ? oneIn(rate()) : "not known";
    const doubtful = now && !isSupported(now);
    byId("rate").value = doubtful ? `${told} ?` : told;
    slider.setAttribute("aria-valuetext", doubtful ? `${told}, not supported by the data: a rough guide` : told);
    slider.disabled = !now;
    distributions.cut(now?.value);
    byId("support").textContent = known ? support(now) : "\u00a0";
  }

  const isSupported = (now) => now.supported && !rough;

  function support(now) {
    if (!now) return sentence(known.reason ?? "this metric knows no false-alarm rates; label some chips, then recalibrate");
    if (rough) return "Rates were measured for one example; for several they are a rough guide.";
    if (!known.calibrated) return "Worked out from a model, not measured. Recalibrate to measure it on labelled chips.";
    if (!now.supported) {
      return "A rough guide: too few chips or places with labels support this rate. Label more, at random too, then recalibrate.";
    }
    return "Measured on labelled chips.";
  }

  function ofRows(rows) {
    const attained = attainedAt(known.rates, rate());
    return attained && { value: attained.value * rows, low: attained.low * rows, high: attained.high * rows };
  }

  return {
    rate,
    current,
    /** The lowest rate that means anything here, one false hit in the whole gallery; the rate stays if it can. */
    setLowest(value) {
      const next = Math.min(value || LOWEST, 0.25);
      if (next === lowest) return;
      const kept = lowest === null ? AT_FIRST : rate();
      lowest = next;
      slider.value = placeOf(Math.max(kept, lowest), lowest);
    },
    show(thresholds, hits, several) {
      known = thresholds;
      rough = several;
      distributions.show(thresholds.distributions, hits);
      tell();
    },
    /** Take over what the server says of the score at a rate, which until now lay between two of its answers. */
    learn(asked, exact) {
      const guess = thresholdAt(known.rates, asked);
      if (!exact || !guess || guess.exact) return;
      known.rates.push({ rate: asked, threshold: { ...exact, supported: rough ? guess.supported : exact.supported } });
    },
    /**
     * Say what to expect of the accepted; `open` where there may be more than are at hand, `told` is what the server
     * says of this very search and rate, null where it was not asked yet.
     */
    expect(accepted, rows, open, told) {
      const place = byId("expected");
      if (!current()) place.textContent = "All hits are shown, best first; none is accepted or refused.";
      else place.textContent = open ? `${accepted} or more are accepted.` : expectation(told ?? ofRows(rows), accepted);
    },
    clear() {
      byId("expected").textContent = "\u00a0";
    },
  };
}
