// Colours for how full a satellite is: cividis, which people who do not see red or green read like all others. A fuller satellite
// is always further from the background, on dark and on light.
import { interpolateCividis } from "../vendor/d3.js";
import { isDark } from "../theme/theme.js";

export function fill(share) {
  if (!(share > 0)) return null;
  const clipped = Math.min(share, 1);
  return interpolateCividis(isDark() ? 0.16 + 0.8 * clipped : 0.92 - 0.9 * clipped);
}

/** Returns black or white, whichever is read better on a colour: at worst 4.58 to 1. */
export function ink(colour) {
  const [red, green, blue] = colour.match(/\d+(\.\d+)?/g).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** Returns the next round number, as the end of a scale. */
export function nice(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= most);
}
