// Shows the proof of a sentence in place: a click on its ✓ opens the claim, its verdicts by release of JAX, and its
// experiment, from one small file. Without this script the ✓ leads to the claim on the page of its topic.

// biome-ignore lint/correctness/noUnusedVariables: the files of the claims use it
const GuideProofs = (() => {
  const root = document.documentElement.dataset.content_root || "./";
  const known = {};
  const MARKS = { "+": "✓", "-": "✗", "~": "≈", 0: "–" };
  let count = 0;

  function element(tag, content, options = {}) {
    const made = Object.assign(document.createElement(tag), options);
    made.append(...[content].flat());
    return made;
  }
  const rich = (text) => text.split("`").map((part, i) => (i % 2 ? element("code", part) : part));

  function load(name) {
    if (known[name]) return Promise.resolve(known[name]);
    return new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: `${root}_static/claims/${name}.js` });
      script.onload = () => (known[name] ? resolve(known[name]) : reject());
      script.onerror = reject;
      document.head.append(script);
    });
  }

  function chip(text, where, [short, words, reason]) {
    const title = `${where}: ${words}${reason ? `. ${reason}` : ""}`;
    const made = element("li", [`${text} `, element("span", MARKS[short])], { title });
    made.dataset.verdict = short;
    made.setAttribute("aria-label", `${where} ${words}`);
    return made;
  }

  // The releases, and after them the other devices on which the experiment was run.
  function chips(found) {
    return [
      ...found.verdicts.map(([release, ...seen]) => chip(release, `JAX ${release}`, seen)),
      ...found.devices.map(([devices, jax, ...seen]) => {
        const twice = found.devices.filter(([other]) => other === devices).length > 1;
        return chip(`on ${devices}${twice ? `, JAX ${jax}` : ""}`, `On ${devices}, JAX ${jax}`, seen);
      }),
    ];
  }

  function panel(found, link) {
    const code = element("code", found.plain || "");
    if (found.code) code.innerHTML = found.code; // coloured by the build
    const close = element("button", "Close", { type: "button", className: "proof-close" });
    close.addEventListener("click", () => shut(link));
    const made = element("aside", [
      close,
      element("p", rich(found.sentence), { className: "proof-sentence" }),
      element("ul", chips(found), { className: "proof-verdicts" }),
      element("p", found.seen, { className: "proof-seen" }),
      element("div", element("pre", code, { tabIndex: 0 }), { className: "highlight" }),
      element(
        "p",
        [element("code", found.file), " · ", element("a", "This claim among its kind", { href: link.href })],
        {
          className: "proof-seen",
        },
      ),
    ]);
    made.className = "proof";
    made.id = `proof-${++count}`;
    made.setAttribute("aria-label", "Proof of the sentence");
    made.addEventListener("keydown", (event) => event.key === "Escape" && shut(link));
    return made;
  }

  function shut(link) {
    const shown = document.getElementById(link.getAttribute("aria-controls"));
    (shown?.closest(".proof-cell")?.parentElement ?? shown)?.remove();
    link.setAttribute("aria-expanded", "false");
    link.focus();
  }

  // Below the block, or the row of a table, in which the mark stands.
  async function toggle(link, name) {
    if (link.getAttribute("aria-expanded") === "true") return shut(link);
    try {
      const made = panel(await load(name), link);
      const row = link.closest("tbody tr");
      const block = link.closest("p, li, dd, h1, h2, h3, h4, figcaption") || link.parentElement;
      if (row) row.after(element("tr", element("td", made, { className: "proof-cell", colSpan: row.cells.length })));
      else if (block.matches("li, dd")) block.append(made);
      else block.after(made);
      made.scrollIntoView({ block: "nearest" });
      link.setAttribute("aria-controls", made.id);
      link.setAttribute("aria-expanded", "true");
    } catch {
      location.href = link.href; // its page has it as well
    }
  }

  // A screen reader says what the mark is for; its title holds the proved sentence.
  for (const mark of document.querySelectorAll("a.claim-link")) mark.setAttribute("aria-label", "Proof");
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.claim-link");
    const name = link?.hash.match(/^#claim-(.+)/)?.[1];
    if (!name || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    toggle(link, name);
  });
  document.addEventListener("keydown", (event) => {
    const link = document.activeElement;
    if (event.key === "Escape" && link?.matches?.('a.claim-link[aria-expanded="true"]')) shut(link);
  });

  return {
    take(name, data) {
      known[name] = data;
    },
  };
})();
