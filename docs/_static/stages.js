// Lights the lines of a stages view (.jgs) that belong together, equation by equation: on hover, on focus and,
// to stay, on click or tap; the address then leads to the line. Escape or a second click lets go. Buttons above the
// view replay the tracing and fill the screen. Without this script the view lights by source line.
(() => {
  const button = (text, press) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    made.addEventListener("click", press);
    return made;
  };
  const codeOf = (row) => row.textContent.slice(row.querySelector("i").textContent.length).trim();
  const numbers = (row, key) => (row.dataset[key] || "").split(" ").filter(Boolean);

  function connect(view) {
    const rows = [...view.querySelectorAll("[data-eq]")];
    const jaxpr = [...view.querySelectorAll(".jgs-jaxpr [data-eq]")];
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
      history.replaceState(null, "", pinned ? `#${view.id}=${rows.indexOf(pinned)}` : location.pathname);
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

    // Replays the tracing: the jaxpr up to its line number `step`, and the source line that records it.
    let step = jaxpr.length;
    function trace(to) {
      step = Math.max(0, Math.min(to, jaxpr.length));
      const tracing = step < jaxpr.length;
      pinned = null;
      view.classList.toggle("tracing", tracing);
      for (const [i, row] of jaxpr.entries()) row.classList.toggle("later", i >= step);
      light(step ? jaxpr[step - 1] : null);
      [back.disabled, forth.disabled] = [step === 0, !tracing];
      const line = step ? `Line ${step} of the jaxpr: ${codeOf(jaxpr[step - 1])}.` : "Nothing is recorded yet.";
      said.textContent = tracing ? line : `${line} The trace is complete, and JAX lowers and compiles it.`;
      jaxpr[step - 1]?.scrollIntoView({ block: "nearest" });
    }
    const back = button("‹ Back", () => trace(step - 1));
    const forth = button("Step ›", () => trace(step + 1));
    forth.disabled = true;
    const tools = Object.assign(document.createElement("div"), { className: "jgs-tools" });
    if (jaxpr.length && view.querySelector(".jgs-source")) {
      tools.append(
        button("Replay the tracing", () => trace(0)),
        back,
        forth,
      );
    }
    if (document.fullscreenEnabled) {
      const full = () => (document.fullscreenElement ? document.exitFullscreen() : view.requestFullscreen());
      tools.append(button("Full screen", full));
    }
    view.firstElementChild.after(tools);

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
    const [asked, index] = location.hash.slice(1).split("=");
    if (asked === view.id && rows[index]) {
      pin(rows[index]);
      view.scrollIntoView();
    }
  }

  // The view takes the room beside the text; the list of headings goes while one is in sight.
  const room = document.querySelector(".bd-main");
  const contents = document.querySelector(".bd-sidebar-secondary");
  const inSight = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? inSight.add(target) : inSight.delete(target);
    contents?.classList.toggle("stages-in-sight", inSight.size > 0 && innerWidth >= 1200);
  });

  function spread(view) {
    const output = view.closest(".cell_output");
    if (!output || !room || view.closest("details.guide-answer")) return;
    output.classList.add("spread");
    output.style.marginInline = "";
    if (innerWidth >= 1200) {
      const [own, all] = [output.getBoundingClientRect(), room.getBoundingClientRect()];
      output.style.marginInline = `${all.left + 24 - own.left}px ${own.right - all.right + 24}px`;
    }
    seen.observe(output);
  }

  const views = document.querySelectorAll(".jgs");
  views.forEach(connect);
  views.forEach(spread);
  addEventListener("resize", () => views.forEach(spread));
})();
