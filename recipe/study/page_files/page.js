"use strict";
// Nothing here parses HTML: the texts of models are in the page already, escaped.

const at = (id) => document.getElementById(id);
const root = document.documentElement;

/** Return the page's colours, which all charts have. */
function colours() {
  const [text, faint, line, card] = ["text", "faint", "line", "card"].map((name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim());
  return {
    "font.color": text, "hoverlabel.bgcolor": card, "hoverlabel.font.color": text, "modebar.color": faint, "modebar.activecolor": text,
    "xaxis.gridcolor": line, "xaxis.linecolor": line, "yaxis.gridcolor": line, "yaxis.linecolor": line,
  };
}

const layoutOf = (chart) => ({
  height: 300, margin: { l: 48, r: 34, t: 10, b: 44 }, font: { family: "system-ui, sans-serif" },
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)" },
  hovermode: chart.data.length > 16 ? "closest" : "x unified", legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, showlegend: chart.legend,
  xaxis: { title: { text: "step", standoff: 8 }, zeroline: false }, yaxis: { zeroline: false, rangemode: "tozero", ...chart.yaxis },
});

async function startCharts(charts) {
  const bytes = Uint8Array.from(atob(at("plotly").textContent), (c) => c.charCodeAt(0));
  const library = document.createElement("script");
  library.nonce = at("code").nonce;
  library.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  document.head.append(library);

  const chips = [...document.querySelectorAll("#variants button")];
  const isShown = (trace) => {
    const pressed = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true");
    return !pressed.length || !trace.legendgroup || pressed.includes(chips[trace.legendgroup]);
  };
  const place = (div) => {
    const name = at("axis").value;
    if (div.data[0].meta) Plotly.update(div, { x: div.data.map((trace) => trace.meta[name]) }, { "xaxis.title.text": name });
  };
  const drawn = () => [...document.querySelectorAll(".plot")].filter((div) => div.layout);
  const seen = new IntersectionObserver((entries) => entries.filter((each) => each.isIntersecting).forEach(async ({ target }) => {
    seen.unobserve(target);
    const chart = charts[target.dataset.chart];
    chart.data.forEach((trace) => { trace.visible = isShown(trace); });
    await Plotly.newPlot(target, chart.data, layoutOf(chart), { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
    await Plotly.relayout(target, colours());
    if (at("axis").selectedIndex) place(target);
  }), { rootMargin: "400px" });
  document.querySelectorAll(".plot").forEach((div) => seen.observe(div));
  chips.forEach((chip) => chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    drawn().forEach((div) => Plotly.restyle(div, { visible: div.data.map(isShown) }));
  }));
  at("axis").addEventListener("change", () => drawn().forEach(place));
  at("theme").addEventListener("click", () => drawn().forEach((div) => Plotly.relayout(div, colours())));
}

/** Hide the prompts that the filters leave out. */
function filterPrompts() {
  const [run, step, tag] = ["run", "step", "tag"].map((id) => at(id).value), text = at("find").value.toLowerCase();
  const all = [...at("prompts").children];
  all.forEach((each) => {
    each.hidden = (run && each.dataset.run !== run) || (step && each.dataset.step !== step)
      || (tag && !each.dataset.tags.split("|").includes(tag)) || !each.textContent.toLowerCase().includes(text);
  });
  at("count").textContent = `${all.filter((each) => !each.hidden).length} of ${all.length} shown`;
}

root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
at("theme").addEventListener("click", () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; });
if (at("prompts")) {
  ["run", "step", "tag", "find"].forEach((id) => at(id).addEventListener("input", filterPrompts));
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  filterPrompts();
}
startCharts(JSON.parse(at("data").textContent)).then(() => { root.dataset.ready = "yes"; })
  .catch((error) => { at("problem").textContent = `The page could not be built (a browser of 2023 or newer is needed): ${error}`; });
