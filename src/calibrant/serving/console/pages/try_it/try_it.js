// The slider of a rule's threshold: what would be decided about this row. Both outcomes come from
// the server; here is only told on which side of the row's score a threshold lies.

const STEPS = 1000;

const probability = (odds) => 1 / (1 + Math.exp(-odds));
const logOdds = (p) => (p <= 0 ? -Infinity : p >= 1 ? Infinity : Math.log(p) - Math.log1p(-p));

// As many digits as tell a probability from 0 and 1.
function words(odds) {
  const p = probability(odds);
  const edge = Math.min(p, 1 - p);
  if (edge <= 1e-9) return `${p < 0.5 ? "0" : "1"} (log-odds ${odds.toFixed(2)})`;
  const digits = Math.max(4, 2 - Math.floor(Math.log10(edge)));
  return p.toFixed(Math.min(digits, 12));
}

function follow(part) {
  const slider = part.querySelector('input[type="range"]');
  const number = part.querySelector('input[type="number"]');
  const back = part.querySelector("button");
  const status = part.querySelector('[role="status"]');
  const { score, threshold, reach } = Object.fromEntries(
    ["score", "threshold", "reach"].map((name) => [name, Number(part.dataset[name])]));
  const own = part.dataset.reached === "1";

  const place = (odds) => Math.round(((Math.max(-reach, Math.min(reach, odds)) + reach) / (2 * reach)) * STEPS);
  const at = (step) => (step / STEPS) * 2 * reach - reach;

  // `whose`: what moved the threshold, so that it is not moved again.
  function show(odds, whose) {
    const unmoved = odds === threshold;
    const reached = unmoved ? own : score >= odds;
    const shown = unmoved ? part.dataset.thresholdWords : words(Math.max(-600, Math.min(600, odds)));
    if (whose !== slider) slider.value = String(place(odds));
    if (whose !== number) number.value = unmoved ? part.dataset.number : String(Number(probability(odds).toPrecision(4)));
    slider.setAttribute("aria-valuetext", shown);
    const where = reached ? "reaches" : "is below";
    const whoseWords = unmoved ? `the bundle’s threshold ${shown}` : `a threshold of ${shown}`;
    status.textContent = `This row’s score ${part.dataset.scoreWords} ${where} ${whoseWords}: the bundle would ` +
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

document.querySelectorAll(".turn").forEach(follow);
