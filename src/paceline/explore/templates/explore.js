const known = JSON.parse(document.getElementById("known").textContent);
const form = document.getElementById("choices");
const byId = (id) => document.getElementById(id);
const fields = new Map([...form.elements].filter((field) => field.name).map((field) => [field.name, field]));
const sliders = new Map([...form.querySelectorAll("[data-of]")].map((slider) => [slider.dataset.of, slider]));
const MOST = known.most_candidates;

// Candidates are objects with the options that differ from the defaults, as text. The form edits one.
const board = { candidates: [{}], edited: 0, pinned: 0, mode: "linear", asked: 0, found: null };
const edited = () => board.candidates[board.edited];

const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
};
// Text whose words, such as --tp or 2x8, are not broken at their hyphens.
const whole = (text) => text.split(/(\S*-\S*)/).map((part, index) => (index % 2 ? make("span", { class: "whole" }, part) : part));
const fill = (select, names, empty) => {
  if (empty !== undefined) select.append(new Option(empty, ""));
  for (const name of names) select.append(new Option(name, name));
};
fill(form.study, known.studies, "none");
byId("measured").hidden = !known.studies.length;
const FILES = ["trace", "allreduce_curve", "log"];
for (const name of FILES) fill(form[name], [], "none");
for (const name of ["models", "clusters"]) byId(name).append(...known[name].map((value) => make("option", { value })));

// Numbers in three digits; intervals as [low, high]. Ticks have no trailing zeros.
const rounded = (value, least) => {
  const number = Number(value.toPrecision(3));
  return Math.abs(number) >= 1e-3 || number === 0 ? number.toLocaleString("en", { minimumSignificantDigits: least, maximumSignificantDigits: 3 }) : number.toExponential(1);
};
const three = (value) => rounded(value, value === 0 ? 1 : 3);
const tickText = (value) => rounded(value, 1);
const range = (low, high) => `[${three(low)}, ${three(high)}]`;
const time = (seconds) => (seconds >= 1 ? `${three(seconds)} s` : seconds >= 1e-3 ? `${three(seconds * 1e3)} ms` : `${three(seconds * 1e6)} µs`);
const gigabytes = (bytes) => (bytes >= 1e12 ? `${three(bytes / 1e12)} TB` : `${three(bytes / 1e9)} GB`);

// The form shows the edited candidate.
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
const showForm = () => {
  for (const [name, field] of fields) {
    if (FILES.includes(name) && edited()[name]) {
      if (![...field.options].some((option) => option.value === edited()[name])) fill(field, [edited()[name]]);
      field.parentElement.hidden = false;
    }
    field.value = name in edited() ? edited()[name] : known.defaults[name];
    follow(field);
  }
  byId("edited").textContent = board.edited + 1;
};
const take = (field) => {
  const text = field.value.trim();
  if (text === String(known.defaults[field.name])) delete edited()[field.name];
  else edited()[field.name] = text;
};

// The address holds all candidates; Back returns to the earlier board.
const address = () => {
  if (JSON.stringify(board.candidates) === JSON.stringify([known.start]) && board.mode === "linear") return location.pathname;
  const query = new URLSearchParams();
  if (board.candidates.length === 1) for (const [name, value] of Object.entries(edited())) query.append(name, value);
  else {
    for (const candidate of board.candidates) query.append("c", new URLSearchParams(candidate));
    if (board.pinned) query.append("pinned", board.pinned + 1);
    if (board.edited) query.append("edited", board.edited + 1);
  }
  if (board.mode !== "linear") query.append("chart", board.mode);
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
};
const count = (query, name) => {
  const given = query.get(name);
  query.delete(name);
  if (given === null) return 0;
  const number = Number(given) - 1;
  if (!(Number.isInteger(number) && number >= 0 && number < board.candidates.length)) throw new Error(`${name} must be the number of a candidate (got '${given}')`);
  return number;
};
const readAddress = () => {
  const query = new URLSearchParams(location.search);
  const mode = query.get("chart") ?? "linear";
  const several = query.getAll("c");
  query.delete("c");
  query.delete("chart");
  board.candidates = several.length ? several.map((text) => Object.fromEntries(new URLSearchParams(text))) : [{}];
  board.edited = board.pinned = 0;
  if (!["linear", "log", "efficiency"].includes(mode)) throw new Error(`chart must be linear, log or efficiency (got '${mode}')`);
  board.mode = mode;
  board.pinned = count(query, "pinned");
  board.edited = count(query, "edited");
  if (several.length && [...query].length) throw new Error(`unknown option in the address: ${[...query.keys()].join(", ")}`);
  if (!several.length) board.candidates = [location.search ? Object.fromEntries(query) : { ...known.start }];
};

