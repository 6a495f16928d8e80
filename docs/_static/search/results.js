/* Shows what GuideSearch finds, in the list of the search page or of the dialog. */

// biome-ignore lint/correctness/noUnusedVariables: page.js and dialog.js, other scripts of the page, use it
const GuideResults = (() => {
  const root = document.documentElement.dataset.content_root || "./";
  const KINDS = { learn: "Learn", howto: "How-to", examples: "Example", reference: "Reference" };

  const address = (page, anchor) => `${root}${page}.html${anchor ? `#${anchor}` : ""}`;

  function element(tag, content, options = {}) {
    const made = Object.assign(document.createElement(tag), options);
    made.append(...[content].flat());
    return made;
  }

  // The words around the first word of the query, with those words marked.
  function excerpt(text, wanted) {
    const marks = [...text.matchAll(/[A-Za-z_][\w.]*/g)].filter((m) =>
      GuideSearch.words(m[0]).some((w) => wanted.has(GuideSearch.term(w))),
    );
    const from = Math.max(0, (marks[0]?.index ?? 0) - 60);
    const start = from && text.indexOf(" ", from) + 1; // words stay whole
    const stop = text.lastIndexOf(" ", start + 220);
    const end = text.length <= start + 220 || stop <= start ? text.length : stop;
    const pieces = [start > 0 ? "… " : ""];
    let at = start;
    for (const mark of marks.filter((m) => m.index >= start && m.index + m[0].length <= end)) {
      pieces.push(text.slice(at, mark.index), element("mark", mark[0]));
      at = mark.index + mark[0].length;
    }
    // The index holds the first words of a section only.
    pieces.push(text.slice(at, end), text && (end < text.length || !/[.!?:)]$/.test(text)) ? " …" : "");
    return element("p", pieces);
  }

  function entry(found, wanted) {
    const [best, ...others] = found.sections;
    const parts = [element("a", found.title, { href: address(found.page, ""), className: "guide-search-page" })];
    const kind = KINDS[found.page.split("/")[0]];
    if (best.title) parts.push(" › ", element("a", best.title, { href: address(found.page, best.anchor) }));
    if (kind) parts.push(element("span", kind, { className: "guide-kind" }));
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

  /** Fill the list with the best pages for a query, and say how many there are. A list that shows them stays. */
  function show(query, list, status, most) {
    if (list.dataset.query === query) return;
    list.dataset.query = query;
    list.replaceChildren();
    status.textContent = "";
    if (!query) return;
    const found = GuideSearch.find(query, most);
    const wanted = new Set(GuideSearch.words(query).map(GuideSearch.term).filter(Boolean));
    list.append(...found.map((page) => entry(page, wanted)));
    status.textContent = found.length
      ? `${found.length === most ? "The best " : ""}${found.length} ${found.length === 1 ? "page" : "pages"}`
      : "Nothing found. Try fewer or other words, or the name of the error alone.";
  }

  return { show };
})();
