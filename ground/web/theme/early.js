// No module, so that it runs before anything is drawn: a dark page does not flash white.
{
  const { dataset } = document.documentElement;
  try {
    dataset.chosen = localStorage.getItem("skymemory-theme") ?? "auto";
  } catch {
    dataset.chosen = "auto"; // no storage: the system's choice holds
  }
  if (dataset.chosen !== "dark" && dataset.chosen !== "light") dataset.chosen = "auto";
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dataset.chosen === "auto" ? (dark ? "dark" : "light") : dataset.chosen;
}
