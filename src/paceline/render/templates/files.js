"use strict";

// Files of what is seen: a text under a name, a figure with the page's style in it.
const saveBlob = (name, blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const save = (name, kind, text) => saveBlob(name, new Blob([text], { type: kind }));
const styled = (svg) => {
  const drawing = svg.cloneNode(true);
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = document.querySelector("style").textContent;
  drawing.prepend(style);
  return new XMLSerializer().serializeToString(drawing);
};
const saveFigure = (name, svg) => save(name, "image/svg+xml", styled(svg));
