// The Overview page: its charts, and live traffic that refreshes itself.
const REFRESH_MS = 10_000;
const data = JSON.parse(document.getElementById("charts").textContent);
const live = document.getElementById("live");
const toggle = document.getElementById("refreshing");

// Colours and patterns of the decisions, so that colour alone is never needed.
const STYLES = {
  act: ["event", ""], clear: ["third", "\\"], abstain: ["band", ""], out_of_scope: ["other", "/"], none: ["band", ""],
};

const narrow = () => document.documentElement.clientWidth < 600;

function drawDecisions() {
  const most = Math.max(...data.traffic.at.map((_, i) => data.traffic.decisions.reduce((sum, { counts }) => sum + counts[i], 0)));
  const bars = data.traffic.decisions.map(({ name, words, counts }) => {
    const [colour, shape] = STYLES[name];
    return {
      x: data.traffic.at, y: counts, type: "bar", name: words, xperiod: data.unit === "day" ? 86_400_000 : 3_600_000,
      marker: { color: charts.colour(colour), pattern: { shape, size: 5, solidity: 0.25, fgcolor: charts.colour("panel"), fillmode: "overlay", fgopacity: 1 } },
      hovertemplate: `%{y:,} ${words}<br>%{x}<extra></extra>`, xhoverformat: data.unit === "day" ? "%-d %b %Y" : "%-d %b %Y, %H:%M",
    };
  });
  charts.draw("chart-decisions", bars, {
    barmode: "stack", bargap: 0.15,
    xaxis: charts.axis("", { type: "date", tickangle: 0, nticks: narrow() ? 4 : 9 }),
    yaxis: charts.axis(`predictions per ${data.unit}`, { rangemode: "tozero", tickformat: ",", ...(most <= 5 ? { dtick: 1 } : {}) }),
  });
}

function drawScores() {
  const { now, then } = data.scores;
  const width = 1 / now.length;
  const middle = now.map((_, k) => (k + 0.5) * width);
  const range = (k) => `${(k * width).toFixed(2)} to ${((k + 1) * width).toFixed(2)}`;
  const traces = [{
    x: middle, y: now, type: "bar", width, text: now.map((_, k) => range(k)), textposition: "none",
    marker: { color: charts.colour("event"), opacity: 0.6, line: { color: charts.colour("panel"), width: 1 } },
    hovertemplate: "now %{y:.1%} from %{text}<extra></extra>",
  }];
  if (then) {
    // Steps along the edges of the bins.
    traces.push({
      x: then.flatMap((_, k) => [k * width, (k + 1) * width]), y: then.flatMap((share) => [share, share]), mode: "lines",
      line: { color: charts.colour("other"), width: 2.5 }, text: then.flatMap((_, k) => [range(k), range(k)]),
      hovertemplate: "calibrate rows %{y:.1%} from %{text}<extra></extra>",
    });
  }
  // The most probable of K classes has at least probability 1 / K: skip the empty bins on the left.
  const firstFilled = now.findIndex((share, k) => share > 0 || (then && then[k] > 0));
  const first = Math.min(firstFilled, Math.floor(data.least * now.length)) * width;
  charts.draw("chart-scores", traces, {
    xaxis: charts.probability("probability of the most probable class", { range: [first - 0.01, 1.01], dtick: first < 0.4 ? 0.2 : 0.1 }),
    yaxis: charts.axis("share", { tickformat: ".0%", rangemode: "tozero" }),
  });
}

function drawAll() {
  if (!data.scores) return;
  drawDecisions();
  drawScores();
}

function setStatus(words) {
  if (live.textContent !== words) live.textContent = words;
}

async function refresh() {
  let response;
  try {
    response = await fetch("/console/live", { redirect: "manual", headers: { Accept: "application/json" } });
  } catch {
    setStatus("The service does not respond; retrying.");
    return;
  }
  if (response.type === "opaqueredirect" || response.status === 401) {
    toggle.checked = false;
    setStatus("Your session has expired: reload this page to log in.");
  } else if (!response.ok) {
    setStatus("Current traffic is not available; retrying.");
  } else {
    const traffic = await response.json();
    let more = "";
    if (traffic.bundle !== live.dataset.bundle) more = " Another version is being served: reload this page to see it.";
    else if (traffic.total > 0 && live.dataset.total === "0") more = " Reload this page to see more.";
    setStatus(traffic.sentence + more);
  }
}

document.getElementById("refresh").hidden = false;
setInterval(() => {
  if (toggle.checked && !document.hidden) refresh();
}, REFRESH_MS);
toggle.addEventListener("change", () => toggle.checked && refresh());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
