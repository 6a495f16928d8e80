// Filters the page of all claims by words, topic, verdict, and where it was seen: on a release, or on other devices.
// Without this script all are listed.
(() => {
  const ledger = document.querySelector(".claims-ledger");
  if (!ledger) return;
  const releases = ledger.dataset.releases.split(" ").filter(Boolean);
  const devices = (ledger.dataset.devices || "").split("|").filter(Boolean);
  const rows = [...document.querySelectorAll(".claim-row")];
  const topics = [...new Set(rows.map((row) => row.closest("section")))];
  const name = (section) => section.querySelector("h2").firstChild.textContent;

  const form = Object.assign(document.createElement("form"), { className: "claims-filter" });
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the claims");
  form.addEventListener("submit", (event) => event.preventDefault());

  function field(text, control) {
    const label = document.createElement("label");
    label.append(text, control);
    form.append(label);
    control.addEventListener("input", show);
    return control;
  }
  function choice(text, options) {
    const select = document.createElement("select");
    for (const [value, shown] of options) select.append(new Option(shown, value));
    return field(text, select);
  }

  const words = field("Words", Object.assign(document.createElement("input"), { type: "search" }));
  const topic = choice("Topic", [["", "all topics"], ...topics.map((section) => [section.id, name(section)])]);
  const verdict = choice("Verdict", [
    ["", "any"],
    ["+", "✓ holds"],
    ["-", "✗ does not hold"],
    ["~", "≈ measured"],
    ["0", "– not applicable"],
    ["mixed", "◐ differs between releases"],
  ]);
  const release = choice("On JAX", [
    ["", "any release"],
    ...releases.map((version, i) => [String(i), version]),
    ...devices.map((there, i) => [`on-${i}`, `on ${there}`]),
  ]);
  const said = Object.assign(document.createElement("p"), { textContent: "" });
  said.setAttribute("role", "status");
  form.append(said);
  document.querySelector(".filter-place").append(form);

  function fits(row) {
    const verdicts = row.dataset.verdicts ?? "+".repeat(releases.length);
    const there = row.dataset.devices ?? "+".repeat(devices.length);
    const place = release.value.replace("on-", "");
    const seen = place === "" ? verdicts : (place === release.value ? verdicts : there)[Number(place)] || "";
    const told = row.querySelector(".claim-sentence").textContent.toLowerCase();
    if (topic.value && row.closest("section").id !== topic.value) return false;
    if (
      !words.value
        .toLowerCase()
        .split(/\s+/)
        .every((word) => told.includes(word))
    )
      return false;
    if (verdict.value === "mixed") return new Set(verdicts).size > 1;
    return seen.includes(verdict.value) && (place === "" || seen.trim() !== "");
  }

  // The filter stands in the address, so that it can be passed on.
  const fields = { words, topic, verdict, release };
  function remember() {
    const query = new URLSearchParams();
    for (const [key, control] of Object.entries(fields)) if (control.value) query.set(key, control.value);
    const search = query.size ? `?${query}` : "";
    if (search !== location.search) history.replaceState(null, "", `${location.pathname}${search}${location.hash}`);
  }
  for (const [key, value] of new URLSearchParams(location.search)) {
    if (fields[key]) fields[key].value = value;
    if (fields[key]?.selectedIndex === -1) fields[key].value = "";
  }

  function show() {
    remember();
    for (const row of rows) row.hidden = !fits(row);
    for (const section of topics) section.hidden = !section.querySelector(".claim-row:not([hidden])");
    said.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims shown.`;
  }

  // A link to one claim shows it, whatever the filter says.
  function reveal() {
    const row = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!row?.hidden) return;
    form.reset();
    show();
    row.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  show();
})();
