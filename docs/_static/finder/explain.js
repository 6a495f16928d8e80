/* What `jitguide.explain` does with a text, in the browser: the same catalogue, the same expressions, the same ranks.
   A test runs both on the same texts. Nothing leaves the browser. */

// biome-ignore lint/correctness/noUnusedVariables: catalogue.js and box.js, other scripts of the page, use it
const GuideErrors = (() => {
  const CLASS = 4;
  const SOURCE = 2;
  const MISSING = -1;
  const OTHERS = 4;
  const FEWEST = 3; // lines that begin alike
  const FEWEST_LETTERS = 22; // of a message that was cut
  const ANY_CALL = "missing-argument";
  const REMOVED_FRAMES = "JAX has removed its internal frames";
  const [REMOVED, TOO_OLD, OWN_FILE] = ["removed-name", "jax-too-old", "own-file-called-jax"];
  const [HEAD, TAIL] = [10_000, 40_000];
  let entries = [];
  let re = {};
  let names = {};

  const compile = ([pattern, flags]) => new RegExp(pattern, flags);
  const all = (name, text) => [...text.matchAll(re[name])];
  const has = (name, text) => text.search(re[name]) >= 0;
  const last = (list) => list[list.length - 1];
  const component = (name) => name.slice(name.lastIndexOf(".") + 1);

  /** Take the catalogue, the expressions of the package, and the names of JAX. */
  function load(data) {
    re = Object.fromEntries(Object.entries(data.expressions).map(([name, given]) => [name, compile(given)]));
    entries = data.entries.map((entry) => ({
      ...entry,
      patterns: entry.patterns.map((p) => new RegExp(p, "i")),
      source: entry.source.map((p) => new RegExp(p, "m")),
    }));
    names = data.names;
  }

  function clean(text) {
    let found = text.replace(re.ANSI, "").replace(re.FILTER_NOTE, "");
    found = found.replace(re.CELL, "<cell>").replace(re.ADDRESS, "");
    found = found.replace(re.QUOTED_FILE, 'File "$1"');
    found = found.replace(re.PATH, (whole) => {
      const path = whole.replace(/\.+$/, "");
      const name = path.match(re.FILE_NAME);
      return (name ? name[0] : "<directory>") + whole.slice(path.length);
    });
    return found.trim();
  }

  function shortened(text) {
    let ends = text;
    if (text.length > HEAD + TAIL) {
      const at = text.slice(HEAD, -TAIL).lastIndexOf("Traceback (most recent call last)");
      const middle = at < 0 ? "" : text.slice(Math.max(at, HEAD), at + 2 * HEAD);
      ends = `${text.slice(0, HEAD)}\n${middle}\n${text.slice(-TAIL)}`;
    }
    return ends.replace(re.LONG_WORD, "$1");
  }

  /** Without what a log or a mail puts before each line. */
  function unprefixed(text) {
    const found = last(all("PREFIXED", text));
    if (!found) return text;
    const literal = found.groups.prefix.trimEnd().replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const lines = new RegExp(`^${literal.replace(/\d+/g, "\\d+")}(?:[ \\t]|$)`, "gm");
    return (text.match(lines) || []).length >= FEWEST ? text.replace(lines, "") : text;
  }

  function codeOnly(source) {
    return source.replace(re.STRING_OR_COMMENT, (...match) => {
      const groups = last(match);
      if (groups.quote === undefined) return "";
      const fields = (groups.prefix || "").toLowerCase().includes("f") ? groups.inside.match(re.FIELD) || [] : [];
      return `"${fields.map(codeOnly).join(" ")}"`;
    });
  }

  function score(entry, evidence) {
    if (!entry.error && evidence.classes.size && ![...evidence.classes].some((c) => c.endsWith("Warning"))) return null;
    const texts = [evidence.message, evidence.message.split(/\s+/).filter(Boolean).join(" ")];
    const lengths = entry.patterns.flatMap((p) => texts.map((text) => text.match(p)?.[0].length));
    const matched = lengths.filter((length) => length !== undefined);
    if (!matched.length) return null;
    let found = Math.max(...matched) / 1000;
    if (evidence.classes.has(component(entry.error || ""))) found += CLASS;
    if (entry.source.length) {
      const hit = entry.source.some((p) => p.test(evidence.source));
      if (!hit && has("PLAIN", evidence.message)) return null; // Python's own words, which mean this in such a line only
      found += hit ? SOURCE : MISSING;
    }
    return found;
  }

  function rank(evidence) {
    const scored = entries.map((entry) => [score(entry, evidence), entry]).filter(([value]) => value !== null);
    const ranked = scored.sort((a, b) => b[0] - a[0]).map(([, entry]) => entry);
    const isGeneral = (entry) => entry.key === ANY_CALL || entry.source.length > 0;
    // What knows the function is better than the general entry, also with another class.
    if (ranked[0]?.key === ANY_CALL) ranked.sort((a, b) => isGeneral(a) - isGeneral(b));
    if (ranked[0]?.key !== REMOVED || !exists(evidence.message)) return ranked;
    const shadowed = ranked.filter((entry) => entry.key === OWN_FILE); // each JAX has the name
    const better = shadowed.length ? shadowed : entries.filter((entry) => entry.key === TOO_OLD);
    return [...better, ...ranked.filter((entry) => !better.includes(entry))];
  }

  /** Return whether a message misses a name of JAX that the JAX of this page has. */
  function exists(message) {
    return all("MISSING_NAME", message).some(({ groups: g }) => {
      const found = names[g.module || g.owner || g.source];
      return found && (g.module || found.includes(g.attribute || g.name));
    });
  }

  const isYours = (file) => !has("IN_LIBRARY", file) && !has("IN_JAX", file);

  function isForeign(evidence, files, inJax) {
    const classes = [...evidence.classes];
    if (classes.some((c) => /^(Tracer|Concretization|UnexpectedTracer)/.test(c))) return false;
    const inOtherFile = files.length > 0 && has("OTHER_FILE", last(files));
    // Another library may speak of "JAX", and JAX of its classes: `pandas.core.series.Series`.
    if (inOtherFile && !evidence.message.includes("jax")) return true;
    if (has("OTHER_LIBRARY", evidence.message) && !/jax/i.test(evidence.message)) return true;
    const inJaxFile = files.length > 0 && (has("IN_JAX", last(files)) || has("OF_PALLAS", files.join("\n")));
    const quotes = ["JaxRuntimeError", "XlaRuntimeError"].includes(evidence.raised); // what your callback raised
    const ranked = rank(evidence);
    const inSuchALine = ranked.some((entry) => entry.source.length);
    if (has("NAMES_ONLY", evidence.message) && !inJaxFile && !quotes && !inSuchALine) return true;
    if (has("JAX_WORDS", evidence.message) || inJaxFile) return false;
    const raises = evidence.source.startsWith("raise ");
    if (inJax && evidence.raised === "AssertionError" && evidence.source && !raises)
      return evidence.source.startsWith("assert"); // JAX asserts, too
    const ofPackage = files.length > 0 && has("PACKAGE", last(files));
    if (has("PLAIN", evidence.message)) return ofPackage || !inSuchALine;
    if (has("NUMPY", evidence.message)) return !(inJax && has("JAX_LINE", evidence.source));
    if (inJax && !raises) return false;
    if (has("CALL", evidence.message)) return true;
    const called = files.length > 0 && isYours(last(files)) && has("JAX_LINE", evidence.source);
    const cut = !ranked.length && has("CUT", evidence.message);
    return !ranked.some((entry) => entry.key !== ANY_CALL) && (raises || !(cut || called));
  }

  /** Return the package of the last file that is not JAX's or NumPy's, or "" if that is yours or Python's. */
  function libraryOf(files) {
    const packageOf = (file) => last(all("PACKAGE", file))?.[1] || "";
    const others = files.filter((file) => !has("IN_JAX", file) && packageOf(file) !== "numpy");
    return others.length ? packageOf(last(others)) : "";
  }

  /** Return the evidence of one traceback; `hidden` is whether JAX removed its frames somewhere in the text. */
  function part(text, hidden = false) {
    const raises = all("RAISED", text);
    const frames = all("FRAME", text);
    const own = frames.filter((m) => isYours(m.groups.file)).slice(-1);
    const arrows = all("ARROW_LINE", text).map((m) => m.groups.code);
    const codes = [...own.map((m) => m.groups.code || ""), ...arrows];
    const after = text.startsWith("\n") ? raises[0] : last(raises);
    const [name, message] = after ? [after[1], text.slice(after.index)] : ["", text];
    let classes = new Set(raises.map((m) => component(m[1])));
    if (message.includes("`bool` function")) classes = new Set(["TracerBoolConversionError"]);
    const found = { classes, message: clean(message), source: codeOnly(codes.join("\n")), raised: component(name) };
    // Before Python 3.11, the note about frames stands above the last traceback, which then ends in your line.
    const noFrames = text.includes(REMOVED_FRAMES) || (hidden && own.length > 0 && own[0] === last(frames));
    const inJax = noFrames || has("OF_JAX", name) || has("JAX_WARNING", text);
    const files = frames.map((m) => m.groups.file);
    const ends = frames.filter((m) => !has("IN_JAX", m.groups.file)).map((m) => m.index + m[0].length);
    const inCell = has("CELL", text.slice(last(ends) || 0)); // the failing line is in a cell of yours
    const library = inCell ? "" : libraryOf(files);
    return { ...found, message: clean(text), foreign: isForeign(found, files, inJax), library };
  }

  function evidenceOf(given) {
    const typed = given
      .replaceAll("\r\n", "\n")
      .replace(re.ANSI, "")
      .replace(/\u00a0/g, " ");
    const quoted = typed.replace(/[\u2018\u2019]/g, "'").replace(/[\u201c\u201d]/g, '"');
    const whole = unprefixed(shortened(quoted))
      .replace(re.SHORT_FRAME, '  File "$1", line $2, in $3')
      .replace(re.OLD_FRAME, "File $<file>:$<line>, in $<function>\n$<before>$<arrow>");
    const plain = whole.replace(re.LOGGED, "").replace(re.GROUP, "");
    const text = plain.replace(re.WRAPPED, "").replace(re.BOX, " ");
    const found = text
      .split(re.CHAINED)
      .map((one) => part(last(one.split(re.TRACEBACK)), text.includes(REMOVED_FRAMES)))
      .reverse();
    if (!found[0].raised) return [part(text)]; // the end of a log, or a traceback that was cut
    return found[0].foreign ? found : [...found, part(text)];
  }

  /** Return the entry whose message begins as one that was cut, if no other entry of that class has one. */
  function byBeginning(evidence) {
    const { name = "", start = "" } = all("CUT", evidence.message)[0]?.groups || {};
    const begins = (e) => e.beginnings.some((beginning) => beginning.startsWith(start.toLowerCase()));
    const ofClass = (e) => e.error && component(e.error) === name;
    const tells = start.length >= FEWEST_LETTERS && !evidence.foreign;
    const found = tells ? entries.filter((e) => ofClass(e) && begins(e)) : [];
    return found.length === 1 ? found : [];
  }

  function byClass(evidence) {
    const raised = [...all("RAISED", evidence.message), ...all("HEAD", evidence.message)];
    const named = new Set(raised.map((m) => component(m[1])));
    named.delete("JaxRuntimeError");
    const fits = (e) => !e.source.length && e.error?.startsWith("jax.") && named.has(component(e.error));
    return entries.filter(fits).slice(0, 1);
  }

  /** Return what the catalogue says about a text: `{found, foreign, raised, entry, library, others}`. */
  function explain(text) {
    const evidence = evidenceOf(text);
    const known = evidence.find((one) => !one.foreign && rank(one).length);
    const begun = byBeginning(evidence[0]);
    const ranked = known ? rank(known) : begun.length ? begun : byClass(evidence[0]);
    const { library } = known || evidence[0];
    const { foreign, raised } = evidence[0];
    if (!ranked.length) return { found: false, foreign, raised, entry: null, library, others: [] };
    return { found: true, foreign: false, raised, entry: ranked[0], library, others: ranked.slice(1, 1 + OTHERS) };
  }

  return { load, explain };
})();
