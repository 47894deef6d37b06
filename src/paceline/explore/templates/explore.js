"use strict";

const known = JSON.parse(document.getElementById("known").textContent);
const form = document.getElementById("choices");
const byId = (id) => document.getElementById(id);
const fields = [...form.elements].filter((field) => field.name);
const shown = { answer: null, baseline: null, asked: 0 };

// Choices: lists from the server, sliders on logarithmic scales.
const fill = (select, names, empty) => {
  if (empty !== undefined) select.append(new Option(empty, ""));
  for (const name of names) select.append(new Option(name, name));
};
const list = (id, names) => {
  for (const name of names) {
    const option = document.createElement("option");
    option.value = name;
    byId(id).append(option);
  }
};
fill(form.precision, known.precisions);
fill(form.link, known.links, "the cluster's");
fill(form.framework, known.frameworks, "PyTorch DDP");
fill(form.recompute, known.recompute);
fill(form.tuning, known.tuning, "unknown");
fill(form.study, known.studies, "none");
byId("measured").hidden = !known.studies.length;
list("models", known.models);
list("clusters", known.clusters);

const toSlider = (field, value) => (field.dataset.scale ? Math.log2(Number(value)) : value);
const fromSlider = (field) => {
  const power = 2 ** Number(field.value);
  return field.dataset.scale === "power" ? Math.max(1, Math.round(power)) : Number(power.toPrecision(4));
};
const words = (field) => {
  const value = fromSlider(field);
  return field.dataset.scale === "power" ? value.toLocaleString("en") : value === 1 ? "as it is" : `${value.toPrecision(3)} times`;
};
const put = (name, value) => {
  const field = form[name];
  if (!field) return;
  field.value = (name === "seq" || name === "processes") && !Number(value) ? "" : toSlider(field, value);
  const output = field.parentNode.querySelector("output");
  if (output) output.textContent = words(field);
};
const state = () => {
  const found = {};
  for (const field of fields) {
    let value = field.value.trim ? field.value.trim() : field.value;
    if (field.dataset.scale) value = fromSlider(field);
    else if (field.type === "number") value = value === "" ? 0 : Math.round(Number(value));
    if (value !== known.defaults[field.name]) found[field.name] = value;
  }
  return found;
};
const keepInAddress = () => {
  const query = new URLSearchParams(Object.entries(state())).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
};

