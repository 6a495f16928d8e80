/* The search dialog (Ctrl+K or /): loads the index when it opens, and shows what is found while one types. */

(() => {
  const dialog = document.getElementById("pst-search-dialog");
  const input = dialog?.querySelector("input[type=search], input[name=q]");
  if (!input || document.querySelector(".guide-search")) return; // the search page has a field of its own
  const root = document.documentElement.dataset.content_root || "./";
  const status = Object.assign(document.createElement("p"), { className: "guide-results-status" });
  status.setAttribute("role", "status");
  const list = Object.assign(document.createElement("ol"), { className: "guide-results" });
  dialog.append(status, list);

  // Scripts, not requests, which do not work in a folder on disk; each needs the ones before it.
  const script = (name) =>
    new Promise((resolve, reject) => {
      const made = Object.assign(document.createElement("script"), { src: `${root}_static/search/${name}.js` });
      made.onload = resolve;
      made.onerror = reject;
      document.head.append(made);
    });
  let ready = null;
  let loaded = false;
  const start = () => {
    ready ||= ["minisearch.min", "engine", "sections", "results"]
      .reduce((before, name) => before.then(() => script(name)), Promise.resolve())
      .then(() => {
        loaded = true;
      });
    ready.catch(() => {
      ready = null; // the next letter tries again
    });
    return ready;
  };

  window.guideSearch = start; // the box for error messages searches too
  const show = () => GuideResults.show(input.value.trim(), list, status, 8);
  let waiting = 0;
  input.addEventListener("focus", start);
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => start().then(show), 80);
  });
  list.addEventListener("pointerdown", () => clearTimeout(waiting)); // what is clicked on stays in its place
  // The arrows go through the results and back to the field.
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    if (loaded) {
      clearTimeout(waiting);
      show(); // what is typed by now: a later list would take the focus away
    }
    const stops = [input, ...list.querySelectorAll("a.guide-search-page")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    event.preventDefault();
    dialog.showModal();
    input.focus();
  });
})();
