// "I use JAX 0.6.2": a choice for the whole site. The ✓ of each sentence that was not seen to hold on that release turns
// into a ✗ or a –; a line below the choice says how many there are on the page.
// biome-ignore lint/correctness/noUnusedVariables: the file of the verdicts uses it
const GuideRelease = (() => {
  const select = document.querySelector(".my-release select");
  const said = document.querySelector(".my-release [role=status]");
  const root = document.documentElement.dataset.content_root || "./";
  const WORDS = { "-": ["✗", "does not hold"], 0: ["–", "does not apply"] };
  let verdicts = null;

  function load() {
    return new Promise((resolve, reject) => {
      if (verdicts) return resolve();
      const script = Object.assign(document.createElement("script"), { src: `${root}_static/claims/releases.js` });
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
  }

  function mark(link, release) {
    const sign = link.querySelector("sup");
    const row = release && verdicts.claims[link.hash.replace(/^#claim-/, "")];
    const [shown, words] = WORDS[row?.[verdicts.releases.indexOf(release)]] || ["✓", ""];
    sign.textContent = words ? `${shown} ${release}` : shown;
    link.classList.toggle("differs", words !== "");
    link.dataset.title ??= link.title;
    link.title = words ? `This ${words} on JAX ${release}. ${link.dataset.title}` : link.dataset.title;
    return words !== "";
  }

  function show() {
    const release = select.value;
    const marked = [...document.querySelectorAll("a.claim-link:has(sup)")].filter((link) => mark(link, release)).length;
    const differ = `${marked} of this page’s ✓ ${marked === 1 ? "is" : "are"} ✗ (does not hold) or – (does not apply) there.`;
    said.textContent = !release ? "" : marked ? differ : "All ✓ of this page hold there.";
  }

  function choose() {
    if (select.value || verdicts)
      load()
        .then(show)
        .catch(() => (said.textContent = "The verdicts could not be loaded."));
  }

  if (select) {
    try {
      select.value = localStorage.getItem("jax-release") || "";
    } catch {} // without a store the choice lasts for a page
    if (select.selectedIndex < 0) select.value = "";
    select.addEventListener("change", () => {
      try {
        localStorage.setItem("jax-release", select.value);
      } catch {}
      choose();
    });
    choose();
  }

  return {
    take(found) {
      verdicts = found;
    },
  };
})();
