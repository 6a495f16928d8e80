// Makes buttons of the guesses of a prediction, shows the outcome and what each guess overlooks, and keeps what was
// guessed and solved in this browser. Without this script the guesses are a list and the answer is folded.
(() => {
  const KEY = "lessons";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const nameOf = (address) =>
    address
      .split("#")[0]
      .slice(root.href.length)
      .replace(/(\.html|\/)$/, "");

  // What was done, by page: { "learn/loops": { guess: true, solved: true } }; nothing where storage is forbidden.
  function done(change) {
    try {
      const all = JSON.parse(localStorage.getItem(KEY)) || {};
      if (change) {
        change(all);
        localStorage.setItem(KEY, JSON.stringify(all));
      }
      return all;
    } catch {
      return {};
    }
  }
  const keep = (what) =>
    done((all) => {
      const page = nameOf(location.href);
      all[page] = { ...all[page], ...what };
    });
  const element = (tag, fields, ...children) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.append(...children);
    return made;
  };

  function tally() {
    const pages = Object.values(done());
    const guesses = pages.filter((page) => "guess" in page);
    const right = guesses.filter((page) => page.guess).length;
    const solved = pages.reduce((sum, page) => sum + (page.solved || []).length, 0);
    return `${right} of ${guesses.length} guesses right, ${solved} exercise${solved === 1 ? "" : "s"} solved`;
  }

  function offer(list) {
    const answer = list.closest(".guide-predict").nextElementSibling;
    const reasons = [...answer.querySelectorAll(".guide-reasons > dt")];
    const said = element("p", { className: "guess-said" });
    said.setAttribute("role", "status");
    let first = true;
    [...list.children].forEach((item, i) => {
      const button = element("button", { type: "button" }, ...item.firstElementChild.childNodes);
      item.replaceChildren(button);
      button.addEventListener("click", () => {
        const right = reasons[i].classList.contains("right");
        item.className = right ? "right" : "wrong";
        if (first) keep({ guess: right });
        first = false;
        answer.open = true;
        const why = reasons[i].nextElementSibling.firstElementChild.cloneNode(true);
        said.replaceChildren(right ? "Right. " : "Not so. ", ...why.childNodes);
        said.append(element("span", { className: "guess-tally", textContent: ` So far: ${tally()}.` }));
      });
    });
    list.after(said);
  }

  function ask(answer, i) {
    const box = element("input", {
      type: "checkbox",
      checked: (done()[nameOf(location.href)]?.solved || []).includes(i),
    });
    box.addEventListener("change", () => {
      const others = (done()[nameOf(location.href)]?.solved || []).filter((other) => other !== i);
      keep({ solved: box.checked ? [...others, i] : others });
    });
    answer.append(element("p", { className: "exercise-solved" }, element("label", {}, box, " I solved it")));
  }

  function report(place) {
    const all = done();
    if (!Object.keys(all).length) return;
    const again = element("button", { type: "button", textContent: "Start again" });
    again.addEventListener("click", () => {
      done((old) => {
        for (const page of Object.keys(old)) delete old[page];
      });
      location.reload();
    });
    place.replaceChildren(element("p", {}, `${tally()}. `, again));
    for (const link of document.querySelectorAll("article td a")) {
      const page = all[nameOf(link.href)];
      if (!page) continue;
      const parts = [];
      if ("guess" in page) parts.push(page.guess ? "✔ guessed" : "✗ guessed");
      if (page.solved?.length) parts.push("✔ solved");
      link.after(element("span", { className: "lesson-done", textContent: parts.join(" · ") }));
    }
  }

  document.querySelectorAll(".guide-guesses").forEach(offer);
  document.querySelectorAll(".guide-exercise + .guide-answer").forEach(ask);
  document.querySelectorAll(".lesson-progress").forEach(report);
})();
