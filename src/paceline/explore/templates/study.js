"use strict";

const study = JSON.parse(document.getElementById("study").textContent);
const view = document.getElementById("view");
const make = (tag, text, attributes = {}) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
const number = (value, digits = 4) => (value === null || value === undefined ? "–" : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits }));
const ms = (seconds) => (seconds === null || seconds === undefined ? "–" : `${number(1e3 * seconds)} ms`);
const link = (text, state) => make("a", text, { href: `#${new URLSearchParams(state)}` });
const table = (heads, rows, title) => {
  const box = make("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": title });
  const grid = make("table");
  const head = make("tr");
  for (const text of heads) head.append(make("th", text, { scope: "col" }));
  grid.append(make("thead"), make("tbody"));
  grid.tHead.append(head);
  for (const row of rows) {
    const line = make("tr");
    for (const cell of row) {
      const place = make("td");
      place.append(cell instanceof Node ? cell : document.createTextNode(String(cell)));
      line.append(place);
    }
    grid.tBodies[0].append(line);
  }
  box.append(grid);
  return [make("h2", title), box];
};
const save = (name, kind, text) => {
  const file = make("a", null, { download: name });
  file.href = URL.createObjectURL(new Blob([text], { type: kind }));
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 1000);
};
const button = (text, act) => {
  const found = make("button", text, { type: "button" });
  found.addEventListener("click", act);
  return found;
};
const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
const counted = (launch, rank) => rank.steps.slice(launch.warmup).filter((value) => value !== null);
const bar = (share) => {
  const found = make("span", null, { class: "bar" });
  found.style.width = `${Math.max(0, Math.min(1, share)) * 10}rem`;
  return found;
};

