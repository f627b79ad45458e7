"use strict";
// Text of models reaches the page as text nodes only: nothing here parses HTML.

// ---- pure: what is shown of the data -------------------------------------------------------------

/** Make characters visible that would hide or reorder text: controls, bidi marks, half surrogates. */
function visible(text) {
  return String(text)
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) =>
      `\u27e8U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`)
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

const OUTCOMES = {
  "any": () => true,
  "signal": (visit) => visit.signal,
  "no signal": (visit) => !visit.signal,
  "a hint was tried": (visit) => visit.rounds.some((each) => each.level > 0),
  "nothing right at the end": (visit) => !visit.rounds.at(-1).marks.includes("1"),
  "no prompt for a hint": (visit) => visit.rounds.some((each) => !["none", "ok", "cut"].includes(each.status)),
  "not graded": (visit) => visit.rounds.some((each) => each.num_ungraded > 0),
  "marked": (visit) => visit.flags.length > 0,
};

const isOdd = (sample) => sample.why.some((each) => each !== "random");

/** Return the samples that a filter lets through, in its order. */
function filterSamples(samples, filter) {
  const text = (filter.text || "").toLowerCase();
  const found = samples.filter((sample) =>
    (filter.from == null || sample.step >= filter.from) &&
    (filter.to == null || sample.step <= filter.to) &&
    (!filter.why || sample.why.includes(filter.why)) &&
    (!filter.reason && filter.level == null || sample.responses.some((each) =>
      (!filter.reason || each.reason === filter.reason) && (filter.level == null || each.level === filter.level))) &&
    (!text || JSON.stringify([sample.problem_id, sample.problem, sample.answer, sample.rounds.map((each) => each.hint),
      sample.responses.map((each) => [each.extracted, each.text])]).toLowerCase().includes(JSON.stringify(text).slice(1, -1))));
  const newest = (a, b) => b.step - a.step;
  return found.sort(filter.order === "new" ? newest : (a, b) => isOdd(b) - isOdd(a) || newest(a, b));
}

const mean = (values) => values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;

// ---- the page ---------------------------------------------------------------------------------------

const at = (id) => document.getElementById(id);

/** Make an element; strings become text nodes. */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((each) => each != null).map((each) => each instanceof Node ? each : visible(each)));
  return node;
}

const block = (text) => el("pre", { dir: "auto", tabindex: "0" }, text);
const inline = (text) => el("code", { dir: "auto" }, text);

async function unpack(id) {
  const bytes = Uint8Array.from(atob(at(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, label]) => el("option", { value }, label)));
}

// ---- charts -------------------------------------------------------------------------------------------

function colours(figure) {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--text").trim(), line = style.getPropertyValue("--line").trim();
  const back = style.getPropertyValue("--card").trim();
  const faint = style.getPropertyValue("--faint").trim();
  const update = { "font.color": text, "hoverlabel.bgcolor": back, "hoverlabel.font.color": text, "modebar.color": faint, "modebar.activecolor": text };
  for (const key of Object.keys(figure.layout)) {
    if (/^[xy]axis\d*$/.test(key)) Object.assign(update, { [`${key}.gridcolor`]: line, [`${key}.linecolor`]: line });
  }
  return update;
}

