// Links between neighbours as lines: thicker with the packets they carry, dashed where they lose some, crossed out where they are down.
import { draw, set } from "../live/dom.js";
import { LINK_DOWN, LINK_UP, NO_LINK, SILENT, ends, place } from "../live/state.js";
import { ways } from "./layout.js";

const WIDEST = 5;
const PACKETS = 20_000; // packets a second of the widest line

/** Returns the lines of each link: two for a link around the torus. */
export function drawLinks(group, sky, box) {
  return Array.from({ length: 2 * sky.planes * sky.slots }, (_, link) => {
    const [from, to] = ends(sky, link).map((index) => box.at(...place(sky, index)));
    const lines = ways(box, from, to).map(([start, end]) => line(box, start, end));
    group.append(...lines.flat());
    return { ways: lines, ends: ends(sky, link) };
  });
}

/** Leads a line between the cells, not below them. */
function line(box, start, end) {
  const across = Math.abs(end.x - start.x) > Math.abs(end.y - start.y);
  const [x, y] = across ? [Math.sign(end.x - start.x) * (box.cell.width / 2 + 1), 0] : [0, Math.sign(end.y - start.y) * (box.cell.height / 2 + 1)];
  const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
  return [
    draw("line", { x1: start.x + x, y1: start.y + y, x2: end.x - x, y2: end.y - y }),
    draw("path", { class: "cut", d: `M${middle.x - 3} ${middle.y - 3}l6 6m0 -6l-6 6` }),
  ];
}

export function updateLinks(links, frame) {
  links.forEach((link, index) => {
    const packets = frame.packets_per_s[index];
    const drops = frame.drops_per_s[index];
    const state = frame.link_state[index];
    const kinds = [];
    if (state === NO_LINK) kinds.push("is-none");
    // One cross is enough for a satellite that is lost
    const lost = link.ends.some((end) => frame.state[end] === SILENT);
    if (state === LINK_DOWN) kinds.push(lost ? "is-idle" : "is-down");
    if (state === LINK_UP && packets > 0) kinds.push("is-used");
    if (drops > 0) kinds.push("is-losing");
    const width = packets > 0 ? 1.4 + (WIDEST - 1.4) * Math.min(1, Math.log1p(packets) / Math.log1p(PACKETS)) : 1;
    for (const [line] of link.ways) {
      set(line, "class", kinds.join(" ") || null);
      set(line, "stroke-width", width.toFixed(2));
    }
  });
}
