// Frames of the past, fetched in pieces and kept for a while, so that dragging the scrubber does not ask for each one.

const FRAMES = 40; // frames in a piece
const PIECES = 24; // pieces that are kept
const FRESH_MS = 2_000; // age at which a piece that reaches to now is asked for again

export class Frames {
  #pieces = new Map();

  clear() {
    this.#pieces.clear();
  }

  /** Returns the frame of a time; null: there is none. */
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
    // A step below that of the frames: else every second frame would be left out
    const query = `from=${first_ms}&to=${first_ms + length_ms - 1}&step=${Math.floor(step_ms * 0.8)}`;
    const frames = fetch(`api/frames?${query}`)
      .then((answer) => answer.json())
      .then((answer) => answer.frames)
      .catch(() => {
        this.#pieces.delete(key); // fetched again when it is needed
        return [];
      });
    this.#pieces.delete(key);
    this.#pieces.set(key, { asked_ms: now_ms, frames });
    if (this.#pieces.size > PIECES) this.#pieces.delete(this.#pieces.keys().next().value);
    return frames;
  }
}