function draw(div, figure) {
  const config = { responsive: true, displaylogo: false, showEditInChartStudio: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
  return Plotly.newPlot(div, figure.data, figure.layout, config).then(() => Plotly.relayout(div, colours(figure)));
}

async function drawCharts(data) {
  const library = document.createElement("script");
  library.nonce = at("code").nonce;
  library.textContent = await unpack("plotly");
  document.head.append(library);
  const axes = (div, name) => {
    const chart = data.charts[div.dataset.chart];
    if (chart.by_axis) Plotly.update(div, { x: chart.by_axis[name] }, { "xaxis.title.text": name });
  };
  const divs = [...document.querySelectorAll("[data-chart]")];
  const seen = new IntersectionObserver((entries) => entries.filter((each) => each.isIntersecting).forEach(({ target }) => {
    seen.unobserve(target);
    show(target);
  }), { rootMargin: "400px" });
  const chips = [...document.querySelectorAll("#arms button")];
  const isShown = ({ legendgroup, mode }) => {
    const pressed = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true");
    if (!pressed.length) return mode !== "none" || chips.length < 9; // many bands hide each other
    return !legendgroup || pressed.includes(chips[legendgroup]);
  };
  const show = async (div) => {
    const chart = data.charts[div.dataset.chart];
    if (div.dataset.drawn) return;
    div.dataset.drawn = "yes";
    chart.figure.data.forEach((trace) => { trace.visible = isShown(trace); });
    await draw(div, chart.figure);
    if (at("axis").selectedIndex) axes(div, at("axis").value);
    div.on("plotly_click", ({ points: [point] }) => {
      const steps = chart.by_axis ? chart.by_axis[at("axis").options[0].value][point.curveNumber] : point.data.x;
      if (point.data.type !== "bar") go({ step: steps[point.pointNumber], problem: null }, true);
    });
  };
  divs.forEach((div) => seen.observe(div));
  chips.forEach((chip) => chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
    divs.filter((div) => div.data).forEach((div) => Plotly.restyle(div, { visible: div.data.map(isShown) }));
  }));
  at("axis").addEventListener("change", () => divs.filter((div) => div.dataset.drawn).forEach((div) => axes(div, at("axis").value)));
  const recolour = () => document.querySelectorAll(".plot").forEach((div) => div.layout && Plotly.relayout(div, colours(div)));
  addEventListener("recolour", recolour);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  addEventListener("beforeprint", () => divs.forEach(show));
}

function setTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  dispatchEvent(new Event("recolour"));
}

// ---- step → prompt → decision → responses → visits --------------------------------------------------------

let runs = [];

/** The address holds what is looked at: #run=0&step=12&problem=ID, so that it can be sent and gone back to. */
function place() {
  const given = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const run = Math.min(Math.max(0, Number(given.get("run")) || 0), runs.length - 1);
  const steps = runs[run].steps;
  const step = given.has("step") ? Number(given.get("step")) : steps.at(-1) ?? 0;
  return { run, step, problem: given.get("problem") };
}

function go(change, scroll = false) {
  const next = { ...place(), ...change };
  if (next.problem == null) delete next.problem;
  location.hash = new URLSearchParams(next).toString();
  if (scroll) at("steps").scrollIntoView();
}

function showStep() {
  const { run, step, problem } = place();
  const { visits, steps, name, total } = runs[run];
  at("run").value = run;
  at("step").value = step;
  at("step").max = steps.at(-1) ?? 0;
  const here = visits.filter((visit) => visit.step === step);
  const text = at("find").value.toLowerCase();
  const shown = here.filter((visit) => OUTCOMES[at("outcome").value](visit) && visit.problem.toLowerCase().includes(text));
  const missing = total > visits.length ? ` The page holds ${visits.length} of the run's ${total} visits.` : "";
  at("stepline").textContent = visible(`${name}, step ${step}: ${shown.length} of ${here.length} prompts shown.${missing}`);
  const head = ["problem", triedHead(here), "trains", "reward", "signal"];
  at("prompts").replaceChildren(
    el("thead", {}, el("tr", {}, head.map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, shown.map((visit) => el("tr", { "aria-current": String(visit.problem === problem) },
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => go({ problem: visit.problem }) }, shorten(visit.problem))),
      el("td", {}, path(visit)),
      el("td", {}, whatTrains(visit)),
      el("td", { class: "number" }, mean(visit.trained.map((each) => each.reward)).toFixed(2)),
      el("td", {}, visit.signal ? "yes" : "no", visit.flags.map((each) => el("span", { class: "tag odd" }, each)))))));
  showDetail(runs[run], here.find((visit) => visit.problem === problem), problem);
}

const shorten = (text) => text.length > 60 ? `${text.slice(0, 40)}…${text.slice(-15)}` : text;

function showDetail(run, visit, problem) {
  const all = run.visits.filter((each) => each.problem === problem);
  if (!all.length) {
    at("detail").replaceChildren(el("p", { class: "faint" }, "Choose a prompt: its rounds, why sampling stopped, each response, and all its visits."));
    return;
  }
  const parts = [el("h3", { dir: "auto" }, problem)];
  parts.push(...visit ? decision(visit) : [el("p", {}, "Not sampled at this step.")]);
  parts.push(el("h4", {}, all.length > 1 ? `All ${all.length} visits` : "The only visit"), visitsChart(all), visitsTable(all, visit));
  if (visit) parts.push(...texts(run, run.samples.filter((each) => each.step === visit.step && each.problem_id === problem), false));
  at("detail").replaceChildren(...parts.filter(Boolean));
  drawVisits(all);
}

