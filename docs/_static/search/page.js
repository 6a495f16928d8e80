/* The search page: shows what is found while one types, and for `?q=` in the address. */

(() => {
  const input = document.getElementById("guide-search-input");
  const status = document.getElementById("guide-search-status");
  const list = document.getElementById("guide-search-results");
  const show = () => GuideResults.show(input.value.trim(), list, status, 15);

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
