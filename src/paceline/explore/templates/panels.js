// Panels are computed on demand for the edited candidate.
const text = (attributes, words) => svg("text", { "font-size": 12, fill: "currentColor", ...attributes }, words);
const surface = (found) => {
  const ratios = found.data_over_model.flat();
  const data = ratios[0] >= 1;
  if (ratios.every((ratio) => ratio >= 1 === data)) {
    const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => (data ? ratio : 1 / ratio)).sort((a, b) => a - b);
    const from = `${tickText(found.x[0] * 8e-9)} to ${tickText(found.x.at(-1) * 8e-9)} Gbit/s`;
    return [make("p", {}, `No crossover: ${data ? "data" : "model"} parallelism is ${three(least)} to ${three(most)} times as fast for batches of ${found.y[0]} to ${found.y.at(-1)} per replica and networks of ${from} (physical model only).`)];
  }
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
    svg("circle", { cx: left + at(found.x, found.here.x, cell), cy: height - bottom - at(found.y, found.here.y, row), r: 6, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
  const [low, high] = [found.x[0] * 8e-9, found.x.at(-1) * 8e-9];
  for (const tick of logTicks(low, high, 8)) picture.append(text({ x: left + ((width - left) * Math.log(tick / low)) / Math.log(high / low), y: height - bottom + 15, "text-anchor": tick > high / 2 ? "end" : "middle" }, tickText(tick)));
  found.y.forEach((batch, index) => { if (index % 3 === 0) picture.append(text({ x: left - 8, y: height - bottom - (index + 0.5) * row + 4, "text-anchor": "end" }, String(batch))); });
  picture.append(text({ x: width, y: height - 2, "text-anchor": "end" }, "network (Gbit/s) · vertical: batch per replica"));
  return [picture, make("p", { class: "caption" }, "Blue: data parallelism is faster; orange: model parallelism. The ring is the selected job; crossovers are where the colours meet. Physical model only, without corrections fitted to published measurements.")];
};

// Best plans as points: memory against throughput; a click makes a candidate.
const planPicture = ({ plans, device_bytes: capacity, unit }) => {
  const [width, height, left, right, top, bottom] = [640, 280, 62, 16, 12, 40];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "figure surface plans", role: "group", "aria-label": "Best plans: memory against throughput" });
  const [most, fastest] = [Math.max(capacity || 0, ...plans.map((plan) => plan.memory_bytes)) * 1.05, Math.max(...plans.map((plan) => plan.throughput)) * 1.08];
  const x = scaleOf(0, most, left, width - right, false);
  const y = scaleOf(0, fastest, height - bottom, top, false);
  for (const tick of niceTicks(0, fastest, 5)) picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick) }), svg("text", { x: left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, tickText(tick)));
  for (const tick of niceTicks(0, most / 1e9, 8)) picture.append(svg("text", { x: x.at(tick * 1e9), y: height - bottom + 16, "text-anchor": "middle" }, tickText(tick)));
  if (capacity) picture.append(svg("line", { class: "base", x1: x.at(capacity), x2: x.at(capacity), y1: top, y2: height - bottom }), svg("text", { x: x.at(capacity) - 4, y: top + 10, "text-anchor": "end" }, "capacity"));
  picture.append(svg("text", { class: "axis-title", x: width - right, y: height - 6, "text-anchor": "end" }, `memory (GB) · vertical: throughput (${unit})`));
  const points = [];
  plans.forEach((plan) => {
    const add = () => { board.candidates.push({ ...edited(), ...plan.options }); board.edited = board.candidates.length - 1; showForm(); refresh(); };
    const group = svg("g", { class: plan.fits ? "c1" : "c2" });
    const point = svg("circle", { class: "marker", cx: x.at(plan.memory_bytes), cy: y.at(plan.throughput), r: 6, tabindex: 0, role: "button", "aria-label": `Add ${plan.label}`, "data-tip": `${plan.label}\n${three(plan.throughput)} ${unit}, ${gigabytes(plan.memory_bytes)}` });
    if (board.candidates.length < MOST) {
      point.addEventListener("click", add);
      point.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && add());
    }
    group.append(point);
    points.push([x.at(plan.memory_bytes), y.at(plan.throughput)]);
    picture.append(group);
  });
  // A label goes to the first side of its point that no point and no label takes.
  const sides = [[12, 4], [-12, 4], [0, -10], [0, 18]];
  const taken = [...points];
  points.forEach(([px, py], index) => {
    const free = ([dx, dy]) => taken.every(([ox, oy]) => Math.hypot(px + dx - ox, py + dy - 4 - oy) > 9);
    const [dx, dy] = sides.find(free) || sides[0];
    taken.push([px + dx, py + dy - 4]);
    picture.append(svg("text", { class: "label", x: px + dx, y: py + dy, "text-anchor": "middle" }, String(index + 1)));
  });
  return picture;
};
const plansPanel = (found) => {
  const box = make("div");
  box.innerHTML = found.html;
  return [planPicture(found), make("p", { class: "caption" }, "Each point is a plan of the table below; select it to add a candidate."), box];
};
const timeline = (found) => {
  const drawing = make("div", { class: "drawing" });
  drawing.innerHTML = narrow.matches ? found.narrow : found.wide;
  // A schedule of many passes is wider than the page: it scrolls instead of being scaled down.
  drawing.firstChild.style.minWidth = `${drawing.firstChild.getAttribute("width")}px`;
  drawing.tabIndex = 0;
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
    box.replaceChildren(make("p", {}, String(error.message || error).replaceAll("\n", ": ")));
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
