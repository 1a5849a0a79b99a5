(() => {
  "use strict";
  const found = JSON.parse(document.getElementById("charts").textContent);
  const views = found.points || found;  // a study's page holds other charts too
  const { colour, axis, probability, draw, level } = charts;
  const colours = ["event", "other", "third"];
  const dashes = ["solid", "dash", "dot"];

  const count = (n) => n.toLocaleString("en");
  const amount = (value) => (value > 0 && value < 0.00005 ? value.toExponential(1) : value.toFixed(4));
  const upper = (text) => text[0].toUpperCase() + text.slice(1);

  const percent = (share) => {
    if (share === null) return "–";
    const value = 100 * share;
    const shown = `${value.toFixed(value > 0 && value < 0.95 ? 2 : 1)} %`;
    if (value < 100 && shown === "100.0 %") return "> 99.9 %";
    return shown === "0.00 %" ? "< 0.01 %" : shown;
  };

  // Enough digits to distinguish a threshold from 0 and 1; beyond that its log-odds.
  const thresholdWords = (p, logit) => {
    if (p > 0 && p < 0.001) return String(Number(p.toPrecision(3)));
    const edge = Math.min(p, 1 - p);
    const digits = edge > 0 ? Math.max(4, 2 - Math.floor(Math.log10(edge))) : Infinity;
    if (digits <= 12) return String(Number(p.toFixed(digits)));
    const whole = p < 0.5 ? "0" : "1";
    return logit === null ? whole : `${whole} (log-odds ${Number(logit.toPrecision(4))})`;
  };

  // Log-odds, labelled as probabilities, as many as fit.
  function ticks(low, high, room) {
    const small = [...Array(16)].map((_, i) => 10 ** -(16 - i));
    const stops = [...small.map((p) => [Math.log(p / (1 - p)), p < 0.0001 ? p.toExponential(0) : String(Number(p.toFixed(4)))]), [0, "0.5"],
      ...small.slice(-6).reverse().map((p) => [Math.log((1 - p) / p), String(Number((1 - p).toFixed(6)))])];
    const seen = stops.filter(([x]) => x >= low && x <= high);
    const step = Math.ceil(seen.length / room);
    const middle = Math.max(0, seen.findIndex(([x]) => x === 0));
    const kept = seen.filter((_, i) => (i - middle) % step === 0);
    return { tickvals: kept.map(([x]) => x), ticktext: kept.map(([, words]) => words) };
  }

  const faint = (name) => {
    const parts = colour(name).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
    return `rgba(${parts.join(",")},0.2)`;
  };

  // Text of one index; `last` is above every score, where no row is acted on.
  function words(view, place) {
    const { chosen } = view;
    const last = view.threshold.length;
    const here = chosen !== null && place === chosen.at;
    const logit = view.logit && place < last ? view.logit[place] : null;
    const acted = view.acted[place];
    const right = view.hits[place];

    const name = here ? `threshold ${chosen.words}`
      : place === last ? "a threshold above every score"
        : `threshold ${thresholdWords(view.threshold[place], logit)}`;

    const ofPredictions = () => (acted === 0
      ? `At ${name}, no prediction is accepted.`
      : `At ${name}, ${count(acted)} of ${count(view.n)} predictions are accepted: ${count(right)} right and ` +
        `${count(acted - right)} wrong. The other ${count(view.n - acted)} are handed over.`);

    const ofCleared = () => {
      const below = view.n - acted;
      const wrong = view.positives - right;
      if (below === 0) return `Below ${name}, there is no row to clear.`;
      return `Below ${name}, ${count(below)} of ${count(view.n)} rows are cleared: ${count(below - wrong)} rightly and ` +
        `${count(wrong)} wrongly (they are positive).`;
    };

    const ofClass = () => {
      const missed = `${count(view.positives - right)} of ${count(view.positives)} positive rows are passed over`;
      if (acted === 0) return `At ${name}, no row is acted on: ${missed}.`;
      return `At ${name}, ${count(acted)} of ${count(view.n)} rows are acted on: ${count(right)} rightly and ` +
        `${count(acted - right)} wrongly. ${upper(missed)}.`;
    };

    const promise = () => {
      if (chosen === null) return "No threshold carries a promise.";
      if (chosen.kind === "promise") {
        return here ? "This is the point that carries the promise." : `No promise here: only threshold ${chosen.words} carries it.`;
      }
      if (!here) return "No promise here.";
      return chosen.kind === "best" ? "The best bound was reached here. It falls short of the target." : "This is the chosen point. It carries no promise.";
    };

    return { name, here, reading: (view.topLabel ? ofPredictions : view.clears ? ofCleared : ofClass)(), promise: promise() };
  }

  const upright = (x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: colour("ink"), width: 1.5 } });

  const diamond = (view, x, y, what) => ({
    x: [x], y: [y], mode: "markers", cliponaxis: false,
    marker: { size: 13, symbol: "diamond", color: colour("ink"), line: { color: colour("panel"), width: 2 } },
    hovertemplate: `${what} at threshold ${view.chosen.words}<extra></extra>`,
  });

  const targets = (view) => view.aims.filter((aim) => view.lines.includes(aim.rate)).map((aim) => level(aim.value));

  // An operating curve over one of its scales: threshold, logit or share.
  function curveOf(view, scale) {
    const { chosen } = view;
    const last = view.threshold.length;
    const share = view.rates.coverage.value;
    const column = { threshold: view.threshold, logit: view.logit, share }[scale];

    // Where a place lies across the chart. The chosen threshold lies between two scores.
    const across = (i) => {
      if (scale === "share") return share[i];
      const own = chosen && i === chosen.at ? chosen[scale] : null;
      return own ?? column[Math.min(i, last - 1)];
    };

    function xAxis(room) {
      if (scale === "share") return probability(`share of rows ${view.topLabel ? "accepted" : view.clears ? "not cleared" : "acted on"}`, { tickformat: ".0%" });
      if (scale === "logit" && view.wide) return axis("decision score, as log-odds");
      if (scale === "logit") {
        const most = room ?? (document.documentElement.clientWidth < 600 ? 6 : 12);
        return axis("decision score, ends stretched", ticks(view.logit[0], view.logit[last - 1], most));
      }
      const [low, high] = [view.threshold[0], view.threshold[last - 1]];
      if (high - low > 0.6) return probability("decision score");
      const more = 0.03 * (high - low || 0.1);
      return axis("decision score", { range: [low - more, high + more] });
    }

    // One rate: its band as a filled area between two lines that are not drawn, then the line.
    function traces(rate, i) {
      const columns = view.rates[rate];
      const there = column.map((_, j) => j).filter((j) => columns.low[j] !== null && columns.value[j] !== null);
      const shape = scale === "share" ? "linear" : "vh";
      const few = there.length < 5;
      const at = (values) => there.map((j) => values[j]);
      const edge = { mode: "lines", hoverinfo: "skip", line: { width: 0, shape } };
      return [
        { x: at(column), y: at(columns.low), ...edge },
        { x: at(column), y: at(columns.high), ...edge, fill: "tonexty", fillcolor: faint(colours[i]) },
        { x: at(column), y: at(columns.value), mode: few ? "lines+markers" : "lines",
          line: { color: colour(colours[i]), width: 2.5, dash: dashes[i], shape },
          text: there.map((j) => `${view.titles[rate]} ${percent(columns.value[j])} (${percent(columns.low[j])} to ${percent(columns.high[j])})` +
            `<br>at ${words(view, j).name}`),
          hovertemplate: "%{text}<extra></extra>" },
      ];
    }

    return { column, across, xAxis, traces };
  }

  // The rates of an operating curve with their targets and the chosen threshold.
  function drawRates(id, view, { scale, shapes = [], room }) {
    const { across, xAxis, traces } = curveOf(view, scale ?? (view.crowded ? "logit" : "threshold"));
    const { chosen } = view;
    const marks = view.lines.map((rate) => [rate, chosen ? view.rates[rate].value[chosen.at] : null])
      .filter(([, value]) => value !== null)
      .map(([rate, value]) => diamond(view, across(chosen.at), value, `${view.titles[rate]} ${percent(value)}`));
    draw(id, [...view.lines.flatMap(traces), ...marks],
      { xaxis: xAxis(room), yaxis: probability("share", { tickformat: ".0%" }), shapes: [...targets(view), ...shapes] });
  }

  function begin(view, k) {
    const element = (name) => document.getElementById(`${name}-${k}`);
    const { chosen } = view;
    const last = view.threshold.length;
    let place = chosen ? chosen.at : Math.floor(last / 2);

    const scale = () => element("scale").value;
    const curve = () => curveOf(view, scale());
    const column = () => curve().column;
    const across = (i) => curve().across(i);

    function tell() {
      const said = words(view, place);
      element("reading").textContent = said.reading;
      element("promise").textContent = said.promise;
      element("promise").classList.toggle("kept", said.here && chosen.kind === "promise");
      const spoken = view.tiles.map((rate) => {
        const columns = view.rates[rate];
        const [value, low, high] = [columns.value, columns.low, columns.high].map((c) => c[place]);
        element(`value-${rate}`).textContent = percent(value);
        const settled = said.here && chosen.settled.includes(rate);
        element(`band-${rate}`).textContent = low === null ? "" : settled ? "by definition" : `${percent(low)} to ${percent(high)}`;
        return `${view.titles[rate]} ${value === null ? "not known" : percent(value)}`;
      });
      if (view.cost) {
        element("value-cost").textContent = amount(view.cost[place]);
        spoken.push(`expected cost ${amount(view.cost[place])}`);
      }
      element("slider").value = String(place);
      element("slider").setAttribute("aria-valuetext", `${upper(said.name)}: ${spoken.join(", ")}. ${said.promise}`);
    }

    // The limit of the cost, and where acting would begin to pay if the scores were calibrated.
    function costShapes() {
      const dotted = (y) => level(y, { dash: "dot" });
      const limits = view.aims.filter((aim) => aim.rate === "cost").map((aim) => dotted(aim.value));
      if (scale() === "share") return limits;
      const rule = scale() === "logit" ? Math.log(view.baseline / (1 - view.baseline)) : view.baseline;
      return [...limits, { ...upright(rule), line: level(0).line }];
    }

    function drawAll() {
      drawRates(`chart-rates-${k}`, view, { scale: scale(), shapes: [upright(across(place))] });
      if (view.cost) drawCost();
    }

    function drawCost() {
      const x = scale() === "share" ? column() : [...column(), column()[last - 1]];
      const line = { x, y: view.cost, mode: "lines", hovertemplate: "%{y:.4f} a row at %{x:.4g}<extra></extra>",
        line: { color: colour("event"), width: 2.5, shape: scale() === "share" ? "linear" : "vh" } };
      const mark = chosen ? [diamond(view, across(chosen.at), view.cost[chosen.at], `${amount(view.cost[chosen.at])} a row`)] : [];
      draw(`chart-cost-${k}`, [line, ...mark],
        { xaxis: curve().xAxis(), yaxis: axis("cost of a row", { rangemode: "tozero" }), shapes: [...costShapes(), upright(across(place))] });
    }

    // What the number field holds: where scores are saturated, log-odds.
    const unit = () => (scale() === "logit" && view.wide ? "logit" : "threshold");

    function moveTo(i, from) {
      element("unit").textContent = unit() === "logit" ? "Decision score (log-odds)" : "Decision score";
      place = Math.min(last, Math.max(0, i));
      if (from !== "number") {
        const value = (place === chosen?.at ? chosen[unit()] : null) ?? view[unit()][Math.min(place, last - 1)];
        element("number").value = String(Number(value.toPrecision(6)));
      }
      tell();
      Plotly.relayout(`chart-rates-${k}`, { shapes: [...targets(view), upright(across(place))] });
      if (view.cost) Plotly.relayout(`chart-cost-${k}`, { shapes: [...costShapes(), upright(across(place))] });
    }

    function find(value) {
      if (!Number.isFinite(value)) return;
      const own = chosen && Number(chosen[unit()]?.toPrecision(6));
      const found = view[unit()].findIndex((t) => t >= value);
      moveTo(value === own ? chosen.at : found < 0 ? last : found, "number");
    }

    element("scale").addEventListener("change", () => {
      drawAll();
      moveTo(place);
    });
    element("slider").addEventListener("input", (event) => moveTo(event.target.valueAsNumber, "slider"));
    element("number").addEventListener("input", (event) => find(event.target.valueAsNumber));
    if (element("back")) element("back").addEventListener("click", () => moveTo(chosen.at));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
    if (view.crowded) element("scale").value = "logit";
    drawAll();
    moveTo(place);
  }

  charts.drawRates = drawRates;  // for the first screen of a study
  views.forEach(begin);
})();
