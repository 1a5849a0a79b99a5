// Shared by all pages: theme colours, axes, and the reliability diagram.
const charts = (() => {
  "use strict";
  const config = { displayModeBar: false, responsive: true, showTips: false };

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const axis = (title, more) => ({
    title: { text: title, standoff: 8 }, gridcolor: colour("line"), zeroline: false,
    linecolor: colour("line"), tickcolor: colour("line"), fixedrange: true, automargin: true, ...more,
  });

  const probability = (title, more) => axis(title, { range: [-0.03, 1.03], dtick: 0.2, ...more });

  const layout = (more) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { color: colour("ink"), size: 13, family: "system-ui, 'Liberation Sans', sans-serif" },
    margin: { l: 8, r: 20, t: 8, b: 8 }, dragmode: false, hovermode: "closest",
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("muted"), font: { color: colour("ink") } },
    ...more,
  });

  const draw = (id, traces, shape) => {
    if (document.getElementById(id)) Plotly.react(id, traces, layout(shape), config);
  };

  const rowsOf = (count) => `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}`;

  const dashed = (x, y) => ({
    x, y, mode: "lines", line: { color: colour("muted"), width: 1.5, dash: "dash" }, hoverinfo: "skip",
  });

  const level = (y, more) => ({
    type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour("muted"), width: 1.5, dash: "dash", ...more },
  });

  // Reliability: dots over bars of chance, and the rows of each bin in a strip below unless it is small.
  function reliability(id, part, scheme, small) {
    const bins = part.bins[scheme || Object.keys(part.bins)[0]];
    if (!bins || !bins.score.length) return;
    const banded = bins.band_low.length > 0;
    const inside = bins.rate.map((r, i) => banded && r >= bins.band_low[i] - 1e-6 && r <= bins.band_high[i] + 1e-6);
    const words = bins.score.map((s, i) =>
      `said ${s.toFixed(3)}, happened ${bins.rate[i].toFixed(3)}<br>${rowsOf(bins.count[i])}` +
      (banded ? `<br>calibrated: ${bins.band_low[i].toFixed(3)} to ${bins.band_high[i].toFixed(3)}` : ""));
    const traces = [dashed([0, 1], [0, 1])];
    if (banded) {
      const middle = bins.band_low.map((low, i) => (low + bins.band_high[i]) / 2);
      const half = bins.band_low.map((low, i) => (bins.band_high[i] - low) / 2);
      traces.push({
        x: bins.score, y: middle, mode: "markers", marker: { size: 0.1, color: colour("band") }, hoverinfo: "skip",
        error_y: { type: "data", array: half, thickness: 9, width: 0, color: colour("band") },
      });
    }
    traces.push(
      { x: part.smooth.score, y: part.smooth.rate, mode: "lines", opacity: 0.6, hoverinfo: "skip",
        line: { color: colour("event"), width: 2 } },
      { x: bins.score, y: bins.rate, mode: "markers", text: words, hovertemplate: "%{text}<extra></extra>",
        marker: { size: 9, color: inside.map((yes) => colour(yes ? "panel" : "event")),
          line: { color: colour("event"), width: 2 } } });
    if (small) {
      draw(id, traces, { xaxis: probability(part.axes.x), yaxis: probability(part.axes.y) });
      return;
    }
    traces.push(
      { x: bins.low.map((low, i) => (low + bins.high[i]) / 2), y: bins.count, type: "bar", yaxis: "y2",
        width: bins.low.map((low, i) => bins.high[i] - low), text: words, textposition: "none",
        marker: { color: colour("event"), opacity: 0.5, line: { color: colour("panel"), width: 1 } },
        hovertemplate: "%{text}<extra></extra>" });
    draw(id, traces, {
      xaxis: probability(part.axes.x, { anchor: "y2" }),
      yaxis: probability(part.axes.y, { domain: [0.27, 1] }),
      yaxis2: axis("rows (log)", { domain: [0, 0.19], type: "log", dtick: 1, range: [-0.15, top10(bins.count)] }),
    });
  }

  const top10 = (counts) => Math.log10(Math.max(10, ...counts)) + 0.15;

  return { colour, axis, probability, draw, rowsOf, dashed, level, top10, reliability };
})();
