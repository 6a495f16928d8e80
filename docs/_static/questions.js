// Filters the page of all questions by words. Without this script all are listed.
(() => {
  const asked = [...document.querySelectorAll("dl.question-list > dt")];
  const sections = new Set(asked.map((one) => one.closest("section")));

  const input = Object.assign(document.createElement("input"), { type: "search", size: 40 });
  const label = document.createElement("label");
  label.append("Show the questions with these words", input);
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  const form = Object.assign(document.createElement("form"), { className: "claims-filter" });
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the questions");
  form.append(label, said);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.querySelector(".filter-place").append(form);

  function show() {
    const words = input.value.toLowerCase().split(/\s+/);
    const fits = (one) => {
      const text = `${one.textContent} ${one.nextElementSibling.textContent}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const shown = asked.filter((one) => {
      one.hidden = one.nextElementSibling.hidden = !fits(one);
      return !one.hidden;
    });
    for (const section of sections) section.hidden = !section.querySelector("dt:not([hidden])");
    said.textContent = `${shown.length} of ${asked.length} questions shown.`;
  }

  input.addEventListener("input", show);
  show();
})();
