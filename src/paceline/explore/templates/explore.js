const known = JSON.parse(document.getElementById("known").textContent);
const form = document.getElementById("choices");
const byId = (id) => document.getElementById(id);
const fields = new Map([...form.elements].filter((field) => field.name).map((field) => [field.name, field]));
const sliders = new Map([...form.querySelectorAll("[data-of]")].map((slider) => [slider.dataset.of, slider]));
const shown = { answer: null, chosen: null, baseline: null, asked: 0 };
// Values of the address that a field cannot hold: sent unchanged, so that the server reports them.
const refused = new Map();

// Options: lists from the server, numbers with a slider on a logarithmic scale.
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
fill(form.study, known.studies, "none");
byId("measured").hidden = !known.studies.length;
list("models", known.models);
list("clusters", known.clusters);

const three = (value) => Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
const follow = ({ name, value }) => {
  const slider = sliders.get(name);
  if (!slider) return;
  slider.value = Number(value) > 0 ? Math.log2(Number(value)) : 0;
  slider.setAttribute("aria-valuetext", value);
};
const lead = (slider) => {
  const [field, power] = [fields.get(slider.dataset.of), 2 ** Number(slider.value)];
  field.value = field.step === "any" ? Number(power.toPrecision(4)) : Math.round(power);
  slider.setAttribute("aria-valuetext", field.value);
};
const put = (name, value) => {
  const field = fields.get(name);
  const text = String(value);
  field.value = text;
  refused.delete(name);
  if (field.value !== text) refused.set(name, text);
  follow(field);
};
const state = () => {
  const found = {};
  for (const [name, field] of fields) {
    let value = field.value.trim();
    if (refused.has(name)) value = refused.get(name);
    else if (field.type === "number" && value !== "") value = Number(value);
    if (value !== known.defaults[name]) found[name] = value;
  }
  return found;
};
const keepInAddress = () => {
  const query = new URLSearchParams(Object.entries(state())).toString();
  history.replaceState(null, "", query ? `?${query}` : location.pathname);
};

