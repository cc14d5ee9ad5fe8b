// Not a module, so that it runs before anything is drawn: a page that was dark does not flash white.
try {
  const chosen = localStorage.getItem("skymemory-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage: the system's choice holds.
}