// Requests: the latest one wins.
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
const sent = (candidate) => Object.fromEntries(Object.entries(candidate).map(([name, value]) => {
  const field = fields.get(name);
  return [name, field && field.type === "number" && value !== "" && Number.isFinite(Number(value)) ? Number(value) : value];
}));
const refresh = async ({ remember = true } = {}) => {
  const asked = ++board.asked;
  if (remember && address() !== (location.search || location.pathname)) history.pushState(null, "", address());
  byId("state").textContent = "…";
  byId("board").classList.add("stale");
  const begun = performance.now();
  try {
    const found = await ask("api/board", JSON.stringify({ candidates: board.candidates.map(sent), pinned: board.pinned }));
    if (asked !== board.asked) return;
    board.found = found.candidates;
    trouble(null);
    byId("state").textContent = `${three(performance.now() - begun)} ms`;
    show();
  } catch (error) {
    if (asked !== board.asked) return;
    board.found = null;
    byId("state").textContent = "";
    trouble(error);
    show();
  }
  byId("board").classList.remove("stale");
};

// One column per candidate: fit, throughput, ratio, memory, step, cost. A part has one colour in all columns.
const hues = new Map();
const hue = (title, name) => {
  const used = hues.get(title) || hues.set(title, []).get(title);
  if (!used.includes(name)) used.push(name);
  return `c${(used.indexOf(name) % 8) + 1}`;
};
const stack = (title, parts, unit, limit, limitText) => {
  const total = Object.values(parts).reduce((sum, size) => sum + size, 0);
  const entries = Object.entries(parts).filter(([, size]) => size >= 0.005 * total);
  const rest = total - entries.reduce((sum, [, size]) => sum + size, 0);
  if (rest > 0.001 * total) entries.push(["rest", rest]);
  const whole = Math.max(total, limit || 0) * (limit ? 1.02 : 1);
  const bar = make("div", { class: "stack", role: "img", "aria-label": `${title}: ${unit(total)}` });
  let left = 0;
  entries.forEach(([name, size]) => {
    const part = make("span", { class: `part ${name === "rest" ? "rest" : hue(title, name)}`, "data-tip": `${name}: ${unit(size)}` });
    part.style.left = `${(100 * left) / whole}%`;
    part.style.width = `${(100 * size) / whole}%`;
    left += size;
    bar.append(part);
  });
  const key = entries.map(([name, size]) => make("li", { class: name === "rest" ? "rest" : hue(title, name) }, `${name} ${unit(size)}`));
  if (limit) {
    const line = make("span", { class: "limit", "data-tip": limitText });
    line.style.left = `${(100 * limit) / whole}%`;
    bar.append(line);
    key.push(make("li", { class: "limit" }, limitText));
  }
  return [make("h3", {}, title), bar, make("ul", { class: "key" }, ...key)];
};
const fitLine = ({ fits, likely, memory }) => {
  if (fits === null) return make("p", { class: "fit" }, `Needs ${memory.needed}; the device's memory is unknown`);
  const chance = likely > 0.005 && likely < 0.995 ? `, ${Math.round(100 * likely)} % likely to fit` : "";
  return make("p", { class: `fit ${fits ? "yes" : "no"}` }, `${fits ? "Fits" : "Does not fit"}: ${memory.needed} of ${memory.available}${chance}`);
};
const rateLines = (column) => {
  const [rate, low, high] = column.throughput.map((value) => value * column.per_sample);
  if (column.fits === false) return [make("p", { class: "rate moot" }, `${three(rate)} ${column.unit} with enough memory`)];
  return [
    make("p", { class: "rate" }, `${three(rate)} `, make("small", {}, column.unit)),
    make("p", { class: "range" }, `${range(low, high)} (90 %) · step ${time(column.step.seconds[0])} · ${column.utilisation}`),
  ];
};
const ratioLine = (column, index) => {
  if (index === board.pinned) return [make("p", { class: "ratio" }, "pinned: others are compared with this one")];
  if (!column.ratio || column.fits === false) return [];
  const [ratio, low, high] = column.ratio;
  const same = low <= 1 && high >= 1 ? ": no clear difference" : "";
  return [make("p", { class: "ratio" }, `${three(ratio)} x the pinned throughput ${range(low, high)}${same}`)];
};
const runLine = ({ training, fits }) => {
  if (!training || fits === false) return [];
  const { days, cost } = training;
  const price = cost ? ` · cost ${three(cost.value)} ${range(cost.low, cost.high)}` : "";
  return [make("p", { class: "run" }, `${three(days.value)} days ${range(days.low, days.high)}${price}`)];
};
const card = (column, index) => {
  const change = (action) => () => { action(); showForm(); refresh(); };
  const select = change(() => { board.edited = index; });
  const remove = change(() => {
    board.candidates.splice(index, 1);
    for (const name of ["edited", "pinned"]) if (board[name] >= index) board[name] = Math.max(0, board[name] - 1);
  });
  const copy = change(() => { board.candidates.splice(index + 1, 0, { ...board.candidates[index] }); board.edited = index + 1; if (board.pinned > index) board.pinned += 1; });
  const several = board.candidates.length > 1;
  const tools = make("p", { class: "tools" },
    ...(several ? [make("button", { type: "button", onclick: select }, "Edit")] : []),
    ...(several && index !== board.pinned ? [make("button", { type: "button", onclick: change(() => { board.pinned = index; }) }, "Pin")] : []),
    ...(board.candidates.length < MOST ? [make("button", { type: "button", onclick: copy }, "Duplicate")] : []),
    ...(several ? [make("button", { type: "button", onclick: remove }, "Remove")] : []));
  // Every column has the same rows, so that they align.
  const body = column.error
    ? [[make("p", { class: "trouble" }, column.error), make("p", { class: "range" }, column.hint)], [], [], [], [], []]
    : [
        [make("p", { class: "job" }, column.job)], [fitLine(column)], rateLines(column), [...(several ? ratioLine(column, index) : []), ...runLine(column)],
        stack("Memory per device", column.memory.parts, gigabytes, column.memory.device_bytes, `capacity ${column.memory.available}`),
        stack("Step", column.step.parts, time),
      ];
  const title = column.error ? "No prediction" : column.title;
  return make("article", { class: `card c${index + 1}`, "aria-current": index === board.edited && several },
    make("h2", {}, make("button", { type: "button", onclick: select }, several ? `${index + 1} · ${title}` : title)), ...body.map((row) => make("div", {}, ...row)), tools);
};
const show = () => {
  const columns = board.found || [];
  byId("board").replaceChildren(...columns.map(card));
  const own = columns[board.edited];
  const title = own && !own.error ? own.title : "No prediction";
  byId("title").textContent = board.candidates.length > 1 ? `${board.candidates.length} candidates` : title;
  document.title = `${board.candidates.length > 1 ? byId("title").textContent : title} · Paceline`;
  byId("curve").hidden = !columns.some((column) => !column.error);
  byId("details").hidden = !own || Boolean(own.error);
  drawChart();
  if (byId("details").hidden) return;
  byId("detailed").textContent = columns.length > 1 ? `candidate ${board.edited + 1}` : own.title;
  showChosen(own.chosen);
  byId("command").replaceChildren(...whole(own.command));
  byId("notes").replaceChildren(...own.notes.map((note) => make("li", {}, ...whole(note))));
  byId("look").hidden = !form.study.value;
  byId("look").href = `study/${encodeURIComponent(form.study.value)}`;
  document.querySelectorAll("details[data-panel][open]").forEach(open);
};

