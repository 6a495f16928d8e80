// The box for error messages: loads the catalogue when it is first used, and shows what fits below it.
(() => {
  const form = document.querySelector(".error-finder");
  if (!form) return;
  const root = document.documentElement.dataset.content_root || "./";
  const [input, answer] = [form.querySelector("textarea"), form.querySelector(".error-finder-answer")];
  const TRACER_ERRORS = "howto/tracer-errors";
  let ready = null;

  // A script, not a request: requests do not work in a folder on disk.
  const script = (name) =>
    new Promise((resolve, reject) => {
      const made = Object.assign(document.createElement("script"), { src: `${root}_static/finder/${name}.js` });
      made.onload = resolve;
      made.onerror = reject;
      document.head.append(made);
    });
  const start = () => {
    ready ||= script("explain").then(() => script("catalogue"));
    return ready;
  };

  function element(tag, content, options = {}) {
    const made = Object.assign(document.createElement(tag), options);
    made.append(...[content].flat());
    return made;
  }
  // Text with code between backticks; roles of the page's source go.
  const rich = (text) =>
    text
      .replace(/\{[\w:]+\}(?=`)/g, "")
      .split("`")
      .flatMap((part, i) =>
        i % 2
          ? element("code", part.replace(/\s*<[^>]*>$/, ""))
          : part.split(/\*([^*]+)\*(?!\w)/).map((words, j) => (j % 2 ? element("em", words) : words)),
      );
  const address = (page, anchor) => `${root}${page}.html${anchor ? `#${anchor}` : ""}`;
  function inLibrary(library) {
    const href = address(TRACER_ERRORS, "the-failing-line-is-in-a-library");
    return element("p", [
      "The failing line is in the library ",
      element("code", library),
      ": ",
      element("a", "what you can do about it", { href }),
      ".",
    ]);
  }
  function entry(found, library) {
    const about = { href: address(found.page) };
    const more = found.page === found.home ? [] : [" · ", element("a", "The page about it", about)];
    return [
      element("p", element("strong", rich(found.title))),
      ...(library && found.page === TRACER_ERRORS ? [inLibrary(library)] : []),
      element("p", [element("b", "Cause: "), ...rich(found.cause)]),
      element("p", element("b", "Fix:")),
      element("pre", found.fix.trim(), { tabIndex: 0 }),
      element("p", [element("b", "Cost: "), ...rich(found.cost)]),
      element("p", [
        element("a", "Example and fix in the error index", { href: address(found.home, found.key) }),
        ...more,
      ]),
    ];
  }

  const list = (items) =>
    element(
      "ul",
      items.map(([title, href]) => element("li", element("a", rich(title), { href }))),
    );
  const lastLine = (text) => text.trim().split("\n").at(-1).trim().slice(0, 200);
  const searchFor = (text) => {
    const href = `${root}search.html?q=${encodeURIComponent(lastLine(text))}`;
    return element("p", element("a", "Search the guide for it", { href }));
  };
  const linkOf = (one) => [one.title, one.key ? address(one.home, one.key) : address(one.page)];

  function show() {
    const text = input.value;
    form.classList.toggle("filled", text.trim() !== "");
    if (!text.trim()) return answer.replaceChildren();
    const found = GuideErrors.explain(text);
    if (found.found) {
      const others = found.others.length ? [element("p", "Or, less likely:"), list(found.others.map(linkOf))] : [];
      return answer.replaceChildren(...entry(found.entry, found.library), ...others);
    }
    const own = found.foreign && found.raised;
    if (!own) return search(text, found.raised);
    const said = [
      "This is probably not an error of JAX: it is a ",
      element("code", found.raised),
      ". If JAX raised it, paste the whole traceback: its last file tells.",
    ];
    answer.replaceChildren(element("p", said), searchFor(text));
  }

  /** Show the pages that the search finds: for a problem in words, and for a message without an entry. */
  function search(text, raised) {
    const nothing = element("p", ["Nothing in the catalogue fits. ", ...searchFor(text).childNodes]);
    if (!window.guideSearch) return answer.replaceChildren(nothing); // all pages in one file have no search
    window.guideSearch().then(() => {
      if (input.value !== text) return;
      const query = lastLine(text);
      const [status, pages] = [element("p", ""), element("ol", "", { className: "guide-results" })];
      GuideResults.show(query, pages, status, 5);
      if (!pages.childElementCount) return answer.replaceChildren(nothing);
      const head = raised ? "Not in the catalogue. These pages may help:" : "These pages fit what you describe:";
      answer.replaceChildren(element("p", head), pages, searchFor(text));
    });
  }

  let waiting = 0;
  input.addEventListener("focus", start, { once: true });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => start().then(show), 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
})();
