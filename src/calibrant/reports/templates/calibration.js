(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("charts").textContent);
  const scheme = document.getElementById("scheme");

  function drawAll() {
    for (const side of Object.keys(data)) {
      charts.reliability(`chart-${side}`, data[side], scheme && scheme.value);
    }
  }

  if (scheme) scheme.addEventListener("change", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
