// Numbers as people read them: three digits and a unit, or a dash if nothing was measured.

const NONE = "–";
const digits = (value) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

function scaled(value, step, units) {
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= step;
    at += 1;
  }
  return [value, units[at]];
}

export function bytes(value) {
  if (value == null) return NONE;
  const [number, unit] = scaled(value, 1000, ["B", "kB", "MB", "GB", "TB"]);
  return `${unit === "B" ? Math.round(number) : number.toFixed(digits(number))} ${unit}`;
}

export const rate = (value) => (value == null ? NONE : `${bytes(value)}/s`);

export function seconds(value) {
  if (value == null) return NONE;
  if (value < 1e-3) return `${(value * 1e6).toFixed(0)} µs`;
  return value < 1 ? `${(value * 1e3).toFixed(digits(value * 1e3))} ms` : `${value.toFixed(digits(value))} s`;
}

/** Formats seconds that may have become hours. */
export function long(value) {
  const [step, unit] = value < 100 ? [1, "s"] : value < 6000 ? [60, "min"] : [3600, "h"];
  return step === 1 ? seconds(value) : `${(value / step).toFixed(digits(value / step))} ${unit}`;
}

export function ratio(value) {
  if (value == null) return NONE;
  const percent = value * 100;
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.01) return "< 0.01 %";
  // Rounded down: 100 % means all
  const places = percent < 10 ? 100 : 10;
  return `${(Math.floor(percent * places + 1e-6) / places).toFixed(percent < 10 ? 2 : 1)} %`;
}

export function count(value) {
  if (value == null) return NONE;
  if (value < 1000) return String(Math.round(value));
  const [number, unit] = scaled(value, 1000, ["", "k", "M", "G"]);
  return `${number.toFixed(number >= 100 ? 0 : 1).replace(/\.0$/, "")}${unit}`;
}

/** Formats a count with three characters at most, for the cells of the grid. */
export function short(value) {
  if (value < 1000) return String(Math.round(value));
  const [number, unit] = scaled(value, 1000, ["", "k", "M", "G"]);
  return `${number < 9.95 ? number.toFixed(1) : Math.round(number)}${unit}`.replace(".0", "");
}

export const plural = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const perSecond = (value) => (value == null ? NONE : value === 0 ? "0 /s" : `${value < 10 ? value.toFixed(1) : count(value)} /s`);

export function duration(ms) {
  const total = Math.max(0, Math.round(ms / 1000));
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const two = (value) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

export const utc = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;

export const degrees = (value, [plus, minus]) => `${Math.abs(value).toFixed(1)}° ${value < 0 ? minus : plus}`;
