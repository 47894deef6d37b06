"use strict";

// Files of what is seen: a text under a name, a figure with the page's style in it.
const save = (name, kind, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const saveFigure = (name, svg) => {
  const drawing = svg.cloneNode(true);
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = document.querySelector("style").textContent;
  drawing.prepend(style);
  save(name, "image/svg+xml", new XMLSerializer().serializeToString(drawing));
};
