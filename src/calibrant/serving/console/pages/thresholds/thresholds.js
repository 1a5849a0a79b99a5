// The field of a threshold without a promise follows the slider.
const [view] = JSON.parse(document.getElementById("charts").textContent);
const slider = document.getElementById("slider-0");
const field = document.getElementById("threshold");
const unit = document.getElementById("unit");

// As few digits as still act on the same rows: rounded down, but not to the score before.
function short(score, before) {
  for (let digits = 3; digits < 17; digits += 1) {
    const step = 10 ** (digits - 1 - Math.floor(Math.log10(Math.abs(score) || 1)));
    const rounded = Number((Math.floor(score * step) / step).toPrecision(digits));
    if (rounded <= score && rounded > before) return String(rounded);
  }
  return String(score);
}

function follow() {
  const last = view.threshold.length;
  const place = slider.valueAsNumber;
  if (place === last) {
    [field.value, unit.value] = ["1", "probability"];
    return;
  }
  const saturated = view.logit !== null && !(view.threshold[place] > 0 && view.threshold[place] < 1);
  const scores = saturated ? view.logit : view.threshold;
  const chosen = view.chosen && place === view.chosen.at ? view.chosen[saturated ? "logit" : "threshold"] : null;
  field.value = chosen !== null ? String(chosen) : short(scores[place], place > 0 ? scores[place - 1] : -Infinity);
  unit.value = saturated ? "log-odds" : "probability";
}

// A number that is typed is taken as it is.
function take(event) {
  if (!Number.isFinite(event.target.valueAsNumber)) return;
  field.value = event.target.value;
  unit.value = document.getElementById("unit-0").textContent === "Threshold" ? "probability" : "log-odds";
}

if (field) {
  slider.addEventListener("input", follow);
  document.getElementById("number-0").addEventListener("input", take);
  // By then threshold.js, which came first, has moved the slider.
  document.getElementById("back-0")?.addEventListener("click", follow);
}