function decision(visit) {
  const trains = new Map(visit.trained.map((each) => [`${each.round} ${each.turn}`, each]));
  const rounds = visit.rounds.map((each, number) => {
    const marks = [...each.marks].map((mark, turn) => {
      const row = trains.get(`${number} ${turn}`);
      const from = each.parents[turn] ? `, goes on from response ${each.parents[turn][1] + 1} of round ${each.parents[turn][0] + 1}` : "";
      const word = { 1: "right", 0: "wrong" }[mark] || "graded between right and wrong";
      return el("span", {
        class: `${mark === "1" ? "right" : "wrong"}${row ? " trains" : ""}`,
        title: `response ${turn + 1}: ${word}${from}${row ? `, trains with reward ${row.reward}${row.group ? ` in group ${row.group}` : ""}` : ", does not train"}`,
      }, { 1: "✓", 0: "✗" }[mark] || "?");
    });
    const facts = [each.prompt.replaceAll("_", " "), each.role === "solver" ? null : `by the ${each.role}`,
      hasTurns(visit) && !each.level ? null : `level ${each.level}`,
      each.status === "none" ? null : `hint ${each.status.replaceAll("_", " ")}`, `${each.tokens} tokens`, `${each.seconds.toFixed(2)} s`,
      each.num_ungraded ? `${each.num_ungraded} not graded` : null].filter(Boolean).join(", ");
    const unmarked = each.parents.length ? `${each.parents.length} responses, not graded` : "no graded response";
    return el("li", {}, facts, el("br"), marks.length ? el("span", { class: "marks" }, marks) : unmarked);
  });
  const verdicts = visit.reasons.map(([name, count]) => `${count} × ${name}`).join(", ");
  const groups = new Set(visit.trained.map((each) => each.group)).size;
  return [
    el("h4", {}, `Step ${visit.step}: ${visit.rounds.length} round${visit.rounds.length > 1 ? "s" : ""}`),
    el("ol", { class: "rounds" }, rounds),
    el("p", {}, el("b", {}, "Why it stopped: "), visit.stop, "."),
    el("p", {}, el("b", {}, "Trains on "), `${visit.trained.length} responses (underlined)`, groups > 1 ? ` in ${groups} groups` : "",
      visit.level == null || hasTurns(visit) ? "" : ` at level ${visit.level}`, `; mean reward ${mean(visit.trained.map((each) => each.reward)).toFixed(3)}; `,
      visit.signal ? "signal." : "no signal."),
    el("p", { class: "faint" }, `Verdicts: ${verdicts || "none"}. Hint writer: ${visit.hintCalls} calls, ${visit.hintTokens} tokens.`,
      visit.flags.length ? ` Marked: ${visit.flags.join(", ")}.` : ""),
  ];
}

function visitsTable(all, chosen) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["step", triedHead(all), "trains", "reward", "why it stopped"].map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, all.map((visit) => el("tr", { "aria-current": String(visit === chosen) },
      el("td", {}, el("button", { type: "button", class: "link", onclick: () => go({ step: visit.step }) }, String(visit.step))),
      el("td", {}, path(visit)), el("td", {}, whatTrains(visit)),
      el("td", { class: "number" }, mean(visit.trained.map((each) => each.reward)).toFixed(2)), el("td", {}, visit.stop))))));
}

const visitsChart = (all) => all.length < 2 ? null : el("div", { class: "plot", style: "min-height: 220px", id: "visits", role: "img", "aria-label": `Level and reward over ${all.length} visits` });

