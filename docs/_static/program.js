// Gives each block of code a toolbar: "Copy", and "Copy runnable" where the program of the block stands, folded, below.
(() => {
  const BLOCKS =
    "div.cell_input div.highlight pre, div.program div.highlight pre, div.error-example div.highlight pre, div.error-repair div.highlight pre";
  // Fragments and commands in the text, which need not run by themselves.
  const FENCED =
    "div:is(.highlight-python, .highlight-console, .highlight-yaml, .highlight-toml, .highlight-bash) > div.highlight pre";
  const said = document.createElement("div");
  said.className = "program-said";
  said.setAttribute("aria-live", "polite"); // one for the page: readers hear what happened

  // Pages read from a file or over plain HTTP may have no clipboard: select and copy as of old.
  function copyOldWay(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "program-said";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("not allowed");
  }

  async function copy(button, text, program) {
    const lines = `${text.trimEnd().split("\n").length} lines copied.`;
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text).catch(() => copyOldWay(text));
      else copyOldWay(text);
      tell(button, "Copied", program ? `A whole program of ${lines}` : lines);
    } catch {
      if (program) program.open = true; // there it can be selected by hand
      tell(button, "Select it", "The browser did not allow copying: select the text.");
    }
    button.focus();
  }

  function tell(button, shown, spoken) {
    button.textContent = shown;
    said.textContent = "";
    setTimeout(() => (said.textContent = spoken), 50); // the same words twice are read out twice
    setTimeout(() => (button.textContent = button.dataset.name), 2000);
  }

  function button(name, title, press) {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: name, title });
    made.dataset.name = name;
    made.addEventListener("click", () => press(made));
    return made;
  }

  // textContent, not innerText: the text of what is folded away is empty to the latter.
  function textOf(pre) {
    const whole = pre.cloneNode(true);
    for (const part of whole.querySelectorAll(".linenos, .gp, .go, .jgs-t i")) part.remove();
    return whole.textContent.replace(/\n$/, "");
  }

  function connect(pre) {
    const block = pre.closest("div.highlight");
    const below = (pre.closest(".cell_input") || block.parentElement).nextElementSibling;
    const tools = Object.assign(document.createElement("div"), { className: "code-tools" });
    tools.append(button("Copy", "Copy this block", (made) => copy(made, textOf(pre))));
    if (below?.matches("details.program")) {
      const program = below.querySelector("pre");
      const title = "Copy this block with everything that it needs to run";
      tools.append(button("Copy runnable", title, (made) => copy(made, program.textContent, below)));
    }
    block.append(tools);
  }

  document.body.append(said);
  document.querySelectorAll(`${BLOCKS}, ${FENCED}`).forEach(connect);
  for (const pane of document.querySelectorAll(".jgs-t")) {
    const tools = Object.assign(document.createElement("div"), { className: "code-tools" });
    tools.append(button("Copy", "Copy this text", (made) => copy(made, textOf(pane))));
    pane.after(tools);
  }

  // What a call did and what a comparison found are told apart at a glance.
  const CHIPS = {
    hit: "chip-good",
    faster: "chip-good",
    compiled: "chip-cost",
    traced: "chip-cost",
    lowered: "chip-cost",
    slower: "chip-bad",
  };
  for (const cell of document.querySelectorAll(".jg td")) {
    const kind = CHIPS[cell.textContent.trim()];
    if (kind) cell.classList.add("chip", kind);
  }
  // What stands between backticks in a terminal is code here.
  for (const part of document.querySelectorAll(".jg td, .jg p")) {
    const pieces = part.textContent.split("`");
    if (part.querySelector(":not(wbr)") || pieces.length < 3 || pieces.length % 2 === 0) continue;
    const code = (text) => Object.assign(document.createElement("code"), { textContent: text });
    part.replaceChildren(...pieces.map((piece, i) => (i % 2 ? code(piece) : piece)));
  }
})();
