(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("charts").textContent);
  const element = (id) => document.getElementById(id);
  const { colour, axis, probability, draw, rowsOf, dashed, top10 } = charts;
  const state = { k: 0, threshold: 0.5 };

  const percent = (share) => {
    if (share === null || share === undefined) return "–";
    const value = 100 * share;
    if (value > 0 && value < 0.1) return "less than 0.1 %";
    const digits = value === 0 || value === 100 || (value >= 10 && value <= 90) ? 0 : 1;
    const shown = value.toFixed(digits);
    return `${shown === "100.0" ? "almost 100" : shown} %`;
  };

  // A line of very few points needs markers to be visible.
  const modeOf = (points) => (points.length < 5 ? "lines+markers" : "lines");

  const drawReliability = () =>
    charts.reliability("chart-reliability", data, element("scheme") && element("scheme").value);

  function drawDistribution() {
    const one = data.classes[state.k];
    if (!one || one.edges.length < 2) return;
    const middle = one.edges.slice(1).map((high, i) => (high + one.edges[i]) / 2);
    const log = element("log") && element("log").checked;
    const bars = (counts, name, more) => ({
      x: middle, y: counts, type: "bar", width: one.edges[1] - one.edges[0],
      marker: { color: colour(name), line: { color: colour("panel"), width: 1 } },
      hovertemplate: counts.map((n) =>
        `${data.weighted ? "%{y:,.0f} (weight)" : rowsOf(n)} around %{x:.3f}<extra></extra>`), ...more,
    });
    const rows = (title, counts, domain) =>
      axis(title, { domain, ...(log ? { type: "log", dtick: 1, range: [-0.15, top10(counts)] } : { rangemode: "tozero", nticks: 5 }) });
    draw("chart-distribution",
      [bars(one.with_event, "event", {}), bars(one.without_event, "other", { yaxis: "y2" })],
      { xaxis: probability("predicted probability", { anchor: "y2" }),
        yaxis: rows("rows of the class", one.with_event, [0.55, 1]),
        yaxis2: rows("other rows", one.without_event, [0, 0.45]) });
  }

  // Read at the next threshold on the curve, whose values are exact.
  function reading() {
    const one = data.classes[state.k];
    const i = one.threshold.findIndex((t) => t >= state.threshold);
    if (i < 0) return { i, threshold: state.threshold, precision: null, recall: 0, flagged: 0 };
    return { i, threshold: one.threshold[i], precision: one.precision[i], recall: one.recall[i], flagged: one.flagged[i] };
  }

  const decimals = (t) => String(Number(t < 0.01 ? t.toPrecision(3) : t.toFixed(4)));

  function words(read) {
    const name = data.classes[state.k].name;
    const at = `At threshold ${decimals(read.threshold)}`;
    if (read.i < 0) return `${at}: no row is flagged.`;
    const count = data.weighted ? "" : ` (${Math.round(read.flagged * data.n).toLocaleString("en")} of ${data.n.toLocaleString("en")})`;
    const found = read.recall === null
      ? `there is no row of class “${name}” to find`
      : `${percent(read.recall)} of all rows of class “${name}” are found`;
    return `${at}: ${percent(read.precision)} of flagged rows are right, ${found}, ` +
      `${percent(read.flagged)} of rows are flagged${count}.`;
  }

  function drawThreshold() {
    const one = data.classes[state.k];
    if (!one || !one.threshold.length) return;
    const read = reading();
    element("threshold-words").textContent = words(read);
    element("threshold-slider").setAttribute("aria-valuetext", words(read));
    const line = (y, name, dash, what, size) => ({
      x: one.threshold, y, mode: modeOf(one.threshold), cliponaxis: false, line: { color: colour(name), width: 2, dash, shape: "vh" },
      marker: { size, symbol: size > 7 ? "circle-open" : "circle", line: { width: 2 } },
      hovertemplate: `${what} %{y:.1%} at %{x:.3f}<extra></extra>`,
    });
    const mark = { type: "line", x0: read.threshold, x1: read.threshold, y0: 0, y1: 1, yref: "paper",
      line: { color: colour("ink"), width: 1.5 } };
    draw("chart-threshold",
      [line(one.precision, "event", "solid", "precision", 7), line(one.recall, "other", "dash", "recall", 12),
        line(one.flagged, "third", "dot", "flagged", 17)],
      { xaxis: probability("threshold"), yaxis: probability("share", { tickformat: ".0%" }), shapes: [mark] });
    drawRecall(one, read);
  }

  function drawRecall(one, read) {
    const traces = [
      dashed([0, 1], [one.precision[0], one.precision[0]]),
      { x: one.recall, y: one.precision, mode: modeOf(one.recall), line: { color: colour("event"), width: 2 },
        text: one.threshold.map((t) => t.toFixed(3)),
        hovertemplate: "precision %{y:.1%}, recall %{x:.1%}<br>at threshold %{text}<extra></extra>" },
    ];
    if (read.i >= 0) {
      traces.push({ x: [read.recall], y: [read.precision], mode: "markers", hoverinfo: "skip",
        marker: { size: 11, color: colour("other"), line: { color: colour("panel"), width: 2 } } });
    }
    draw("chart-recall", traces, {
      xaxis: probability("recall", { tickformat: ".0%" }), yaxis: probability("precision", { tickformat: ".0%" }),
    });
  }

  function setThreshold(value, from) {
    if (!Number.isFinite(value)) return;
    state.threshold = Math.min(1, Math.max(0, value));
    for (const id of ["threshold-slider", "threshold-number"]) {
      if (id !== from) element(id).value = String(Number(state.threshold.toFixed(6)));
    }
    drawThreshold();
  }

  function chooseClass(k) {
    state.k = k;
    for (const select of document.querySelectorAll(".class-choice")) select.value = String(k);
    drawDistribution();
    const thresholds = data.classes[k].threshold;
    const highest = thresholds.length ? thresholds[thresholds.length - 1] : 1;
    // If no row reaches the threshold, start at a visible point.
    setThreshold(highest < state.threshold ? thresholds[Math.floor(thresholds.length / 2)] : state.threshold);
  }

  function drawAll() {
    drawReliability();
    if (data.classes.length) {
      drawDistribution();
      drawThreshold();
    }
  }

  if (element("scheme")) element("scheme").addEventListener("change", drawReliability);
  if (data.classes.length) {
    element("log").addEventListener("change", drawDistribution);
    for (const select of document.querySelectorAll(".class-choice")) {
      select.addEventListener("change", () => chooseClass(Number(select.value)));
    }
    for (const id of ["threshold-slider", "threshold-number"]) {
      element(id).addEventListener("input", (event) => setThreshold(event.target.valueAsNumber, id));
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawReliability();
  if (data.classes.length) chooseClass(0);
})();