function drawVisits(all) {
  if (!globalThis.Plotly || !at("visits")) return;
  const steps = all.map((visit) => visit.step);
  const axis = (title, extra) => ({ title: { text: title }, zeroline: false, automargin: true, ...extra });
  const isOfTurns = all.some(hasTurns), colours = ["#2f86cf", "#12a37f"];
  const levels = [{ name: "hint level that trains", y: all.map((visit) => visit.level) }];
  const left = isOfTurns ? turnShares(all) : levels;
  draw(at("visits"), {
    data: [
      ...left.map((each, place) => ({ x: steps, ...each, mode: "lines+markers", line: { shape: isOfTurns ? "linear" : "hv", color: colours[place] } })),
      { x: steps, y: all.map((visit) => mean(visit.trained.map((each) => each.reward))), name: "mean reward", yaxis: "y2", mode: "lines+markers", line: { color: "#de6b1f" } },
    ],
    layout: {
      height: 220, margin: { l: 40, r: 60, t: 8, b: 40 }, modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)" }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, hovermode: "x unified", xaxis: axis("step", { tickformat: "d" }),
      yaxis: isOfTurns ? axis("share", { range: [-0.05, 1.05] }) : axis("level", { dtick: 1, rangemode: "tozero" }), yaxis2: axis("reward", { overlaying: "y", side: "right", rangemode: "tozero", nticks: 4, showgrid: false }),
    },
  });
}

// ---- samples ------------------------------------------------------------------------------------------------

const PAGE = 25;
let limit = PAGE;

function showSamples() {
  const number = (id) => at(id).value === "" ? null : Number(at(id).value);
  const run = runs[Number(at("s-run").value)];
  const filter = {
    from: number("s-from"), to: number("s-to"), level: number("s-level"), reason: at("s-reason").value,
    why: at("s-why").value, text: at("s-text").value, order: at("s-order").value,
  };
  const found = filterSamples(run.samples, filter);
  const missing = run.totalSamples > run.samples.length ? `; the page holds ${run.samples.length} of the run's ${run.totalSamples}` : "";
  at("s-count").textContent = `${Math.min(limit, found.length)} of ${found.length} samples shown${missing}`;
  at("s-list").replaceChildren(...found.slice(0, limit).map((sample, place) => card(run, sample, filter, place === 0)));
  at("s-more").hidden = found.length <= limit;
}

function card(run, sample, filter, isOpen) {
  const counts = new Map();
  for (const each of sample.responses) counts.set(each.reason, (counts.get(each.reason) || 0) + each.turns.length);
  const summary = el("summary", {}, `step ${sample.step} · `, inline(shorten(sample.problem_id)), " ",
    sample.why.map((each) => el("span", { class: each === "random" ? "tag" : "tag odd" }, each.replaceAll("_", " "))),
    ` ${[...counts].map(([name, count]) => `${count} × ${name.replaceAll("_", " ")}`).join(", ")}`);
  const node = el("details", { class: "sample" }, summary);
  const fill = () => {
    if (!node.open || node.childElementCount > 1) return;
    const all = el("button", { type: "button", class: "link", onclick: () => go({ run: runs.indexOf(run), step: sample.step, problem: sample.problem_id }, true) },
      "decision and all visits of this prompt");
    node.append(all, ...texts(run, [sample], true, filter));
  };
  node.addEventListener("toggle", fill);
  node.open = isOpen;
  return node;
}

/** Return the texts of samples: problem, hints, responses with their verdicts; those that a filter asks for first. */
function texts(run, samples, isAlone, filter = {}) {
  if (!samples.length) return [el("p", { class: "faint" }, "No texts of this visit were kept (hint.samples.prompts_per_step).")];
  return samples.flatMap((sample) => {
    const asked = (each) => (!filter.reason || each.reason === filter.reason) && (filter.level == null || each.level === filter.level);
    const first = (of) => (a, b) => of(b) - of(a);
    const visit = run.visits.find((each) => each.step === sample.step && each.problem === sample.problem_id);
    const talks = conversationsOf(sample, visit)
      .sort(first(({ turns }) => turns.some((each) => each.response && asked(each.response))));
    const hints = sample.rounds.filter((each) => each.hint || each.level);
    return [
      el("h4", {}, isAlone ? "Problem" : "Texts"), block(sample.problem),
      el("p", {}, "Gold answer: ", inline(sample.answer)),
      ...hints.flatMap((each) => [el("p", {}, `Hint of level ${each.level} (${each.status.replaceAll("_", " ")})`,
        each.leaks ? el("span", { class: "tag odd" }, "holds the answer") : null), each.hint ? block(each.hint) : null]).filter(Boolean),
      el("h4", {}, talks.length ? "Conversations" : "Responses"),
      ...talks.length ? talks.map(conversation) : [...sample.responses].sort(first(asked)).flatMap((each) => response(each)),
      sample.left_out ? el("p", { class: "faint" }, `${sample.left_out} entries found no room in the run's file.`) : "",
    ];
  });
}

