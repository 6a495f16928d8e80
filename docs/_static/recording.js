// A box that takes the file of `python -m jitguide record` and shows its numbers as a column of the tables above it.
// The file is read in the browser and goes nowhere. Without this script the page says how to print the tables.
(() => {
  const box = document.querySelector(".recording-drop");
  if (!box) return;
  const element = (tag, fields, ...children) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.append(...children);
    return made;
  };
  const input = element("input", { type: "file", accept: ".json,application/json" });
  const label = element("label", {}, "Or show its file here, or drop it; it is not uploaded: ", input);
  const said = element("p", {});
  said.setAttribute("role", "status");
  box.append(label, said);

  const cell = (text, own = true) => element("td", { className: "jg-num", textContent: own ? text : "" });
  const isText = (value) => typeof value === "string" && value.length < 200;
  const isRow = (row) => Array.isArray(row) && row.length === 3 && row.every(isText);

  // A row that the page does not have gets one, with empty cells for the other machines.
  function added(table, what) {
    const others = table.tHead.rows[0].cells.length - 2;
    const made = element("tr", {}, element("th", { scope: "row", textContent: what }));
    for (let i = 0; i < others; i++) made.append(cell("not measured"));
    table.tBodies[0].append(made);
    return made;
  }

  function show({ name, shown, made_on }) {
    const tables = [...document.querySelectorAll(".jg table")].filter((table) => table.caption);
    if (!tables.length) return;
    for (const old of document.querySelectorAll(".recording-own")) old.remove();
    for (const table of tables) {
      const head = element("th", { scope: "col", className: "jg-num recording-own", textContent: name });
      table.tHead.rows[0].append(head);
      const found = new Map(
        shown.filter(([group]) => group === table.caption.textContent).map(([, what, text]) => [what, text]),
      );
      for (const row of [...table.tBodies[0].rows]) {
        const made = cell(found.get(row.cells[0].textContent) ?? "not measured");
        made.classList.add("recording-own");
        row.append(made);
        found.delete(row.cells[0].textContent);
      }
      for (const [what, text] of found) {
        const row = added(table, what);
        row.classList.add("recording-own");
        row.append(cell(text));
      }
    }
    said.textContent = `Shown in the last column. ${made_on}`;
  }

  async function read(file) {
    let data = null;
    try {
      data = JSON.parse(await file.text());
    } catch {
      // said below
    }
    if (data?.format !== 1 || !isText(data.name) || !Array.isArray(data.shown) || !data.shown.every(isRow))
      said.textContent = `${file.name} is no recording that this page can show. Make one with: python -m jitguide record mine.json`;
    else show({ ...data, made_on: String(data.made_on ?? "") });
  }

  input.addEventListener("change", () => input.files.length && read(input.files[0]));
  for (const type of ["dragover", "drop"]) box.addEventListener(type, (event) => event.preventDefault());
  box.addEventListener("dragover", () => box.classList.add("over"));
  for (const type of ["dragleave", "drop"]) box.addEventListener(type, () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => event.dataTransfer.files.length && read(event.dataTransfer.files[0]));
})();
