/* Finds pages: which sections of the guide answer a question, or an error message, best. Needs MiniSearch only. */

// biome-ignore lint/correctness/noUnusedVariables: page.js, another script of the page, uses it
const GuideSearch = (() => {
  // Words without a topic. A question is full of them, and so is every page.
  const EMPTY = new Set(
    (
      "a about after all also always am an and any anything are as at be because been but by can cannot could did do does doing " +
      "don't each else even every for from get gets give given gives has have how however i i'm if in instead into is isn't it its " +
      "just like make many may me much my need no not now of on one only or other our out over own really same say see should so " +
      "some such than that the their them then there these they this those through to too two until use used using very want was " +
      "way we well were what what's when where whether which while who why will with within without work works would you your"
    ).split(" "),
  );

  // The endings of English words that matter here: "recompiles", "recompiling" and "recompilation" are one word.
  function stem(word) {
    if (word.length < 5 || /[_.\d]/.test(word)) return word;
    return word
      .replace(/(?:at)?ions?$/, "")
      .replace(/(ss)es$/, "$1")
      .replace(/ies$/, "y")
      .replace(/([^su])s$/, "$1")
      .replace(/(ing|ed|er)$/, "")
      .replace(/(.)\1$/, "$1")
      .replace(/e$/, "");
  }

  // "jax.errors.TracerBoolConversionError" is found as a whole, by its last part, and by the words in it.
  function words(text) {
    const found = [];
    for (const piece of text.match(/[A-Za-z_][\w.]*\w|\w+/g) || []) {
      const parts = piece.split(".").filter(Boolean);
      for (const part of parts) {
        found.push(part);
        if (/_/.test(part)) found.push(...part.split("_").filter(Boolean));
        if (/[a-z][A-Z]/.test(part)) found.push(...part.split(/(?<=[a-z])(?=[A-Z])/));
      }
    }
    return found;
  }

  // The form of a word in which it is found, or null for a word without a topic.
  const known = new Map(); // a word occurs in many sections
  function term(word) {
    if (!known.has(word)) {
      const lower = word.toLowerCase();
      known.set(word, EMPTY.has(lower) || (lower.length < 2 && !/\d/.test(lower)) ? null : stem(lower));
    }
    return known.get(word);
  }

  // What beginners call a thing, and what the pages call it.
  const SAME = [
    [
      /\b(not|never|isn't|doesn't|does not) (being |getting )?(use|used|using|found|find|detected|detect|seen|see)\b/gi,
      "$& falling back",
    ],
    [/\b(doesn't|does not|won't) fit in(to)?( the| my)?( gpu| device)? memory\b/gi, "out of memory"],
    [/\b(each|every) (step|iteration|epoch|batch|time)\b/gi, "every call"],
    [/\bcompil(es|ing|ed) (on |at |in |with )?(each|every)\b/gi, "recompiles every"],
    [/<class 'jax[\w.]*'>/g, ""], // messages name the class of a tracer or an array, which is on many pages
  ];

  // Lists of everything mention everything: they come after the pages that explain one thing.
  const LISTS =
    /^reference\/(glossary|api|questions)$|^about\/(claims|more-facts|five-tutorials|coverage|status)$|^index$|\/index$/;
  const weightOf = (page) => (LISTS.test(page) ? 0.4 : page.startsWith("howto/") ? 1.3 : 1);

  const BM25 = { k: 1.2, b: 0.5, d: 0.5 }; // less of a handicap for long sections

  let index = null; // of the sections
  let wholes = null; // of the pages
  let sections = [];

  /**
   * Take the sections of the site: `[page, anchor, page title, title, text, code]` each, the page title once.
   * The code is a list of gaps between the numbers of its words.
   */
  function load({ words: all, rows }) {
    const names = all.split(" ");
    let pageTitle = "";
    sections = rows.map(([page, anchor, newTitle, title, text, gaps], id) => {
      pageTitle = newTitle || pageTitle;
      let at = 0;
      const code = gaps.map((gap) => {
        at += gap;
        return names[at];
      });
      return { id, page, anchor, pageTitle, title, text, code: code.join(" ") };
    });
    index = new MiniSearch({
      fields: ["pageTitle", "title", "text", "code"],
      tokenize: words,
      processTerm: term,
    });
    index.addAll(sections);
    const pages = new Map();
    for (const { page, pageTitle, title, text, code } of sections) {
      if (!pages.has(page)) pages.set(page, { id: page, pageTitle, title: "", text: "" });
      pages.get(page).title += ` ${title}`;
      pages.get(page).text += ` ${text} ${code}`;
    }
    wholes = new MiniSearch({ fields: ["pageTitle", "title", "text"], tokenize: words, processTerm: term });
    wholes.addAll([...pages.values()]);
  }

  /**
   * Return the best pages for a query, best first: `{page, title, score, sections: [{anchor, title, text}]}`.
   * A page counts by its best section, a little by the others, and by all of its words.
   */
  function find(query, most = 20) {
    const asked = SAME.reduce((text, [said, meant]) => text.replace(said, meant), query);
    const flat = (text) => text.replaceAll("`", "").trim().toLowerCase();
    const hits = index.search(asked, {
      // These numbers find the most questions of docs/_data/questions.json (`nox -s bench -- search`).
      boost: { title: 1.6, code: 1.2 },
      bm25: BM25,
      prefix: (word) => word.length > 3,
      fuzzy: (word) => (word.length > 6 ? 0.25 : false),
      // A heading that is the query, such as the name of a parameter, comes first.
      boostDocument: (id) => weightOf(sections[id].page) * (flat(sections[id].title) === flat(query) ? 4 : 1),
      weights: { prefix: 0.3, fuzzy: 0.2 },
    });
    const pages = new Map();
    for (const hit of hits) {
      const section = sections[hit.id];
      const page = pages.get(section.page);
      if (!page)
        pages.set(section.page, {
          page: section.page,
          title: section.pageTitle,
          score: hit.score,
          terms: hit.terms,
          sections: [section],
        });
      else if (page.sections.every((one) => one.anchor !== section.anchor)) {
        page.sections.push(section);
        page.score += hit.score * 0.4 ** page.sections.length;
      }
    }
    // What a page says as a whole finds questions in other words than those of its sections.
    const whole = new Map(
      wholes
        .search(asked, { boostDocument: weightOf, bm25: BM25 })
        .map(({ id, score }, _, [best]) => [id, score / best.score]),
    );
    const best = Math.max(...[...pages.values()].map((page) => page.score));
    for (const page of pages.values()) page.score = page.score / best + 0.7 * (whole.get(page.page) || 0);
    return [...pages.values()].sort((a, b) => b.score - a.score).slice(0, most);
  }

  return { load, find, words, stem, term };
})();
