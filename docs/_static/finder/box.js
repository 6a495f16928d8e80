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
    ready.catch(() => {
      ready = null; // the next letter tries again
    });
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
    const about = { href: address(...found.page.split("#")) };
    const more = found.page === found.home ? [] : [" · ", element("a", "More about it", about)];
    return [
      element("p", element("strong", rich(found.title))),
      ...(library && found.page.startsWith(TRACER_ERRORS) ? [inLibrary(library)] : []),
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
  // Of an error its last line, of a description all.
  const queryOf = (text, raised) => (raised ? lastLine(text) : text.trim().replace(/\s+/g, " ").slice(0, 200));
  const searchFor = (query) => {
    const href = `${root}search.html?q=${encodeURIComponent(query)}`;
    return element("p", element("a", "Search the guide for it", { href }));
  };
  const linkOf = (one) => [one.title, address(one.home, one.key)];

  function show() {
    const text = input.value;
    form.classList.toggle("filled", text.trim() !== "");
    if (!text.trim()) return answer.replaceChildren();
    const found = GuideErrors.explain(text);
    if (found.found) {
      const others = found.others.length ? [element("p", "Or, less likely:"), list(found.others.map(linkOf))] : [];
      return answer.replaceChildren(...entry(found.entry, found.library), ...others);
    }
    const own = [
      "This is probably not an error of JAX: it is a ",
      element("code", found.raised),
      ". If JAX raised it, paste the whole traceback: its last file tells.",
    ];
    const unknown = found.raised ? "This message is not in the catalogue." : "";
    search(text, queryOf(text, found.raised), element("p", found.foreign && found.raised ? own : unknown));
  }

  /** Show the pages that the search finds: for a problem in words, and for a message without an entry. */
  function search(text, query, said) {
    const nothing = () => answer.replaceChildren(said.textContent ? said : "Nothing fits. ", searchFor(query));
    if (!window.guideSearch) return nothing(); // all pages in one file have no search
    answer.replaceChildren(said, element("p", "Searching …"));
    window.guideSearch().then(() => {
      if (input.value !== text) return;
      const [status, pages] = [element("p", ""), element("ol", "", { className: "guide-results" })];
      GuideResults.show(query, pages, status, 5);
      if (!pages.childElementCount) return nothing();
      answer.replaceChildren(said, element("p", "These pages may help:"), pages, searchFor(query));
    }, nothing);
  }

  let waiting = 0;
  input.addEventListener("focus", start, { once: true });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => start().then(show), 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
})();
