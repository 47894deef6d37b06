// Panels are computed on demand for the edited candidate.
const text = (attributes, words) => svg("text", { "font-size": 12, fill: "currentColor", ...attributes }, words);
const surface = (found) => {
  const [width, height, left, bottom] = [640, 300, 60, 36];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "surface", role: "img", "aria-label": "Regions in which data or model parallelism is faster" });
  const [cell, row] = [(width - left) / found.x.length, (height - bottom) / found.y.length];
  found.data_over_model.forEach((ratios, y) => ratios.forEach((ratio, x) => {
    const rect = svg("rect", {
      x: left + x * cell, y: height - bottom - (y + 1) * row, width: cell + 0.4, height: row + 0.4,
      "fill-opacity": 0.12 + 0.7 * Math.min(1, Math.abs(Math.log2(ratio)) / 2),
      "data-tip": `batch ${found.y[y]}, ${three(found.x[x] * 8e-9)} Gbit/s: ${ratio >= 1 ? "data" : "model"} parallelism is ${three(ratio >= 1 ? ratio : 1 / ratio)} times as fast`,
    });
    rect.style.fill = ratio >= 1 ? "var(--accent)" : "var(--caution)";
    picture.append(rect);
  }));
  const at = (values, value, size) => {
    const index = values.findIndex((each) => each >= value);
    return (index < 0 ? values.length - 0.5 : index + 0.5) * size;
  };
  picture.append(
    svg("circle", { cx: left + at(found.x, found.here.x, cell), cy: height - bottom - at(found.y, found.here.y, row), r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
    text({ x: left, y: height - 8 }, `${three(found.x[0] * 8e-9)} Gbit/s`),
    text({ x: width, y: height - 8, "text-anchor": "end" }, `${three(found.x.at(-1) * 8e-9)} Gbit/s`),
    text({ x: left - 8, y: height - bottom, "text-anchor": "end" }, `batch ${found.y[0]}`),
    text({ x: left - 8, y: 14, "text-anchor": "end" }, String(found.y.at(-1))));
  return [picture, make("p", { class: "caption" }, "Blue: data parallelism is faster; orange: model parallelism. The ring is the selected job; crossovers are where the colours meet. Physical model only, without corrections fitted to published measurements.")];
};

// Best plans as points: memory against throughput; a click makes a candidate.
const planPicture = ({ plans, device_bytes: capacity, unit }) => {
  const [width, height, left, right, top, bottom] = [640, 280, 62, 16, 12, 40];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "figure surface plans", role: "group", "aria-label": "Best plans: memory against throughput" });
  const [most, fastest] = [Math.max(capacity || 0, ...plans.map((plan) => plan.memory_bytes)) * 1.05, Math.max(...plans.map((plan) => plan.throughput)) * 1.08];
  const x = scaleOf(0, most, left, width - right, false);
  const y = scaleOf(0, fastest, height - bottom, top, false);
  for (const tick of niceTicks(0, fastest, 5)) picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick) }), svg("text", { x: left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, three(tick)));
  for (const tick of niceTicks(0, most / 1e9, 8)) picture.append(svg("text", { x: x.at(tick * 1e9), y: height - bottom + 16, "text-anchor": "middle" }, three(tick)));
  if (capacity) picture.append(svg("line", { class: "base", x1: x.at(capacity), x2: x.at(capacity), y1: top, y2: height - bottom }), svg("text", { x: x.at(capacity) - 4, y: top + 10, "text-anchor": "end" }, "capacity"));
  picture.append(svg("text", { class: "axis-title", x: width - right, y: height - 6, "text-anchor": "end" }, `memory (GB) · vertical: throughput (${unit})`));
  for (const plan of plans) {
    const add = () => { board.candidates.push({ ...edited(), ...plan.options }); board.edited = board.candidates.length - 1; showForm(); refresh(); };
    const group = svg("g", { class: plan.fits ? "c1" : "c2" });
    const point = svg("circle", { class: "marker", cx: x.at(plan.memory_bytes), cy: y.at(plan.throughput), r: 6, tabindex: 0, role: "button", "aria-label": `Add ${plan.label}`, "data-tip": `${plan.label}\n${three(plan.throughput)} ${unit}, ${gigabytes(plan.memory_bytes)}` });
    if (board.candidates.length < MOST) {
      point.addEventListener("click", add);
      point.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && add());
    }
    group.append(point);
    picture.append(group);
  }
  return picture;
};
const plansPanel = (found) => {
  const box = make("div");
  box.innerHTML = found.html;
  return [planPicture(found), make("p", { class: "caption" }, "Each point is a plan; select it to add a candidate."), box];
};
const timeline = (found) => {
  const drawing = make("div", { class: "drawing" });
  drawing.innerHTML = narrow.matches ? found.narrow : found.wide;
  const saved = make("button", { type: "button", onclick: () => save("step.trace.json", "application/json", found.trace) }, "Save trace");
  const shown = make("button", { type: "button", onclick: () => perfetto(byId("title").textContent, found.trace) }, "Open in Perfetto (ui.perfetto.dev)");
  return [drawing, make("p", { class: "caption" }, "The step as a Chrome trace. Perfetto is an external site that reads it in your browser. ", saved, " ", shown)];
};
const open = async (details) => {
  const [name, box] = [details.dataset.panel, details.querySelector(".panel")];
  box.setAttribute("aria-busy", "true");
  try {
    const found = await ask(`api/panel/${name}`, JSON.stringify(sent(edited())));
    if (found.plans) box.replaceChildren(...plansPanel(found));
    else if (found.html !== undefined) box.innerHTML = found.html;
    else box.replaceChildren(...(found.wide ? timeline(found) : surface(found)));
  } catch (error) {
    box.replaceChildren(make("p", {}, String(error.message || error)));
  }
  box.removeAttribute("aria-busy");
};
document.querySelectorAll("details[data-panel]").forEach((details) => details.addEventListener("toggle", () => details.open && open(details)));

// Tooltips of marks.
(() => {
  const tip = byId("tip");
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (byId("chart").contains(event.target) && !mark) return;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("data-tip");
    tip.style.left = `${Math.max(12, Math.min(event.clientX + 12, innerWidth - 260))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();
start();
