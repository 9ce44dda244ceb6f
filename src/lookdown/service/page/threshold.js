// The slider: a false-alarm rate, the score that goes with it, and how many false hits to expect.

import { byId } from "./dom.js";
import { createDistributions } from "./distributions.js";
import { placeOf, rateAt, thresholdAt } from "./rates.js";
import { expectation, oneIn, sentence } from "./wording.js";

const AT_FIRST = 0.01;

/** `onMove(threshold)` is called while the slider moves, `onSettle()` when it is let go. */
export function createThreshold({ onMove, onSettle }) {
  const slider = byId("slider");
  const distributions = createDistributions(byId("distributions"));
  let lowest = 1e-3;
  let known = null; // what the server says of the metric
  let rough = false; // several examples: rates were measured for one

  slider.addEventListener("input", () => {
    tell();
    onMove(current());
  });
  slider.addEventListener("change", onSettle);

  const rate = () => rateAt(Number(slider.value), lowest);
  const current = () => (known ? thresholdAt(known.rates, rate()) : null);

  function tell() {
    const now = current();
    const told = now ? oneIn(rate()) : "not known";
    byId("rate").value = now && !isSupported(now) ? `${told} ?` : told;
    slider.setAttribute("aria-valuetext", told);
    slider.disabled = !now;
    distributions.cut(now?.value);
    byId("support").textContent = known ? support(now) : "\u00a0";
  }

  const isSupported = (now) => now.supported && !rough;

  function support(now) {
    if (!now) return sentence(known.reason ?? "this metric knows no false-alarm rates; label some chips, then recalibrate");
    if (rough) return "Rates were measured for one example; for several they are a rough guide.";
    if (!now.supported) {
      return "A rough guide: too few chips or places with labels support this rate. Label more, at random too, then recalibrate.";
    }
    if (!known.calibrated) return "Worked out from a model, not measured. Recalibrate to measure it on labelled chips.";
    return "Measured on labelled chips.";
  }

  return {
    rate,
    current,
    /** The lowest rate that means anything here: one false hit in the whole gallery. */
    setLowest(value) {
      lowest = Math.min(value || 1e-3, 0.25);
      slider.value = placeOf(Math.max(AT_FIRST, lowest), lowest);
    },
    setRate(value) {
      slider.value = placeOf(value, lowest);
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
    /** Say what to expect of the accepted; `open` where there may be more than are at hand. */
    expect(accepted, rows, open) {
      const now = current();
      if (!now) byId("expected").textContent = "All hits are shown, best first; none is accepted or refused.";
      else byId("expected").textContent = open ? `${accepted} or more are accepted.` : expectation(rate() * rows, accepted);
    },
    clear() {
      byId("expected").textContent = "\u00a0";
    },
  };
}
