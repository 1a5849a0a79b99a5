// The slider of a rule's threshold: the decision about this row. Both outcomes come from the
// server; the script only determines on which side of the row's score a threshold is.

const STEPS = 1000;

const probability = (odds) => 1 / (1 + Math.exp(-odds));
const logOdds = (p) => (p <= 0 ? -Infinity : p >= 1 ? Infinity : Math.log(p) - Math.log1p(-p));

// Format with enough digits to distinguish a probability from 0 and 1.
function formatOdds(odds) {
  const p = probability(odds);
  const edge = Math.min(p, 1 - p);
  if (edge <= 1e-9) return `${p < 0.5 ? "0" : "1"} (log-odds ${odds.toFixed(2)})`;
  const digits = Math.max(4, 2 - Math.floor(Math.log10(edge)));
  return p.toFixed(Math.min(digits, 12));
}

function attach(part) {
  const slider = part.querySelector('input[type="range"]');
  const number = part.querySelector('input[type="number"]');
  const back = part.querySelector("button");
  const status = part.querySelector('[role="status"]');
  const { score, threshold, reach } = Object.fromEntries(
    ["score", "threshold", "reach"].map((name) => [name, Number(part.dataset[name])]));
  const reachedByBundle = part.dataset.reached === "1";

  const place = (odds) => Math.round(((Math.max(-reach, Math.min(reach, odds)) + reach) / (2 * reach)) * STEPS);
  const at = (step) => (step / STEPS) * 2 * reach - reach;

  // `source`: the control that changed the threshold, which must not be set again.
  function show(odds, source) {
    const unmoved = odds === threshold;
    const reached = unmoved ? reachedByBundle : score >= odds;
    const shown = unmoved ? part.dataset.thresholdWords : formatOdds(Math.max(-600, Math.min(600, odds)));
    if (source !== slider) slider.value = String(place(odds));
    if (source !== number) number.value = unmoved ? part.dataset.number : String(Number(probability(odds).toPrecision(4)));
    slider.setAttribute("aria-valuetext", shown);
    const where = reached ? "reaches" : "is below";
    const sourceWords = unmoved ? `the bundle’s threshold ${shown}` : `a threshold of ${shown}`;
    status.textContent = `This row’s decision score ${part.dataset.scoreWords} ${where} ${sourceWords}: the bundle would ` +
      `${reached ? part.dataset.met : part.dataset.missed}.`;
  }

  slider.addEventListener("input", () => show(at(Number(slider.value)), slider));
  number.addEventListener("input", () => {
    const typed = number.value.trim() === "" ? NaN : Number(number.value);
    if (typed >= 0 && typed <= 1) show(logOdds(typed), number);
  });
  back.addEventListener("click", () => show(threshold, back));
  show(threshold, null);
  part.hidden = false;
}

document.querySelectorAll(".turn").forEach(attach);
