// Perfetto is an external site: it opens in a new window and reads the trace in the browser.
const perfetto = (title, text) => {
  const opened = window.open("https://ui.perfetto.dev");
  if (!opened) return;
  const asking = setInterval(() => opened.postMessage("PING", "https://ui.perfetto.dev"), 200);
  const answered = (event) => {
    if (event.origin !== "https://ui.perfetto.dev" || event.data !== "PONG") return;
    clearInterval(asking);
    removeEventListener("message", answered);
    opened.postMessage({ perfetto: { buffer: new TextEncoder().encode(text).buffer, title } }, "https://ui.perfetto.dev");
  };
  addEventListener("message", answered);
  setTimeout(() => clearInterval(asking), 30000);
};
