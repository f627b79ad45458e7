"use strict";
// Nothing here parses HTML: the texts of models are in the page already, escaped.

const at = (id) => document.getElementById(id);

async function draw() {
  const bytes = Uint8Array.from(atob(at("plotly").textContent), (c) => c.charCodeAt(0));
  const library = document.createElement("script");
  library.nonce = at("code").nonce;
  library.textContent = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  document.head.append(library);
  const charts = JSON.parse(at("data").textContent);
  for (const div of document.querySelectorAll(".plot")) {
    const { data } = charts[div.dataset.chart];
    const layout = { margin: { l: 48, r: 10, t: 10, b: 44 }, xaxis: { title: { text: "step" } }, yaxis: { rangemode: "tozero" }, legend: { orientation: "h", y: -0.25 }, showlegend: data.length > 1 };
    await Plotly.newPlot(div, data, layout, { responsive: true, displaylogo: false });
  }
}

draw().then(() => { document.documentElement.dataset.ready = "yes"; })
  .catch((error) => { at("problem").textContent = `The charts could not be drawn (a browser of 2023 or newer is needed): ${error}`; });
