// Lights the lines of a stages view (.jgs) that belong together, equation by equation: on hover, on focus and,
// to stay, on click or tap. Escape or a second click lets go. Without this script the view lights by source line.
(() => {
  const numbers = (row, key) => (row.dataset[key] || "").split(" ").filter(Boolean);

  function connect(view) {
    const rows = [...view.querySelectorAll("[data-eq]")];
    const said = Object.assign(document.createElement("p"), { className: "jgs-said" });
    said.setAttribute("role", "status"); // read aloud, politely, when a line is chosen
    view.append(said);
    view.classList.add("live");
    let pinned = null;

    function light(row) {
      const own = new Set(row ? numbers(row, "eq") : []);
      const around = new Set(row ? numbers(row, "in") : []);
      for (const other of rows) {
        const eq = numbers(other, "eq");
        const on = eq.some((n) => own.has(n)) || numbers(other, "in").some((n) => own.has(n));
        other.classList.toggle("on", on);
        other.classList.toggle("near", !on && eq.some((n) => around.has(n))); // the call or loop it is part of
      }
    }

    function pin(row) {
      pinned = row === pinned ? null : row;
      light(pinned);
      if (!pinned) {
        said.textContent = "Nothing chosen.";
        return;
      }
      const found = [...view.querySelectorAll(".jgs-t")].map((pane) => {
        const lit = pane.querySelectorAll(".on");
        if (lit.length && !pane.contains(pinned)) {
          const distance = lit[0].getBoundingClientRect().top - pane.getBoundingClientRect().top;
          pane.scrollTop += distance - pane.clientHeight / 3;
        }
        return `${pane.getAttribute("aria-label").split(":")[0]}: ${lit.length} line${lit.length === 1 ? "" : "s"}`;
      });
      said.textContent = `Chosen. ${found.join(", ")}.`;
    }

    const rowOf = (event) => event.target.closest("[data-eq]");
    view.addEventListener("pointerover", (event) => pinned || light(rowOf(event)));
    view.addEventListener("pointerleave", () => pinned || light(null));
    view.addEventListener("focusin", (event) => pinned || light(rowOf(event)));
    view.addEventListener("focusout", () => pinned || light(null));
    view.addEventListener("keydown", (event) => event.key === "Escape" && pinned && pin(pinned));
    view.addEventListener("click", (event) => {
      const row = rowOf(event);
      if (!row || String(window.getSelection())) return; // selecting text is not choosing a line
      const link = event.target.closest("a");
      if (link && !link.closest(".jgs-source")) return; // a number leads to its source line
      if (link) event.preventDefault();
      pin(row);
    });
  }

  const start = () => document.querySelectorAll(".jgs").forEach(connect);
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