// Empty fields show the values that were chosen.
const showChosen = (chosen) => {
  for (const [name, value] of Object.entries(chosen)) {
    const field = fields.get(name);
    if (!field) continue;
    if (field.tagName === "INPUT") field.placeholder = value || "none";
    else if (value) field.options[0].text = `default (${value})`;
    if (field.value === "" && sliders.has(name)) follow({ name, value });
  }
};

let waiting = 0;
form.addEventListener("input", ({ target }) => {
  if (target.id === "file") return;
  if (target.dataset.of) lead(target);
  else follow(target);
  take(fields.get(target.name || target.dataset.of));
  clearTimeout(waiting);
  waiting = setTimeout(refresh, ["range", "select-one"].includes(target.type) ? 60 : 400); // wait for the end of typing
});
form.addEventListener("submit", (event) => event.preventDefault());
byId("reset").addEventListener("click", () => {
  Object.assign(board, { candidates: [{ ...known.start }], edited: 0, pinned: 0 });
  showForm();
  refresh();
});
byId("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    const found = await ask("api/model", file, { "x-file-name": encodeURIComponent(file.name).slice(-200) });
    Object.assign(edited(), found);
    if (found.trace) edited().model = "";
    showForm();
    refresh();
  } catch (error) {
    trouble(error);
  }
});
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("command").textContent);
    byId("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(byId("command"));
  }
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
});
// Narrow windows start with the predictions: the options collapse above them.
const narrow = matchMedia("(max-width: 56rem)");
const fold = () => { byId("all").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
const start = () => {
  try {
    readAddress();
    showForm();
    refresh({ remember: false });
  } catch (error) {
    board.found = null;
    trouble(error);
    show();
  }
};
addEventListener("popstate", start);
