// What a handover takes where: arcs from the old place of a server to its new one, in the gaps beside the cells.
import { draw } from "../live/dom.js";
import { place } from "../live/state.js";
import { ways } from "./layout.js";

export function arcs(sky, box, frame) {
  return frame.moves.flatMap(([, from, to]) => {
    const [start, end] = [from, to].map((index) => box.at(...place(sky, index)));
    return ways(box, start, end).flatMap(([a, b]) => arc(box, a, b));
  });
}

/** Along the upper edge for what moves across, along the right one for what moves down or up. */
function arc(box, from, to) {
  const across = Math.abs(to.x - from.x) >= Math.abs(to.y - from.y);
  const edge = across ? [0, -box.cell.height / 2 - 2.5] : [box.cell.width / 2 + 2.5, 0];
  const lift = Math.min(9, (across ? box.pitch.y - box.cell.height : box.pitch.x - box.cell.width) * 0.7);
  const [a, b] = [from, to].map(({ x, y }) => ({ x: x + edge[0], y: y + edge[1] }));
  const rise = across ? [0, -lift] : [lift, 0];
  const near = (share) => `${a.x + share * (b.x - a.x) + rise[0]} ${a.y + share * (b.y - a.y) + rise[1]}`;
  const d = `M${a.x} ${a.y}C${near(0.12)} ${near(0.88)} ${b.x} ${b.y}`;
  const [x, y] = near(0.88).split(" ").map(Number);
  const angle = Math.atan2(b.y - y, b.x - x);
  const wing = (turn) => `${b.x - 7 * Math.cos(angle + turn)} ${b.y - 7 * Math.sin(angle + turn)}`;
  return [
    draw("path", { class: "arc-under", d }),
    draw("path", { class: "arc", d }),
    draw("path", { class: "arc-head", d: `M${b.x} ${b.y}L${wing(0.45)}L${wing(-0.45)}Z` }),
  ];
}
