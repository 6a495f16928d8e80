// The chooser above a table of pairs of calls (.call-pairs): choose two calls, guess, and see what JAX did at each
// cache. Without this script the table shows the outcome of every pair.
(() => {
  const SAID = {
    hit: ["A hit.", "hit", "not asked", "not asked"],
    path: ["Off the fast path, and nothing is compiled.", "miss", "hit", "hit"],
    compile: ["Compiles again, without a trace.", "miss", "hit", "miss"],
    trace: ["Traces and compiles again.", "miss", "miss", "miss"],
  };
  const GUESSES = { "Runs at once": ["hit", "path"], "Compiles again": ["compile", "trace"] };
  const element = (tag, fields, ...children) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.append(...children);
    return made;
  };
  const time = (ms) => (ms >= 1 ? `${ms} ms` : `${Number((1000 * ms).toPrecision(2))} µs`);

  function build(view) {
    const { names, reasons, found } = JSON.parse(view.querySelector("script").textContent);
    const score = { right: 0, all: 0 };
    const choice = (label, chosen) => {
      const options = names.map((name, i) =>
        element("option", { value: i, textContent: name, selected: i === chosen }),
      );
      const list = element("select", {}, ...options);
      return [list, element("label", {}, element("span", { textContent: label }), list)];
    };
    const [first, firstLabel] = choice("First call", 0);
    const [second, secondLabel] = choice("Second call", 3);
    const said = element("div", { className: "pairs-said" });
    said.setAttribute("role", "status");
    const buttons = Object.entries(GUESSES).map(([text, right]) => {
      const button = element("button", { type: "button", textContent: text });
      button.addEventListener("click", () => answer(right));
      return button;
    });
    const other = element("button", { type: "button", className: "pairs-other", textContent: "Another pair" });
    other.addEventListener("click", () => {
      // Outcomes are not evenly spread: first choose whether to show a call that compiles.
      const wanted = GUESSES[Object.keys(GUESSES)[Math.floor(Math.random() * 2)]];
      const fit = found.flatMap(([kind], i) => (wanted.includes(kind) ? [i] : []));
      const pair = fit[Math.floor(Math.random() * fit.length)];
      first.value = Math.floor(pair / names.length);
      second.value = pair % names.length;
      ask();
    });
    const guess = element("p", { className: "pairs-guess" }, "Your guess: ", ...buttons, other);

    function ask() {
      said.replaceChildren();
      for (const button of buttons) button.disabled = false;
    }

    function answer(right) {
      const [kind, why, all, trace, compile] = found[first.value * names.length + Number(second.value)];
      const [outcome, path, traces, compiles] = SAID[kind];
      const good = right.includes(kind);
      score.all += 1;
      score.right += good;
      for (const button of buttons) button.disabled = true;
      const head = element("p", {}, element("strong", { textContent: good ? "Right. " : "Not so. " }), outcome);
      const row = (name, did, ms) =>
        element(
          "tr",
          {},
          element("th", { scope: "row", textContent: name }),
          element("td", { className: `pair-${did === "miss" ? "trace" : "hit"}`, textContent: did }),
          element("td", { textContent: ms === null ? "" : time(ms) }),
        );
      const body = element(
        "tbody",
        {},
        row("fast path", path, null),
        row("trace cache", traces, trace),
        row("lowering and compile cache", compiles, compile),
        row("the whole second call", "", all),
      );
      const words = reasons[why].split("`").map((text, i) => (i % 2 ? element("code", { textContent: text }) : text));
      const reason = reasons[why] ? [element("p", {}, ...words)] : [];
      const count = element("p", {
        className: "pairs-score",
        textContent: `${score.right} of ${score.all} guesses right`,
      });
      said.replaceChildren(head, ...reason, element("table", {}, body), count);
    }

    first.addEventListener("change", ask);
    second.addEventListener("change", ask);
    view.prepend(element("div", { className: "pairs-choose" }, firstLabel, secondLabel, guess, said));
  }

  document.querySelectorAll(".call-pairs").forEach(build);
})();