// Results: the latest request wins.
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
    if (row.kind) box.className = row.kind;
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
  byId("memory").replaceChildren(...Object.entries(found.parts).map(([name, size], index) => {
    const part = document.createElement("span");
    part.style.width = `${(100 * size) / most}%`;
    part.style.background = `var(--c${(index % 8) + 1})`;
    part.setAttribute("data-tip", `${name}: ${three(size / 1e9)} GB`);
    return part;
  }));
  const room = found.device_bytes ? ` of ${(found.device_bytes / 1e9).toPrecision(3)} GB` : "";
  const verdict = found.fits === null ? "" : found.fits ? ": fits" : ": does not fit";
  const parts = Object.entries(found.parts).map(([name, size]) => `${name} ${three(size / 1e9)} GB`);
  byId("memory-words").textContent = `${found.words}${room}${verdict} (${parts.join(", ")})`;
  byId("memory").classList.toggle("over", found.fits === false);
};
const here = (answer) => answer.rows.find((row) => row.nodes === shown.chosen.nodes);
const compare = () => {
  const box = byId("verdict");
  box.hidden = !shown.baseline || !shown.answer || shown.answer.memory.fits === false;
  if (box.hidden) return;
  const [then, now] = [shown.baseline.row, here(shown.answer)];
  const ratio = now.samples_per_second / then.samples_per_second;
  box.textContent = `Compared with the baseline (${shown.baseline.words}): ${three(ratio)} times the throughput.`;
};
const entitle = (text) => {
  byId("title").textContent = text;
  document.title = `${text} · Paceline`;
};
const refresh = async () => {
  const [asked, given] = [++shown.asked, state()];
  const chosen = { ...known.defaults, ...given };
  keepInAddress();
  byId("state").textContent = "…";
  try {
    const begun = performance.now();
    const found = await ask("/api/answer", JSON.stringify(given));
    if (asked !== shown.asked) return;
    Object.assign(shown, { answer: found, chosen });
    trouble(null);
    byId("found").hidden = false;
    facts(found.facts);
    for (const name of ["scaling", "phases"]) for (const width of ["wide", "narrow"]) draw(`${name}-${width}`, found.figures[name][width]);
    memory(found.memory);
    byId("command").textContent = found.command;
    byId("notes").replaceChildren(...found.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    entitle(`${chosen.model.replace(/^upload:[^:]*:/, "")} on ${chosen.cluster}`);
    byId("state").textContent = `${found.rows.length} node counts in ${three(performance.now() - begun)} ms`;
    compare();
    byId("look").hidden = !form.study.value;
    byId("look").href = `/study/${encodeURIComponent(form.study.value)}`;
    document.querySelectorAll("details[data-panel][open]").forEach(open);
  } catch (error) {
    if (asked !== shown.asked) return;
    shown.answer = null;
    byId("state").textContent = "";
    byId("found").hidden = true;
    entitle("No prediction");
    trouble(error);
  }
};
let waiting = 0;
form.addEventListener("input", ({ target }) => {
  if (target.id === "file") return;
  if (target.dataset.of) lead(target);
  else follow(target);
  refused.delete(target.name || target.dataset.of);
  clearTimeout(waiting);
  waiting = setTimeout(refresh, ["range", "select-one"].includes(target.type) ? 60 : 400); // wait for the end of typing
});
form.addEventListener("submit", (event) => event.preventDefault());

// Panels are computed on demand.
const surface = (found) => {
  const [width, height, left, bottom] = [640, 300, 60, 36];
  const space = "http://www.w3.org/2000/svg";
  const make = (tag, attributes, text) => {
    const node = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text) node.textContent = text;
    return node;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, class: "surface", role: "img", "aria-label": "Regions in which data or model parallelism is faster" });
  const [columns, rows] = [found.x.length, found.y.length];
  const [cell, line] = [(width - left) / columns, (height - bottom) / rows];
  found.data_over_model.forEach((row, y) => row.forEach((ratio, x) => {
    const strength = Math.min(1, Math.abs(Math.log2(ratio)) / 2);
    const rect = make("rect", {
      x: left + x * cell, y: height - bottom - (y + 1) * line, width: cell + 0.4, height: line + 0.4,
      "fill-opacity": 0.12 + 0.7 * strength,
      "data-tip": `batch ${found.y[y]}, ${three(found.x[x] * 8e-9)} Gbit/s: ${ratio >= 1 ? "data" : "model"} parallelism is ${three(ratio >= 1 ? ratio : 1 / ratio)} times as fast`,
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
  svg.append(make("text", { ...text, x: left, y: height - 8 }, `${three(found.x[0] * 8e-9)} Gbit/s`));
  svg.append(make("text", { ...text, x: width, y: height - 8, "text-anchor": "end" }, `${three(found.x.at(-1) * 8e-9)} Gbit/s`));
  svg.append(make("text", { ...text, x: left - 8, y: height - bottom, "text-anchor": "end" }, `batch ${found.y[0]}`));
  svg.append(make("text", { ...text, x: left - 8, y: 14, "text-anchor": "end" }, String(found.y.at(-1))));
  const caption = document.createElement("p");
  caption.className = "caption";
  caption.textContent = "Blue: data parallelism is faster; orange: model parallelism. The ring is the selected job; crossovers are where the colours meet. Physical model only, without corrections fitted to published measurements.";
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

// Narrow windows start with the prediction: the options collapse above it.
const narrow = matchMedia("(max-width: 56rem)");
const fold = () => { byId("all").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();

// Uploaded models, the baseline, saved files.
byId("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    const found = await ask("/api/model", file, { "x-file-name": encodeURIComponent(file.name).slice(-200) });
    put("model", found.model);
    refresh();
  } catch (error) {
    trouble(error);
  }
});
byId("keep").addEventListener("click", () => {
  if (!shown.answer) return;
  shown.baseline = { row: here(shown.answer), words: `${byId("title").textContent}, ${shown.chosen.nodes} nodes` };
  compare();
});
byId("reset").addEventListener("click", () => {
  shown.baseline = null;
  for (const [name, value] of Object.entries(known.defaults)) put(name, value);
  refresh();
});
document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
  if (!shown.answer) return;
  const { rows } = shown.answer;
  if (button.dataset.save === "csv") {
    const heads = Object.keys(rows[0]);
    save("scaling.csv", "text/csv", [heads, ...rows.map((row) => heads.map((head) => row[head]))].map((line) => line.join(",")).join("\n") + "\n");
  } else if (button.dataset.save === "json") {
    const { figures, ...rest } = shown.answer;
    save("answer.json", "application/json", JSON.stringify({ state: shown.chosen, ...rest }, null, 2));
  } else saveFigure("scaling.svg", byId("scaling-wide").querySelector("svg"));
}));

// Tooltips of marks.
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
const unknown = [];
for (const [name, value] of new URLSearchParams(location.search)) fields.has(name) ? put(name, value) : unknown.push(name);
byId("unknown").hidden = !unknown.length;
byId("unknown").textContent = `Unknown options in the address are ignored: ${unknown.join(", ")}`;
refresh();
