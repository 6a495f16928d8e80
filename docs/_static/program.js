// Puts a button "Program" beside the copy button of each block. It copies what stands, folded, below the block.
(() => {
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

  async function copy(text, button) {
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text).catch(() => copyOldWay(text));
      else copyOldWay(text);
      tell(button, "Copied", `Program of ${text.trimEnd().split("\n").length} lines copied.`);
    } catch {
      button.program.open = true; // there it can be selected by hand
      tell(button, "Select it", "The browser did not allow copying. The program is shown below the block.");
    }
    button.focus();
  }

  function tell(button, shown, spoken) {
    button.textContent = shown;
    said.textContent = "";
    setTimeout(() => (said.textContent = spoken), 50); // the same words twice are read out twice
    setTimeout(() => (button.textContent = "Program"), 2000);
  }

  function connect(program) {
    const block = program.previousElementSibling?.querySelector("div.highlight");
    if (!block) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "program-button";
    button.textContent = "Program";
    button.title = "Copy this block with everything that it needs";
    button.setAttribute("aria-label", "Copy this block as a program");
    button.program = program;
    // textContent, not innerText: the text of what is folded away is empty to the latter.
    button.addEventListener("click", () => copy(program.querySelector("pre").textContent, button));
    block.append(button);
    block.classList.add("has-program");
  }

  document.body.append(said);
  document.querySelectorAll("details.program").forEach(connect);
})();
