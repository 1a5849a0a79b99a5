// The page of a study. The charts of its thresholds are drawn by threshold.js.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("charts").textContent);
  const element = (id) => document.getElementById(id);
  const { colour, axis, probability, draw, rowsOf } = charts;
  const colours = ["event", "other", "third", "fourth", "fifth", "sixth"];
  const dashes = ["solid", "dash", "dot"];

  const people = data.candidates;
  const best = people.find((one) => one.chosen);
  const base = people.find((one) => one.baseline);
  const drawn = people.filter((one) => one.focus);
  const panels = [...drawn.map((one) => one.focus), data.bundle.panel && data.bundle.focus].filter(Boolean);

  const colourOf = (one) => colour(one.reference ? "muted" : colours[people.indexOf(one) % 6]);
  // Six colours and three dashes: eighteen lines that differ, the first six in both.
  const dashOf = (k) => dashes[(k + Math.floor(k / 6)) % 3];
  const lineOf = (one) => ({
    color: colourOf(one), width: one.chosen ? 3.5 : 2, dash: dashOf(people.indexOf(one)),
  });
  // Names are shown as text: plotly would read tags in them.
  const plain = (name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const narrow = () => document.documentElement.clientWidth < 600;

  // Reliability: dots as on every page, and squares over them for other rows or another model.
  function reliability(id, part, other, { name = "logs", small = false } = {}) {
    const scheme = element("scheme") && element("scheme").value;
    if (!part || !element(id)) return;
    charts.reliability(id, part, scheme, small);
    const bins = other && other.bins[scheme || Object.keys(other.bins)[0]];
    if (!bins || !element(id).data) return;
    Plotly.addTraces(id, {
      x: bins.score, y: bins.rate, mode: "lines+markers", opacity: 0.9,
      line: { color: colour("other"), width: 1.5, dash: "dot" },
      marker: { size: 7, symbol: "square", color: colour("other") },
      text: bins.count.map((n) => `${name}: ${rowsOf(n)}`),
      hovertemplate: "said %{x:.3f}, happened %{y:.3f}<br>%{text}<extra></extra>",
    });
  }

  // The first screen: reliability before and after calibration, and the first promise.
  function drawLead() {
    const chart = element("chart-lead-reliability");
    const before = chart && chart.dataset.before ? best.reliability.own : null;
    reliability("chart-lead-reliability", data.bundle.reliability, before, { name: "before", small: true });
    const curve = element("chart-lead-rates");
    if (!curve) return;
    const point = data.points[Number(curve.dataset.point)];
    const proved = curve.dataset.proved ? [charts.level(Number(curve.dataset.proved), { color: colour("ink"), dash: "dot" })] : [];
    if (point) charts.drawRates("chart-lead-rates", point, { room: 6, shapes: proved });
    else drawRatesOf("chart-lead-rates", data.bundle.focus, { dtick: 0.2 });
  }

  function drawReliability() {
    drawLead();
    if (base) reliability("chart-reliability-base", base.reliability.own, base.reliability.logs);
    reliability("chart-reliability-best", best.reliability.own, best.reliability.logs);
    reliability("chart-reliability-bundle", data.bundle.reliability);
    drawOther();
  }

  function drawOther() {
    const [k, part] = element("other-candidate").value.split(" ");
    const shown = people[Number(k)].reliability;
    reliability("chart-reliability-other", shown[part], part === "own" ? shown.logs : null);
  }

  // Histograms: one small panel for each candidate, all on the same two scales.
  function drawHistograms() {
    const log = element("log") && element("log").checked;
    const most = (key) => Math.max(1, ...panels.flatMap((one) => one[key]));
    const [above, below] = [most("with_event"), most("without_event")];
    const rows = (title, top, domain) =>
      axis(title, { domain, ...(log ? { type: "log", dtick: 1, range: [-0.15, Math.log10(top) + 0.1] } : { range: [0, 1.05 * top], nticks: 4 }) });
    panels.forEach((one, k) => {
      const middle = one.edges.slice(1).map((high, i) => (high + one.edges[i]) / 2);
      const bars = (counts, name, what, more) => ({
        x: middle, y: counts, type: "bar", marker: { color: colour(name) },
        hovertemplate: `%{y:,.0f} ${what} around %{x:.3f}<extra></extra>`, ...more,
      });
      draw(`chart-histogram-${k}`,
        [bars(one.with_event, "event", "rows of the class", {}), bars(one.without_event, "other", "other rows", { yaxis: "y2" })], {
          bargap: 0.1, xaxis: probability("probability", { dtick: 0.5, anchor: "y2" }),
          yaxis: rows("class", above, [0.55, 1]), yaxis2: rows("others", below, [0, 0.45]),
        });
    });
  }

  const modeOf = (points) => (points.length < 5 ? "lines+markers" : "lines");

  function drawCurves() {
    const share = { tickformat: ".0%" };
    const curve = (one, line, name) => ({
      x: one.recall, y: one.precision, mode: modeOf(one.recall), line, text: one.threshold.map((t) => t.toFixed(3)),
      hovertemplate: `${plain(name)}<br>precision %{y:.1%}, recall %{x:.1%}<br>at threshold %{text}<extra></extra>`,
    });
    const lines = drawn.map((one) => curve(one.focus, lineOf(one), one.name));
    if (data.bundle.panel) lines.push(curve(data.bundle.focus, { color: colour("ink"), width: 2.5 }, data.bundle.name));
    draw("chart-recall", lines, { xaxis: probability("recall", share), yaxis: probability("precision", share) });
    panels.forEach((one, k) => drawRatesOf(`chart-rates-of-${k}`, one, { dtick: 0.5 }));
  }

  // Precision and recall of the class in focus at every threshold.
  function drawRatesOf(id, one, steps) {
    const line = (y, name, dash, what) => ({
      x: one.threshold, y, mode: modeOf(y), line: { color: colour(name), width: 2.5, dash, shape: "vh" },
      hovertemplate: `${what} %{y:.1%} at %{x:.3f}<extra></extra>`,
    });
    draw(id, [line(one.precision, "event", "solid", "precision"), line(one.recall, "other", "dash", "recall")],
      { xaxis: probability("threshold", steps), yaxis: probability("", { tickformat: ".0%", ...steps }) });
  }

  // Put each name where it covers neither a mark nor another name: right, left, above or below.
  // Candidates without room for a label are named on hover.
  const crowded = people.length > 8;
  function labels(marks, span, size) {
    // Labels must avoid each mark and the line to its second mark.
    const taken = marks.flatMap(({ x, y, to }) => {
      const [from, end] = [span.y(y) * size.h, span.y(to ?? y) * size.h].sort((a, b) => a - b);
      return [{ x: span.x(x) * size.w - 9, y: span.y(y) * size.h - 9, w: 18, h: 18 }, { x: span.x(x) * size.w - 2, y: from, w: 4, h: end - from }];
    });
    const rank = (mark) => (mark.first ? 0 : 1);
    return marks.filter((mark) => mark.name).sort((a, b) => rank(a) - rank(b)).flatMap((mark) => {
      const w = 7.2 * mark.name.length + 6;
      const [px, py] = [span.x(mark.x) * size.w, span.y(mark.y) * size.h];
      const places = [[12, -9], [-12 - w, -9], [-w / 2, -29], [-w / 2, 11], [12, -27], [12, 9], [-12 - w, -27], [-12 - w, 9],
        [-w / 2, -46], [-w / 2, 28], [12, -44], [-12 - w, -44]];
      const cost = ([dx, dy]) => {
        const box = { x: px + dx, y: py + dy, w, h: 18 };
        const out = Math.max(0, -box.x) + Math.max(0, box.x + w - size.w) + Math.max(0, -box.y) + Math.max(0, box.y + 18 - size.h);
        const hits = taken.filter((t) => box.x < t.x + t.w && t.x < box.x + w && box.y < t.y + t.h && t.y < box.y + 18).length;
        return 100 * hits + 10 * out;
      };
      const [dx, dy] = places.reduce((a, b) => (cost(b) < cost(a) ? b : a));
      if (crowded && !mark.first && cost([dx, dy]) >= 100) return [];
      taken.push({ x: px + dx, y: py + dy, w, h: 18 });
      return [{ x: mark.x, y: mark.y, text: plain(mark.name), showarrow: false, xanchor: "left", yanchor: "top", xshift: dx, yshift: -dy,
        font: { color: mark.colour, size: 13 } }];
    });
  }

  const labelOf = ({ name, short, chosen }) => {
    if (!narrow()) return chosen ? `${name} (chosen)` : name;
    const text = short.replace(/^Focal, /, "").replace(/^Cross-entropy(?=[ ,]|$)/, "CE")
      .replace(/ \(seed (\d+)\)/, " #$1").replace(/, ensemble of (\d+)$/, " ×$1").replace(/, MC dropout.*$/, " MC");
    return text.length > 14 ? `${text.slice(0, 13)}…` : text;
  };

  // Own and scaled marks of each candidate, joined; the band is what chance gives.
  function drawFrontier() {
    const across = element("across").value;
    const shown = people.filter((one) => one[across] !== null && one.ece !== null);
    const bundle = data.bundle[across] === null ? null : data.bundle;
    const xs = [...shown.map((one) => one[across]), ...(bundle ? [bundle[across]] : [])];
    const ys = [...shown.flatMap((one) => [one.ece, one.scaledEce ?? one.ece]), data.bundle.ece ?? 0, data.floor ? data.floor.most : 0];
    const [low, high, top] = [Math.min(...xs), Math.max(...xs), 1.12 * Math.max(...ys, 0.01)];
    const room = 0.18 * (high - low || 0.02);
    const range = across === "nll" ? [high + room, low - room] : [low - room, high + room];
    const pair = (one) => ({
      x: [one[across], one[across]], y: [one.ece, one.scaledEce], mode: "lines+markers", cliponaxis: false,
      line: { color: colourOf(one), width: 1.5 },
      marker: { size: one.chosen ? 15 : 11, color: [colourOf(one), colour("panel")], line: { color: colourOf(one), width: 2.5 } },
      text: ["as it is", "after temperature scaling"],
      hovertemplate: `${plain(one.name)}, %{text}<br>${across === "nll" ? "log loss" : "accuracy"} %{x:.3f}, ECE %{y:.4f}<extra></extra>`,
    });
    const marks = shown.flatMap((one) => [
      { x: one[across], y: one.ece, to: one.scaledEce, name: labelOf(one), colour: colourOf(one), first: one.chosen || one.baseline },
      { x: one[across], y: one.scaledEce ?? one.ece }]);
    const traces = shown.map(pair);
    if (bundle) {
      marks.push({ x: bundle[across], y: bundle.ece });
      traces.push({ x: [bundle[across]], y: [bundle.ece], mode: "markers", cliponaxis: false,
        marker: { size: 13, symbol: "diamond", color: colour("ink"), line: { color: colour("panel"), width: 2 } },
        hovertemplate: `${plain(bundle.name)}<br>%{x:.3f}, ECE %{y:.4f}<extra></extra>` });
    }
    const box = element("chart-frontier").getBoundingClientRect();
    const span = { x: (v) => (v - range[0]) / (range[1] - range[0]), y: (v) => 1 - v / top };
    const shapes = data.floor ? [
      { type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: 0, y1: data.floor.most, fillcolor: colour("band"), opacity: 0.45, line: { width: 0 } },
      { type: "line", layer: "below", xref: "paper", x0: 0, x1: 1, y0: data.floor.mean, y1: data.floor.mean, line: { color: colour("muted"), width: 1, dash: "dash" } }] : [];
    draw("chart-frontier", traces, {
      xaxis: axis(across === "nll" ? "log loss after temperature (right is lower)" : "accuracy", { range, nticks: narrow() ? 4 : 8, tickformat: across === "nll" ? ".3f" : ".1%" }),
      yaxis: axis("calibration error (ECE)", { range: [0, top] }),
      shapes, annotations: labels(marks, span, { w: box.width - 75, h: box.height - 60 }),
    });
  }

  const figures = { refinement: "log loss after temperature", nll: "log loss", ece: "ECE", f1: "macro F1" };

  function drawTraining() {
    if (!element("chart-training")) return;
    const name = element("recorded").value;
    const shown = people.filter((one) => one.epochs.length);
    const lines = shown.map((one) => ({
      x: one.epochs, y: one.records[name], mode: modeOf(one.epochs), line: lineOf(one),
      hovertemplate: `${plain(one.name)}<br>%{y:.4f} after epoch %{x}<extra></extra>`,
    }));
    const dots = shown.filter((one) => one.records[name][one.best] !== undefined).map((one) => ({
      x: [one.epochs[one.best]], y: [one.records[name][one.best]], mode: "markers", hoverinfo: "skip", cliponaxis: false,
      marker: { size: one.chosen ? 13 : 9, color: colourOf(one), line: { color: colour("panel"), width: 2 } },
    }));
    draw("chart-training", [...lines, ...dots], { xaxis: axis("epoch", { nticks: 10 }), yaxis: axis(figures[name]) });
  }

  // Gammas reach from -2 to 20: powers on both sides of 0.
  const bent = (g) => (g === null ? null : Math.sign(g) * Math.log1p(Math.abs(g) / 0.2));

  function drawGammas() {
    data.gammas.forEach((one, k) => {
      const line = (bin, i, y, more) => ({
        x: one.step, y, mode: modeOf(one.step), line: { color: colour(colours[i]), width: 2.5, dash: dashes[i] }, ...more,
      });
      const errors = one.bins.map((bin, i) => line(bin, i, bin.error, { hovertemplate: `${bin.title}: error %{y:.3f}<extra></extra>` }));
      const gammas = one.bins.map((bin, i) => line(bin, i, bin.gamma.map(bent), {
        yaxis: "y2", text: bin.gamma.map((g) => (g === null ? "" : g.toFixed(2))), hovertemplate: `${bin.title}: gamma %{text}<extra></extra>` }));
      const all = one.bins.flatMap((bin) => bin.gamma).filter((g) => g !== null);
      const [low, high] = [Math.min(0, ...all), Math.max(1, ...all)];
      const ticks = [-2, -0.5, 0, 0.5, 2, 5, 20].filter((g) => g >= low - 0.1 && g <= high + 0.1);
      const zero = (yref) => ({ type: "line", xref: "paper", x0: 0, x1: 1, yref, y0: 0, y1: 0, line: { color: colour("muted"), width: 1, dash: "dot" } });
      draw(`chart-gamma-${k}`, [...errors, ...gammas], {
        xaxis: axis("update", { anchor: "y2" }),
        yaxis: axis(narrow() ? "conf. − acc." : "confidence − accuracy", { domain: [0.56, 1] }),
        yaxis2: axis("gamma", { domain: [0, 0.48], tickvals: ticks.map(bent), ticktext: ticks.map(String) }),
        shapes: [zero("y"), zero("y2")],
      });
      legendOf(one, k);
    });
  }

  function legendOf(one, k) {
    const items = one.bins.map((bin, i) => {
      const item = document.createElement("li");
      const key = document.createElement("span");
      key.className = `key line ${colours[i]} ${["", "dashed", "dotted"][i]}`;
      item.append(key, `${bin.title}: confidence ${bin.sure} at the end`);
      return item;
    });
    element(`legend-gamma-${k}`).replaceChildren(...items);
  }

  function drawAll() {
    drawReliability();
    drawHistograms();
    drawCurves();
    drawFrontier();
    drawTraining();
    drawGammas();
  }

  const on = (id, what) => element(id) && element(id).addEventListener("change", what);
  on("scheme", drawReliability);
  on("other-candidate", drawOther);
  on("log", drawHistograms);
  on("across", drawFrontier);
  on("recorded", drawTraining);
  // A chart that was drawn while it was hidden has no size yet.
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      for (const chart of details.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(chart);
    });
  }
  let late;
  addEventListener("resize", () => {  // names are placed by the size of the chart
    clearTimeout(late);
    late = setTimeout(drawFrontier, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
