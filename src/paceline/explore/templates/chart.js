// Throughput or efficiency of all candidates by devices, as SVG: zoom by dragging, values at the pointer.
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes = {}, text = "") => {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
};
const chart = { zoom: null, from: null, series: [], frame: null };
const niceTicks = (low, high, most) => {
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * 10 ** Math.floor(Math.log10((high - low) / most))).find((size) => (high - low) / size <= most);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) ticks.push(tick);
  return ticks;
};
const logTicks = (low, high, most) => {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) for (const factor of [1, 2, 5]) ticks.push(factor * 10 ** power);
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const decades = inside.filter((tick) => Math.abs(Math.log10(tick) - Math.round(Math.log10(tick))) < 1e-9);
  return inside.length <= most || decades.length < 2 ? inside : decades;
};
const asUnit = (columns) => {
  const shown = columns.filter((column) => !column.error);
  const tokens = shown.length > 0 && shown.every((column) => column.unit === "tokens/s");
  return { unit: tokens ? "tokens/s" : "samples/s", factor: (column) => (tokens ? column.per_sample : 1) };
};
const seriesOf = (columns, mode) => {
  const { factor } = asUnit(columns);
  return columns.flatMap((column, index) => {
    if (column.error) return [];
    const [base] = column.rows;
    const y = (row, name) => (mode === "efficiency" ? (100 * row[name] * base.devices) / (base.samples_per_second * row.devices) : row[name] * factor(column));
    const rows = column.rows.map((row) => ({ x: row.devices, nodes: row.nodes, y: y(row, "samples_per_second"), low: y(row, "low"), high: y(row, "high") }));
    const same = columns.some((other, at) => at !== index && other.title === column.title);
    const label = board.candidates.length > 1 ? `${index + 1} · ${column.title}${same ? `, ${column.plan}` : ""}` : "predicted";
    const chosen = column.throughput[0];
    const here = column.rows.find((row) => Math.abs(row.samples_per_second - chosen) <= 1e-9 * chosen);
    const own = [{ colour: `c${index + 1}`, label: column.fits === false ? `${label} (does not fit)` : label, moot: column.fits === false, rows, band: mode !== "efficiency", here: here && here.devices }];
    if (mode !== "efficiency") for (const line of column.lines) {
      own.push({ colour: `c${index + 1}`, label: line.label, dots: true, rows: line.points.map(([x, value]) => ({ x, y: value * factor(column) })) });
    }
    return own;
  });
};
const scaleOf = (low, high, from, to, logarithmic) => {
  const [first, last] = logarithmic ? [Math.log(low), Math.log(high)] : [low, high];
  const at = (value) => from + ((to - from) * ((logarithmic ? Math.log(value) : value) - first)) / (last - first || 1);
  const back = (pixel) => { const value = first + ((pixel - from) * (last - first)) / (to - from); return logarithmic ? Math.exp(value) : value; };
  return { at, back };
};
const drawChart = () => {
  const [box, columns] = [byId("chart"), board.found || []];
  document.querySelectorAll("[data-mode]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.mode === board.mode)));
  byId("unzoom").hidden = !chart.zoom;
  chart.series = seriesOf(columns, board.mode);
  if (!chart.series.length) return box.replaceChildren();
  const logarithmic = board.mode === "log";
  const all = chart.series.flatMap((one) => one.rows);
  const most = Math.max(...all.map((row) => row.x));
  const [x0, x1] = chart.zoom || [logarithmic ? Math.min(...all.map((row) => row.x)) : 0, most];
  const inside = all.filter((row) => row.x >= x0 && row.x <= x1);
  const highest = Math.max(...inside.map((row) => row.high || row.y), 0);
  const y1 = board.mode === "efficiency" ? Math.max(105, highest * 1.02) : highest * 1.05 || 1;
  const y0 = logarithmic ? Math.min(...inside.map((row) => row.low || row.y)) / 1.1 : 0;
  const [width, left, right, bottom] = [Math.max(300, box.clientWidth || 720), 62, 12, 40];
  const key = legendOf(chart.series, left, width - right);
  const [top, height] = [key.height + 10, key.height + 320];
  const x = scaleOf(x0, Math.max(x1, x0 + 1e-9), left, width - right, logarithmic);
  const y = scaleOf(y0, y1, height - bottom, top, logarithmic);
  const picture = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Throughput by devices" });
  for (const tick of (logarithmic ? logTicks : niceTicks)(y0, y1, 6)) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick) }));
    picture.append(svg("text", { x: left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, tickText(tick)));
  }
  const powers = [...Array(18).keys()].map((power) => 2 ** power).filter((tick) => tick >= x0 && tick <= x1);
  for (const tick of logarithmic ? powers : niceTicks(x0, x1, Math.min(10, width / 70))) picture.append(svg("text", { x: x.at(tick), y: height - bottom + 16, "text-anchor": "middle" }, tickText(tick)));
  picture.append(svg("line", { class: "base", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  const { unit } = asUnit(columns);
  picture.append(svg("text", { class: "axis-title", x: width - right, y: height - 6, "text-anchor": "end" }, `devices · vertical: ${board.mode === "efficiency" ? "efficiency (%)" : `throughput (${unit})`}`));
  for (const one of chart.series) picture.append(line(one, x, y, [x0, x1]));
  picture.append(...key.entries);
  picture.append(svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" }), svg("rect", { class: "brush", y: top, height: height - bottom - top, visibility: "hidden" }));
  chart.frame = { x, left, right: width - right };
  byId("chart-note").textContent = board.mode === "efficiency"
    ? "Efficiency: throughput per device over that of the smallest number of nodes of the same candidate."
    : "Lines with a band: predictions with their 90 % interval; the ring is the selected number of nodes; dotted lines: proportional to the smallest number of nodes; dashed lines: plans that do not fit. Points: measured and published throughput.";
  return box.replaceChildren(picture);
};
// Entries above the plot; long labels continue on further lines.
const legendOf = (series, left, right) => {
  const lines = series.filter((one) => !one.dots);
  if (series.length > lines.length) lines.push({ colour: series.find((one) => one.dots).colour, label: "measured and published", dots: true });
  if (lines.length < 2) return { entries: [], height: 0 };
  let height = 0;
  const entries = lines.map((one) => {
    const group = svg("g", { class: one.colour });
    group.append(one.dots ? svg("circle", { class: "marker", cx: left + 17, cy: height + 8, r: 3.5 }) : svg("path", { class: one.moot ? "stroke dashes" : "stroke", d: `M${left + 8},${height + 8}h18` }));
    for (const text of wrapped(one.label, (right - left - 32) / 6.6)) {
      group.append(svg("text", { class: "label", x: left + 32, y: height + 12 }, text));
      height += 16;
    }
    return group;
  });
  return { entries, height };
};
const wrapped = (text, most) => text.split(" ").reduce((lines, word) => {
  if (lines.length && lines.at(-1).length + word.length < most) lines.push(`${lines.pop()} ${word}`);
  else lines.push(word);
  return lines;
}, []);
const line = (one, x, y, [x0, x1]) => {
  const rows = one.rows.filter((row) => row.x >= x0 && row.x <= x1 && row.y > 0);
  const path = (points) => points.map(([px, py], index) => `${index ? "L" : "M"}${px.toFixed(1)},${py.toFixed(1)}`).join("");
  const group = svg("g", { class: one.colour });
  const point = (row, name) => [x.at(row.x), y.at(row[name])];
  if (one.dots) {
    for (const row of rows) group.append(svg("circle", { class: "marker", cx: x.at(row.x), cy: y.at(row.y), r: 3.5, "data-tip": `${one.label}\n${row.x} devices: ${three(row.y)}` }));
    return group;
  }
  if (one.band && rows.length) group.append(svg("path", { class: "band", d: `${path([...rows.map((row) => point(row, "high")), ...rows.slice().reverse().map((row) => point(row, "low"))])}Z` }));
  if (one.band && rows.length > 1) {
    const [first, last] = [one.rows[0], rows.at(-1)];
    const ends = [rows[0].x, last.x].map((devices) => ({ x: devices, y: (first.y * devices) / first.x }));
    group.append(svg("path", { class: "stroke dots", d: path(ends.map((row) => point(row, "y"))) }));
  }
  group.append(svg("path", { class: one.moot ? "stroke dashes" : "stroke", d: path(rows.map((row) => point(row, "y"))) }));
  const here = rows.find((row) => row.x === one.here);
  if (here) group.append(svg("circle", { class: "ring", cx: x.at(here.x), cy: y.at(here.y), r: 5 }));
  if (rows.length === 1) group.append(svg("circle", { class: "marker", cx: x.at(rows[0].x), cy: y.at(rows[0].y), r: 3.5 }));
  return group;
};
const valuesAt = (devices) => {
  const unit = board.mode === "efficiency" ? " %" : "";
  return chart.series.filter((one) => !one.dots).map((one) => {
    const row = one.rows.reduce((best, each) => (Math.abs(each.x - devices) < Math.abs(best.x - devices) ? each : best));
    return { row, text: `${one.label}: ${three(row.y)}${unit}${one.band ? ` ${range(row.low, row.high)}` : ""} on ${row.nodes} ${row.nodes === 1 ? "node" : "nodes"} (${row.x} devices)` };
  });
};
(() => {
  const [box, tip] = [byId("chart"), byId("tip")];
  const pixel = (event) => event.clientX - box.getBoundingClientRect().left;
  const hide = () => { tip.hidden = true; box.querySelector(".cursor")?.setAttribute("visibility", "hidden"); };
  box.addEventListener("pointerdown", (event) => { if (chart.frame) chart.from = pixel(event); });
  box.addEventListener("pointermove", (event) => {
    if (!chart.frame || event.target.dataset?.tip) return;
    const at = Math.min(Math.max(pixel(event), chart.frame.left), chart.frame.right);
    const found = valuesAt(chart.frame.x.back(at));
    const cursor = box.querySelector(".cursor");
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, chart.frame.x.at(found[0].row.x));
    cursor.setAttribute("visibility", "visible");
    if (chart.from !== null) {
      const brush = box.querySelector(".brush");
      brush.setAttribute("x", Math.min(at, chart.from));
      brush.setAttribute("width", Math.abs(at - chart.from));
      brush.setAttribute("visibility", "visible");
    }
    tip.textContent = found.map((one) => one.text).join("\n");
    tip.hidden = false;
    tip.style.left = `${Math.max(12, Math.min(event.clientX + 12, innerWidth - 300))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  box.addEventListener("pointerleave", hide);
  addEventListener("pointerup", (event) => {
    if (chart.from === null) return;
    const ends = [chart.from, pixel(event)].sort((a, b) => a - b);
    chart.from = null;
    if (ends[1] - ends[0] > 8) chart.zoom = ends.map((at) => chart.frame.x.back(at));
    drawChart();
  });
  byId("unzoom").addEventListener("click", () => { chart.zoom = null; drawChart(); });
  document.querySelectorAll("[data-mode]").forEach((button) => button.addEventListener("click", () => {
    board.mode = button.dataset.mode;
    chart.zoom = null;
    history.replaceState(null, "", address());
    drawChart();
  }));
  addEventListener("resize", drawChart);
})();

// Saved files: data as CSV and JSON, the chart as SVG and PNG with its style.
const savePng = (name, picture) => {
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = make("canvas", { width: 2 * picture.clientWidth, height: 2 * picture.clientHeight });
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saveBlob(name, blob));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(styled(picture))}`;
};
document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
  const columns = (board.found || []).filter((column) => !column.error);
  if (!columns.length) return;
  const picture = byId("chart").querySelector("svg");
  if (button.dataset.save === "csv") {
    const heads = Object.keys(columns[0].rows[0]);
    const lines = columns.flatMap((column, index) => column.rows.map((row) => [index + 1, JSON.stringify(column.title), ...heads.map((head) => row[head])].join(",")));
    save("scaling.csv", "text/csv", `${["candidate", "title", ...heads].join(",")}\n${lines.join("\n")}\n`);
  } else if (button.dataset.save === "json") save("candidates.json", "application/json", JSON.stringify(board.candidates.map((state, index) => ({ state, ...board.found[index] })), null, 2));
  else if (button.dataset.save === "svg") saveFigure("scaling.svg", picture);
  else savePng("scaling.png", picture);
}));
