// Light and dark: as the system has it, until somebody chooses; the choice stays.

const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const KEY = "skymemory-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

const chosen = () => document.documentElement.dataset.theme ?? "auto";

export const isDark = () => (chosen() === "auto" ? system.matches : chosen() === "dark");

/** Colours of the style sheet by name, for what is drawn on a canvas. */
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
    button.textContent = NAMES[chosen()];
    for (const listener of listeners) listener();
  };
  button.addEventListener("click", () => {
    const order = ["auto", "light", "dark"];
    const next = order[(order.indexOf(chosen()) + 1) % order.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
