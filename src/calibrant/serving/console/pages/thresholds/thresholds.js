// Keep the field of a threshold without a promise in sync with the slider.
const [view] = JSON.parse(document.getElementById("charts").textContent);
const slider = document.getElementById("slider-0");
const field = document.getElementById("threshold");
const unit = document.getElementById("unit");

// Round down to the fewest digits that still act on the same rows, above the previous score.
function shorten(score, before) {
  for (let digits = 3; digits < 17; digits += 1) {
    const step = 10 ** (digits - 1 - Math.floor(Math.log10(Math.abs(score) || 1)));
    const rounded = Number((Math.floor(score * step) / step).toPrecision(digits));
    if (rounded <= score && rounded > before) return String(rounded);
  }
  return String(score);
}

function syncField() {
  const last = view.threshold.length;
  const place = slider.valueAsNumber;
  if (place === last) {
    [field.value, unit.value] = ["1", "probability"];
    return;
  }
  const saturated = view.logit !== null && !(view.threshold[place] > 0 && view.threshold[place] < 1);
  const scores = saturated ? view.logit : view.threshold;
  const chosen = view.chosen && place === view.chosen.at ? view.chosen[saturated ? "logit" : "threshold"] : null;
  field.value = chosen !== null ? String(chosen) : shorten(scores[place], place > 0 ? scores[place - 1] : -Infinity);
  unit.value = saturated ? "log-odds" : "probability";
}

// Copy a typed number unchanged.
function copyTyped(event) {
  if (!Number.isFinite(event.target.valueAsNumber)) return;
  field.value = event.target.value;
  unit.value = document.getElementById("unit-0").textContent === "Decision score" ? "probability" : "log-odds";
}

if (field) {
  slider.addEventListener("input", syncField);
  document.getElementById("number-0").addEventListener("input", copyTyped);
  // threshold.js registered first, so it has already moved the slider.
  document.getElementById("back-0")?.addEventListener("click", syncField);
}
