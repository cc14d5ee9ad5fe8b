// Moves of servers in a handover: arcs from the old place to the new one, in the gaps beside the cells.
import { draw } from "../live/dom.js";
import { place } from "../live/state.js";
import { ways } from "./layout.js";

const AWAY = 2.5; // distance from the edge of a cell

export function arcs(sky, box, frame) {
  return frame.moves.flatMap(([, from, to]) => {
    const [start, end] = [from, to].map((index) => box.at(...place(sky, index)));
    return ways(box, start, end).flatMap(([a, b]) => arc(box, a, b));
  });
}

function arc(box, from, to) {
  const [d, x, y, angle] = way(box, from, to);
  const wing = (turn) => `${x - 7 * Math.cos(angle + turn)} ${y - 7 * Math.sin(angle + turn)}`;
  return [
    draw("path", { class: "arc-under", d }),
    draw("path", { class: "arc", d }),
    draw("path", { class: "arc-head", d: `M${x} ${y}L${wing(0.45)}L${wing(-0.45)}Z` }),
  ];
}

/** Leads an arc above the cells across and right of them down or up, one after the other: numbers stay readable. */
function way(box, from, to) {
  const above = box.cell.height / 2 + AWAY;
  const beside = box.cell.width / 2 + AWAY;
  const up = Math.min(9, (box.pitch.y - box.cell.height) * 0.7);
  const out = Math.min(9, (box.pitch.x - box.cell.width) * 0.7);
  if (Math.abs(to.y - from.y) < 1) {
    const [y, ahead] = [from.y - above, 0.12 * (to.x - from.x)];
    const angle = Math.atan2(up, ahead);
    return [`M${from.x} ${y}C${from.x + ahead} ${y - up} ${to.x - ahead} ${y - up} ${to.x} ${y}`, to.x, y, angle];
  }
  const x = to.x + beside;
  if (Math.abs(to.x - from.x) < 1) {
    const ahead = 0.12 * (to.y - from.y);
    const angle = Math.atan2(ahead, -out);
    return [`M${x} ${from.y}C${x + out} ${from.y + ahead} ${x + out} ${to.y - ahead} ${x} ${to.y}`, x, to.y, angle];
  }
  const [high, wide] = [from.y - above - up / 2, x + out / 2 + 2];
  return [`M${from.x} ${from.y - above}V${high}H${wide}V${to.y}H${x}`, x, to.y, Math.PI];
}
