// Runs before anything is drawn: light or dark, as chosen or as the system has it.
((root) => {
  const stored = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const mode = stored("mode") || "auto";
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.mode = mode;
  root.dataset.theme = mode === "auto" ? system : mode;
  root.classList.add("js");
})(document.documentElement);
// biome-ignore lint/correctness/noUnusedVariables: the theme's scripts read it
var DOCUMENTATION_OPTIONS = {};
