// Light and dark: the system's theme until somebody chooses another, which stays. `early.js` sets it first.

const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const ORDER = Object.keys(NAMES);
const KEY = "skymemory-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const { dataset } = document.documentElement;
const listeners = new Set();

export const isDark = () => dataset.theme === "dark";

/** Returns colours of the style sheet by name, for drawing on a canvas. */
export function colours(...names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Calls `listener` whenever colours change. */
export function onTheme(listener) {
  listeners.add(listener);
}

export function startTheme(button) {
  const tell = () => {
    dataset.theme = dataset.chosen === "auto" ? (system.matches ? "dark" : "light") : dataset.chosen;
    button.textContent = NAMES[dataset.chosen];
    for (const listener of listeners) listener();
  };
  button.addEventListener("click", () => {
    dataset.chosen = ORDER[(ORDER.indexOf(dataset.chosen) + 1) % ORDER.length];
    try {
      localStorage.setItem(KEY, dataset.chosen);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
