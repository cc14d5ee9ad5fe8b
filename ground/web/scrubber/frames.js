// Frames of the past, fetched in pieces and kept for a while, so that a scrubber that is dragged does not ask for each one.

const FRAMES = 40; // in a piece
const PIECES = 24; // that are kept
const FRESH_MS = 2_000; // a piece that time has not passed yet is asked for again after so long

export class Frames {
  #pieces = new Map();

  clear() {
    this.#pieces.clear();
  }

  /** The frame that held at a time; null: there is none. */
  async at(time_ms, step_ms) {
    const length_ms = FRAMES * step_ms;
    const first_ms = Math.floor(time_ms / length_ms) * length_ms;
    const frames = await this.#piece(first_ms, length_ms, step_ms);
    return frames.findLast((frame) => frame.time_ms <= time_ms) ?? frames[0] ?? null;
  }

  #piece(first_ms, length_ms, step_ms) {
    const key = `${first_ms}/${step_ms}`;
    const known = this.#pieces.get(key);
    const now_ms = Date.now();
    if (known && (known.asked_ms > first_ms + length_ms + FRESH_MS || now_ms - known.asked_ms < FRESH_MS)) return known.frames;
    // A step below that of the frames, or every second one would be left out
    const query = `from=${first_ms}&to=${first_ms + length_ms - 1}&step=${Math.floor(step_ms * 0.8)}`;
    const frames = fetch(`api/frames?${query}`)
      .then((answer) => answer.json())
      .then((answer) => answer.frames)
      .catch(() => {
        this.#pieces.delete(key); // asked for again when it is needed again
        return [];
      });
    this.#pieces.delete(key);
    this.#pieces.set(key, { asked_ms: now_ms, frames });
    if (this.#pieces.size > PIECES) this.#pieces.delete(this.#pieces.keys().next().value);
    return frames;
  }
}
