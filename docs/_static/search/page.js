/* The search page: shows what GuideSearch finds, while one types and for `?q=` in the address. */

(() => {
  const input = document.getElementById("guide-search-input");
  const status = document.getElementById("guide-search-status");
  const list = document.getElementById("guide-search-results");
  const root = document.documentElement.dataset.content_root || "./";
  const SHOWN = 15;

  const address = (page, anchor) => `${root}${page}.html${anchor ? `#${anchor}` : ""}`;

  function element(tag, content, options = {}) {
    const made = Object.assign(document.createElement(tag), options);
    made.append(...[content].flat());
    return made;
  }

  // The words around the first word of the query, with those words marked.
  function excerpt(text, wanted) {
    const marks = [...text.matchAll(/[A-Za-z_][\w.]*/g)].filter((m) =>
      GuideSearch.words(m[0]).some((w) => wanted.has(GuideSearch.stem(w.toLowerCase()))),
    );
    const start = Math.max(0, (marks[0]?.index ?? 0) - 60);
    const end = start + 220;
    const pieces = [start > 0 ? "… " : ""];
    let at = start;
    for (const mark of marks.filter((m) => m.index >= start && m.index + m[0].length <= end)) {
      pieces.push(text.slice(at, mark.index), element("mark", mark[0]));
      at = mark.index + mark[0].length;
    }
    pieces.push(text.slice(at, end), end < text.length ? " …" : "");
    return element("p", pieces);
  }

  function entry(found, wanted) {
    const [best, ...others] = found.sections;
    const parts = [element("a", found.title, { href: address(found.page, ""), className: "guide-search-page" })];
    if (best.title) parts.push(" › ", element("a", best.title, { href: address(found.page, best.anchor) }));
    parts.push(excerpt(best.text || best.code, wanted));
    const more = others.filter((s) => s.title).slice(0, 3);
    if (more.length)
      parts.push(
        element("p", [
          "Also: ",
          ...more.flatMap((s, i) => [i ? " · " : "", element("a", s.title, { href: address(s.page, s.anchor) })]),
        ]),
      );
    return element("li", parts);
  }

  function show() {
    const query = input.value.trim();
    list.replaceChildren();
    status.textContent = "";
    if (!query) return;
    const found = GuideSearch.find(query, SHOWN);
    const wanted = new Set(
      GuideSearch.words(query)
        .map((w) => GuideSearch.stem(w.toLowerCase()))
        .filter((w) => w.length > 2),
    );
    list.append(...found.map((page) => entry(page, wanted)));
    status.textContent = found.length
      ? `${found.length === SHOWN ? "The best " : ""}${found.length} ${found.length === 1 ? "page" : "pages"}`
      : "Nothing found. Try fewer or other words, or the name of the error alone.";
  }

  input.value = new URLSearchParams(location.search).get("q") || "";
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, "", input.value ? `?q=${encodeURIComponent(input.value)}` : location.pathname);
      show();
    }, 120);
  });
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  show();
  input.focus();
})();