// Ratio to the baseline with its interval, or that the difference is not significant.
const against = (index, base) => {
  if (index === base) return "baseline";
  const pair = study.pairs.find((one) => [one.faster, one.slower].includes(index) && [one.faster, one.slower].includes(base));
  if (!pair) return "–";
  const turned = pair.faster === index;
  const ratio = turned ? pair.ratio : 1 / pair.ratio;
  if (pair.low === null) return `${number(ratio, 3)} times (one launch)`;
  const [low, high] = turned ? [pair.low, pair.high] : [1 / pair.high, 1 / pair.low];
  const words = `${number(ratio, 3)} times [${number(low, 3)}, ${number(high, 3)}]`;
  return pair.different ? words : make("span", `not significant: ${words}`, { class: "tied" });
};
const configurations = (state) => {
  const base = state.baseline === undefined ? study.configurations.findIndex((one) => one.plain) : Number(state.baseline);
  const picker = make("select", null, { "aria-label": "Baseline", id: "baseline" });
  study.configurations.forEach((one, index) => one.plain && picker.append(new Option(one.words, index, false, index === base)));
  picker.addEventListener("change", () => { location.hash = new URLSearchParams({ baseline: picker.value }); });
  const most = Math.max(...study.configurations.map((one) => one.rate || 0), 0);
  const rows = study.configurations.map((one, index) => [
    link(one.words, { configuration: index }), one.launches.length, one.low === null ? number(one.rate) : `${number(one.rate)} [${number(one.low)}, ${number(one.high)}]`,
    bar(most ? (one.rate || 0) / most : 0), ms(one.step), one.plain ? against(index, base) : "instrumented",
  ]);
  const label = make("p");
  label.append("Baseline: ", picker);
  const others = Object.entries(study.launches).filter(([, one]) => one.status !== "finished");
  const failed = others.length ? table(["launch", "status", "reason"], others.map(([id, one]) => [link(id, { launch: id }), one.status, one.reason]), "Launches that did not finish") : [];
  const actions = make("div", null, { class: "actions" });
  actions.append(button("JSON of this study", () => save("study.json", "application/json", JSON.stringify(study, null, 2))));
  return [label, ...table(["configuration", "launches", "samples/s, 95 %", "", "step", "ratio to the baseline"], rows, "Configurations"), ...failed, actions];
};
const launches = (state) => {
  const one = study.configurations[Number(state.configuration)];
  if (!one) return [make("p", "Configuration not found.")];
  const rows = one.launches.map((id) => {
    const own = study.launches[id];
    return [link(id, { launch: id }), own.status, number(own.rate), ms(own.step), own.load === null ? "–" : number(own.load, 2), own.created.slice(0, 19).replace("T", " ")];
  });
  return [make("p", one.words), ...table(["launch", "status", "samples/s", "step", "load before", "started"], rows, "Launches")];
};
const ranks = (state) => {
  const own = study.launches[state.launch];
  if (!own) return [make("p", "Launch not found.")];
  const rows = own.ranks.map((rank) => {
    const values = counted(own, rank);
    const longest = Object.entries(rank.phases).sort((a, b) => b[1] - a[1])[0];
    return [link(`rank ${rank.rank}`, { launch: state.launch, rank: rank.rank }), values.length, ms(mean(values)), ms(values.length ? Math.max(...values) : null), longest ? `${longest[0]} ${ms(longest[1])}` : "not timed"];
  });
  const parts = [make("p", `${own.framework}, ${own.kind}, ${own.status}${own.reason ? `: ${own.reason}` : ""}`), ...table(["rank", "steps", "mean step", "longest", "longest phase"], rows, "Ranks")];
  if (own.timeline) {
    const drawing = make("div", null, { class: "drawing" });
    drawing.innerHTML = own.timeline;
    parts.push(make("h2", "Timeline of a step"), drawing);
  }
  if (own.trace) {
    const actions = make("div", null, { class: "actions" });
    actions.append(
      button("Save the trace", () => save(`${state.launch}.json`, "application/json", own.trace)),
      button("Open in Perfetto (ui.perfetto.dev)", () => perfetto(state.launch, own.trace)),
    );
    parts.push(actions, make("p", "Perfetto is an external site: it opens in a new window and reads the trace in your browser.", { class: "caption" }));
  }
  return [...parts, ...layers(own, "forward and backward")];
};
const layers = (own, what) => {
  if (!own.layers.length) return [];
  const key = (one) => (what === "forward" ? one.forward : what === "backward" ? one.backward : one.forward + one.backward);
  const sorted = [...own.layers].sort((a, b) => key(b) - key(a));
  const most = key(sorted[0]) || 1;
  return table(["layer", "forward", "backward", "gradient", what], sorted.map((one) => [one.name, ms(one.forward), ms(one.backward), `${number(one.bytes / 1e3)} kB`, bar(key(one) / most)]), `Layers by ${what}`);
};
const phases = (state) => {
  const own = study.launches[state.launch];
  const rank = own && own.ranks.find((one) => String(one.rank) === state.rank);
  if (!rank) return [make("p", "Rank not found.")];
  const total = Object.values(rank.phases).reduce((a, b) => a + b, 0);
  const rows = Object.entries(rank.phases).map(([name, seconds]) => [link(name, { launch: state.launch, rank: state.rank, phase: name }), ms(seconds), `${number((100 * seconds) / total, 3)} %`, bar(seconds / total)]);
  const values = rank.steps.filter((value) => value !== null);
  const parts = rows.length ? table(["phase", "time", "of the step", ""], rows, "Phases of the recorded step") : [make("p", "Phases of this launch were not timed; see the instrumented launches of the study.")];
  if (values.length > 1) {
    const top = Math.max(...values);
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${values.length - 1} 100`, preserveAspectRatio: "none", class: "steps", role: "img", "aria-label": `Steps of rank ${rank.rank}, the longest ${ms(top)}` })) svg.setAttribute(name, value);
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", values.map((value, index) => `${index ? "L" : "M"}${index} ${100 - (95 * value) / top}`).join(""));
    svg.append(path);
    parts.push(make("h2", "All steps"), svg, make("p", `The first ${values.length} steps (${own.warmup} of warm-up); the longest took ${ms(top)}.`, { class: "caption" }));
  }
  return parts;
};
const phase = (state) => {
  const own = study.launches[state.launch];
  if (!own) return [make("p", "Launch not found.")];
  if (own.layers.length) return layers(own, ["forward", "backward"].includes(state.phase) ? state.phase : "forward and backward");
  const timed = Object.entries(study.launches).find(([, one]) => one.layers.length);
  if (!timed) return [make("p", "No launch of this study timed its layers; use 'paceline measure --instrument layers'.")];
  return [make("p", `Layers timed in launch ${timed[0]}:`), ...layers(timed[1], ["forward", "backward"].includes(state.phase) ? state.phase : "forward and backward")];
};
const show = () => {
  const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const way = [link(study.study, {})];
  const { back } = document.body.dataset;
  if (back) way.unshift(make("a", back === "../" ? "Explorer" : "Report", { href: back }));
  const step = (text, own) => { const box = make("span"); box.append(own ? link(text, own) : text); way.push(box); };
  let parts;
  if (state.launch !== undefined) {
    const index = study.configurations.findIndex((one) => one.launches.includes(state.launch));
    if (index >= 0) step(study.configurations[index].words, { configuration: index });
    step(`launch ${state.launch}`, { launch: state.launch });
    if (state.rank !== undefined) step(`rank ${state.rank}`, { launch: state.launch, rank: state.rank });
    if (state.phase !== undefined) step(state.phase);
    parts = state.phase !== undefined ? phase(state) : state.rank !== undefined ? phases(state) : ranks(state);
  } else if (state.configuration !== undefined) {
    step((study.configurations[Number(state.configuration)] || { words: "?" }).words);
    parts = launches(state);
  } else parts = configurations(state);
  document.getElementById("title").textContent = study.study;
  document.title = `${study.study} · Paceline`;
  document.getElementById("way").replaceChildren(...way);
  view.replaceChildren(...parts);
};
addEventListener("hashchange", () => { show(); view.focus(); });
show();