// Answers: the newest question wins.
const ask = async (path, body, headers) => {
  const response = await fetch(path, { method: "POST", body, headers });
  const found = await response.json();
  if (found.error) throw new Error(found.error + (found.hint ? `\n${found.hint}` : ""));
  return found;
};
const trouble = (error) => {
  const [title, ...rest] = error ? String(error.message || error).split("\n") : [""];
  byId("trouble").hidden = !error;
  byId("trouble").querySelector("strong").textContent = title;
  byId("trouble").querySelector("p").textContent = rest.join(" ");
};
const draw = (id, svg) => {
  byId(id).innerHTML = svg;
  for (const title of byId(id).querySelectorAll("svg title")) {
    const owner = title.parentNode;
    owner.setAttribute(owner.tagName === "svg" ? "aria-label" : "data-tip", title.textContent);
    title.remove();
  }
};
const facts = (rows) => {
  byId("facts").replaceChildren(...rows.map((row) => {
    const box = document.createElement("div");
    for (const [tag, kind, text] of [["dt", "", row.label], ["dd", "value", row.value], ["dd", "note", row.note]]) {
      const part = document.createElement(tag);
      if (kind) part.className = kind;
      part.textContent = text;
      box.append(part);
    }
    return box;
  }));
};
const memory = (found) => {
  const most = Math.max(found.device_bytes || 0, found.total_bytes);
  const colours = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5"];
  byId("memory").replaceChildren(...Object.entries(found.parts).map(([name, size], index) => {
    const part = document.createElement("span");
    part.style.width = `${(100 * size) / most}%`;
    part.style.background = `var(${colours[index % colours.length]}, hsl(${(index * 67 + 210) % 360} 45% 55%))`;
    part.setAttribute("data-tip", `${name}: ${(size / 1e9).toPrecision(3)} GB`);
    return part;
  }));
  const room = found.device_bytes ? ` of ${(found.device_bytes / 1e9).toPrecision(3)} GB` : "";
  const verdict = found.fits === null ? "" : found.fits ? ": fits" : ": does NOT fit";
  const parts = Object.entries(found.parts).map(([name, size]) => `${name} ${(size / 1e9).toPrecision(3)} GB`);
  byId("memory-words").textContent = `${found.words}${room}${verdict} (${parts.join(", ")})`;
  byId("memory").classList.toggle("over", found.fits === false);
};
const here = (answer) => answer.rows.find((row) => row.nodes === fromSlider(form.nodes)) || answer.rows.at(-1);
const compare = () => {
  const box = byId("verdict");
  box.hidden = !shown.baseline || !shown.answer;
  if (box.hidden) return;
  const [then, now] = [shown.baseline.row, here(shown.answer)];
  const ratio = now.samples_per_second / then.samples_per_second;
  const tied = now.low <= then.high && then.low <= now.high;
  box.classList.toggle("tied", tied);
  box.textContent = `Against the baseline (${shown.baseline.words}): ${ratio.toPrecision(3)} times the throughput` +
    (tied ? ". Not distinguishable: the intervals overlap." : ".");
};
const refresh = async () => {
  const asked = ++shown.asked;
  keepInAddress();
  byId("state").textContent = "…";
  try {
    const begun = performance.now();
    const found = await ask("/api/answer", JSON.stringify(state()));
    if (asked !== shown.asked) return;
    shown.answer = found;
    trouble(null);
    facts(found.facts);
    for (const name of ["scaling", "phases"]) for (const width of ["wide", "narrow"]) draw(`${name}-${width}`, found.figures[name][width]);
    memory(found.memory);
    byId("command").textContent = found.command;
    byId("notes").replaceChildren(...found.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    byId("title").textContent = `${form.model.value} on ${form.cluster.value}`;
    document.title = `${form.model.value} on ${form.cluster.value} · Paceline`;
    byId("state").textContent = `${found.rows.length} numbers of nodes in ${Math.round(performance.now() - begun)} ms`;
    compare();
    byId("look").hidden = !form.study.value;
    byId("look").href = `/study/${encodeURIComponent(form.study.value)}`;
    document.querySelectorAll("details[open]").forEach(open);
  } catch (error) {
    if (asked !== shown.asked) return;
    byId("state").textContent = "";
    trouble(error);
  }
};
let waiting = 0;
form.addEventListener("input", (event) => {
  const output = event.target.parentNode && event.target.parentNode.querySelector("output");
  if (output) output.textContent = words(event.target);
  if (event.target.id === "file") return;
  clearTimeout(waiting);
  waiting = setTimeout(refresh, 60);
});
form.addEventListener("submit", (event) => event.preventDefault());

// Parts that are computed when they are opened.
const surface = (found) => {
  const [width, height, left, bottom] = [640, 300, 60, 36];
  const space = "http://www.w3.org/2000/svg";
  const make = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text) node.textContent = text;
    return node;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, class: "surface", role: "img", "aria-label": "Where data and where model parallelism is faster" });
  const [columns, rows] = [found.x.length, found.y.length];
  const [cell, line] = [(width - left) / columns, (height - bottom) / rows];
  found.data_over_model.forEach((row, y) => row.forEach((ratio, x) => {
    const strength = Math.min(1, Math.abs(Math.log2(ratio)) / 2);
    const rect = make("rect", {
      x: left + x * cell, y: height - bottom - (y + 1) * line, width: cell + 0.4, height: line + 0.4,
      "fill-opacity": 0.12 + 0.7 * strength,
      "data-tip": `batch ${found.y[y]}, ${(found.x[x] * 8e-9).toPrecision(3)} Gbit/s: ${ratio >= 1 ? "data" : "model"} parallel is ${(ratio >= 1 ? ratio : 1 / ratio).toPrecision(3)} times as fast`,
    });
    rect.style.fill = ratio >= 1 ? "var(--accent)" : "var(--caution)";
    svg.append(rect);
  }));
  const at = (values, value, size) => {
    const index = values.findIndex((each) => each >= value);
    return (index < 0 ? values.length - 0.5 : index + 0.5) * size;
  };
  svg.append(make("circle", { cx: left + at(found.x, found.here.x, cell), cy: height - bottom - at(found.y, found.here.y, line), r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
  const text = { "font-size": 12, fill: "currentColor" };
  svg.append(make("text", { ...text, x: left, y: height - 8 }, `${(found.x[0] * 8e-9).toPrecision(2)} Gbit/s`));
  svg.append(make("text", { ...text, x: width, y: height - 8, "text-anchor": "end" }, `${(found.x.at(-1) * 8e-9).toPrecision(3)} Gbit/s`));
  svg.append(make("text", { ...text, x: left - 8, y: height - bottom, "text-anchor": "end" }, `batch ${found.y[0]}`));
  svg.append(make("text", { ...text, x: left - 8, y: 14, "text-anchor": "end" }, String(found.y.at(-1))));
  const caption = document.createElement("p");
  caption.className = "caption";
  caption.textContent = "Blue: data parallel is faster; orange: model parallel. The ring is the chosen job; crossovers lie where colours meet. By physics alone, without what published measurements teach.";
  return [svg, caption];
};
const open = async (details) => {
  const [name, box] = [details.dataset.panel, details.querySelector(".panel")];
  box.setAttribute("aria-busy", "true");
  try {
    const found = await ask(`/api/panel/${name}`, JSON.stringify(state()));
    if (found.html !== undefined) box.innerHTML = found.html;
    else if (found.wide) { box.innerHTML = `<div class="drawing">${matchMedia("(max-width: 40rem)").matches ? found.narrow : found.wide}</div>`; }
    else box.replaceChildren(...surface(found));
  } catch (error) {
    box.replaceChildren(Object.assign(document.createElement("p"), { textContent: String(error.message || error) }));
  }
  box.removeAttribute("aria-busy");
};
document.querySelectorAll("details[data-panel]").forEach((details) => details.addEventListener("toggle", () => details.open && open(details)));

// A model of one's own, a baseline, files of what is seen.
byId("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    const found = await ask("/api/model", file, { "x-file-name": encodeURIComponent(file.name).slice(0, 200) });
    put("model", found.model);
    refresh();
  } catch (error) {
    trouble(error);
  }
});
byId("keep").addEventListener("click", () => {
  if (!shown.answer) return;
  shown.baseline = { row: here(shown.answer), words: `${byId("title").textContent}, ${fromSlider(form.nodes)} nodes` };
  compare();
});
byId("reset").addEventListener("click", () => {
  shown.baseline = null;
  for (const [name, value] of Object.entries(known.defaults)) put(name, value);
  refresh();
});
const save = (name, kind, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
  if (!shown.answer) return;
  const { rows } = shown.answer;
  if (button.dataset.save === "csv") {
    const heads = Object.keys(rows[0]);
    save("scaling.csv", "text/csv", [heads, ...rows.map((row) => heads.map((head) => row[head]))].map((line) => line.join(",")).join("\n") + "\n");
  } else if (button.dataset.save === "json") {
    const { figures, ...rest } = shown.answer;
    save("answer.json", "application/json", JSON.stringify({ state: { ...known.defaults, ...state() }, ...rest }, null, 2));
  } else save("scaling.svg", "image/svg+xml", byId("scaling-wide").innerHTML);
}));

// Tips of marks.
(() => {
  const tip = byId("tip");
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("data-tip");
    tip.style.left = `${Math.max(12, Math.min(event.clientX + 12, innerWidth - 260))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();

for (const [name, value] of Object.entries(known.defaults)) put(name, value);
for (const [name, value] of new URLSearchParams(location.search)) put(name, value);
refresh();
