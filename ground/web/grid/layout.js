// Places of the cells in the drawing: slots across on wide screens, planes across on narrow ones.

const LABEL = 44; // room for the numbers of planes or slots
const STUB = 11; // room for links that go around the torus
const TALL_BELOW = 620;

export function layout(sky, width) {
  const wide = width >= TALL_BELOW || sky.planes > sky.slots;
  const [columns, rows] = wide ? [sky.slots, sky.planes] : [sky.planes, sky.slots];
  const pitch_x = Math.max((width - LABEL - 2 * STUB) / columns, 7);
  const pitch_y = wide ? Math.max(9, Math.min(1.75 * pitch_x, 76)) : Math.min(pitch_x, 32);
  const gap_x = Math.max(1.5, Math.min(pitch_x * 0.2, wide ? 14 : 22));
  const gap_y = Math.max(1.5, Math.min(pitch_y * 0.27, 18));
  const origin = { x: LABEL + STUB, y: 20 + STUB };
  const at = (plane, slot) => {
    const [column, row] = wide ? [slot - 1, plane - 1] : [plane - 1, slot - 1];
    return { x: origin.x + (column + 0.5) * pitch_x, y: origin.y + (row + 0.5) * pitch_y };
  };
  return {
    wide,
    columns,
    rows,
    at,
    pitch: { x: pitch_x, y: pitch_y },
    cell: { width: pitch_x - gap_x, height: pitch_y - gap_y },
    // Length of a step around the torus
    period: { x: columns * pitch_x, y: rows * pitch_y },
    area: { x: origin.x - STUB, y: origin.y - STUB, width: columns * pitch_x + 2 * STUB, height: rows * pitch_y + 2 * STUB },
    width: Math.max(width, LABEL + 2 * STUB + columns * pitch_x),
    height: origin.y + rows * pitch_y + STUB + 2,
    is_small: pitch_x - gap_x < 14 || pitch_y - gap_y < 14,
    has_text: pitch_x - gap_x >= 26 && pitch_y - gap_y >= 14,
    has_server: pitch_x - gap_x >= 26 && pitch_y - gap_y >= 34,
    label: { x: LABEL - 4, y: 11 },
  };
}

/** Returns the shorter way from one cell to another; a way over the edge is drawn twice, from both sides. */
export function ways(box, from, to) {
  const delta = { x: to.x - from.x, y: to.y - from.y };
  for (const axis of ["x", "y"]) {
    if (delta[axis] > box.period[axis] / 2) delta[axis] -= box.period[axis];
    if (delta[axis] < -box.period[axis] / 2) delta[axis] += box.period[axis];
  }
  const end = { x: from.x + delta.x, y: from.y + delta.y };
  const found = [[from, end]];
  if (Math.abs(end.x - to.x) > 1 || Math.abs(end.y - to.y) > 1) {
    found.push([{ x: to.x - delta.x, y: to.y - delta.y }, to]);
  }
  return found;
}
