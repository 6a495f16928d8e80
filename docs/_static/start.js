// Runs before anything is drawn: light or dark, as chosen or as the system has it, and the font is asked for.
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
  if (location.protocol === "file:") {
    root.classList.add("on-disk");
  } else {
    const href = new URL("fonts/inter.woff2", document.currentScript.src);
    const fields = { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "anonymous", href };
    document.head.append(Object.assign(document.createElement("link"), fields));
  }
})(document.documentElement);
// biome-ignore lint/correctness/noUnusedVariables: the theme's scripts read it
var DOCUMENTATION_OPTIONS = {};
