// Keys on the grid: arrows go over the torus as it looks on the screen, around its edges; Home and End along the plane.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const around = (value, count) => ((value % count) + count) % count;

/** Moves the focus or pins the satellite, as the key says. */
export function moveFocus(event, sky, box, index, focus, pin) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  let plane = Math.floor(index / sky.slots);
  let slot = index % sky.slots;
  if (event.key in ARROWS) {
    const [x, y] = ARROWS[event.key];
    plane = around(plane + (box.wide ? y : x), sky.planes);
    slot = around(slot + (box.wide ? x : y), sky.slots);
  } else if (event.key === "Home") slot = 0;
  else if (event.key === "End") slot = sky.slots - 1;
  else if (event.key === "Escape") {
    pin(null);
    event.currentTarget.blur();
    return;
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    pin(index);
    return;
  } else return;
  event.preventDefault();
  focus(plane * sky.slots + slot);
}