/** Return a response with its verdict; `role`: who speaks in a conversation, which says how often and in what order. */
function response(each, role = "") {
  const isGraded = each.reason !== "not_graded", isRight = each.reason === "correct";
  const place = [each.round == null ? null : `round ${each.round + 1}`, `level ${each.level}`];
  const facts = [...role ? [] : place, `reward ${each.reward}`, each.trains ? "trains" : "does not train",
    isGraded ? `decided by ${each.basis}` : null].filter(Boolean);
  const word = each.reason.replaceAll("_", " "), verdict = el("b", { class: isRight ? "right" : isGraded ? "wrong" : "" }, role ? (isGraded ? word : role) : `${each.turns.length} × ${word}`);
  return [
    el("p", {}, role && isGraded ? `${role}: ` : null, verdict, ` ${facts.join(", ")} `, each.why.map((why) => el("span", { class: "tag odd" }, why.replaceAll("_", " "))),
      isGraded ? [el("br"), "extracted ", inline(each.extracted || "nothing")] : null,
      each.ignored ? [", ignored ", inline(each.ignored)] : null),
    each.text == null ? null : block(each.text),
  ].filter(Boolean);
}

// ---- start ----------------------------------------------------------------------------------------------------

async function start() {
  at("theme").addEventListener("click", setTheme);
  const data = JSON.parse(await unpack("data"));
  runs = data.runs.map((run) => {
    const steps = [...new Set(run.visits.map((visit) => visit.step))].sort((a, b) => a - b);
    return { ...run, steps, total: run.num_visits, totalSamples: run.num_samples };
  });
  const names = runs.map((run, number) => [String(number), run.name]);
  options(at("run"), names);
  options(at("s-run"), names);
  options(at("outcome"), Object.keys(OUTCOMES).map((name) => [name, name]));
  const all = runs.flatMap((run) => run.samples);
  const values = (of) => [...new Set(all.flatMap(of))].sort((a, b) => (a > b) - (a < b)).map((each) => [String(each), String(each).replaceAll("_", " ")]);
  const any = [["", "any"]];
  options(at("s-level"), any.concat(values((sample) => sample.responses.map((each) => each.level))));
  options(at("s-reason"), any.concat(values((sample) => sample.responses.map((each) => each.reason))));
  options(at("s-why"), any.concat(values((sample) => sample.why)));
  at("run").addEventListener("change", () => go({ run: at("run").value }));
  at("step").addEventListener("change", () => go({ step: at("step").value }));
  const beside = (by) => () => {
    const { run, step } = place(), steps = runs[run].steps;
    const next = by > 0 ? steps.find((each) => each > step) : steps.findLast((each) => each < step);
    if (next != null) go({ step: next });
  };
  at("before").addEventListener("click", beside(-1));
  at("after").addEventListener("click", beside(1));
  ["outcome", "find"].forEach((id) => at(id).addEventListener("input", showStep));
  at("filters").addEventListener("input", () => { limit = PAGE; showSamples(); });
  at("s-clear").addEventListener("click", () => {
    at("filters").querySelectorAll("input").forEach((input) => { input.value = ""; });
    at("filters").querySelectorAll("select:not(#s-run)").forEach((select) => { select.selectedIndex = 0; });
    showSamples();
  });
  at("s-more").addEventListener("click", () => { limit += PAGE; showSamples(); });
  addEventListener("hashchange", () => location.hash.includes("=") && showStep());
  if (runs.length) { showStep(); showSamples(); }
  await drawCharts(data);
  if (runs.length) showStep();
  document.documentElement.dataset.ready = "yes";
}

if (typeof document === "undefined") module.exports = { visible, filterSamples, OUTCOMES };
else start().catch((error) => { at("problem").textContent = `The page could not be built (a browser of 2023 or newer is needed): ${error}`; });
