"use strict";

// Tooltips: the <title> of each mark, at once and on touch; without script browsers show it anyway.
(() => {
  const tip = document.getElementById("tip");
  for (const title of document.querySelectorAll("svg title")) {
    const owner = title.parentNode;
    const name = owner.tagName === "svg" ? "aria-label" : "data-tip";
    owner.setAttribute(name, title.textContent);
    title.remove();
  }
  const place = (event) => {
    const margin = 12;
    const box = tip.getBoundingClientRect();
    const right = document.documentElement.clientWidth - box.width - margin;
    const above = event.clientY - box.height - margin;
    tip.style.left = Math.max(margin, Math.min(event.clientX + margin, right)) + "px";
    tip.style.top = (above > margin ? above : event.clientY + margin) + "px";
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (mark) {
      tip.textContent = mark.getAttribute("data-tip");
      place(event);
    }
  });
  document.addEventListener("pointermove", (event) => tip.hidden || place(event));
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();

// Folded sections are printed too.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// Tables with many rows sort by a click on a heading; empty cells stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, index) => {
    const text = row.cells[index].dataset.sort;
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? Infinity : -Infinity;
    return typeof a === typeof b && typeof a === "number" ? a - b : String(a).localeCompare(String(b));
  };
  headings.forEach((heading, index) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].sort((one, two) => {
        const order = compare(key(one, index), key(two, index));
        return descending && Number.isFinite(order) ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

// Files of what is seen: each table as CSV, each figure as SVG with its style.
(() => {
  const named = (text, ending) => (text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table") + ending;
  const quoted = (text) => {
    const safe = /^[=+@\t\r]/.test(text) || /^-[^\d.]/.test(text) ? "'" + text : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const words = (cell) => cell.textContent.trim().replace(/[\s\u2007]+/g, " ");
  const offer = (box, label, act) => {
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", act);
    const row = document.createElement("div");
    row.className = "files";
    row.append(button);
    box.append(row);
  };
  for (const box of document.querySelectorAll("div.table")) {
    const title = box.querySelector(".table-title") || (box.closest("section, figure") || document).querySelector("h2, .figure-title, h1");
    offer(box, "Download CSV", () => {
      const lines = [...box.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => quoted(words(cell))).join(","));
      save(named(words(title), ".csv"), "text/csv", lines.join("\n") + "\n");
    });
  }
  for (const box of document.querySelectorAll("figure")) {
    offer(box, "Download SVG", () => {
      saveFigure(named(words(box.querySelector(".figure-title")), ".svg"), box.querySelector(".drawing svg"));
    });
  }
})();

// The contents mark the section being read.
(() => {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  if (!links.size || !("IntersectionObserver" in window)) return;
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link, id) => link.classList.toggle("here", id === entry.target.id));
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("main section").forEach((section) => observer.observe(section));
})();
