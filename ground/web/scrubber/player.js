// The player of the past: shows an instant, or runs, and goes back to now.
import { Frames } from "./frames.js";

const TICK_MS = 200;
export const SPEEDS = [1, 10, 60];

export class Player {
  speed = 10;
  isPlaying = false;
  #state;
  #timeline;
  #connection;
  #frames = new Frames();
  #wanted = 0;
  #timer = 0;
  #listeners = [];

  constructor(state, timeline, connection) {
    this.#state = state;
    this.#timeline = timeline;
    this.#connection = connection;
    state.on("sky", () => this.#frames.clear());
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }

  /** Shows an instant. If several are asked for at once, the last one counts. */
  async seek(time_ms) {
    const { from_ms, to_ms, step_ms } = this.#timeline;
    const at_ms = Math.round(Math.min(Math.max(time_ms, from_ms), to_ms));
    const mine = (this.#wanted += 1);
    this.#connection.looks = false;
    if (this.#state.isLive && this.#state.frame) this.#show(this.#state.frame, at_ms);
    const frame = await this.#frames.at(at_ms, step_ms);
    if (mine === this.#wanted && frame) this.#show(frame, at_ms);
  }

  step(steps) {
    this.pause();
    return this.seek(this.#timeline.shown_ms + steps * this.#timeline.step_ms);
  }

  live() {
    this.pause();
    this.#wanted += 1;
    this.#connection.looks = true;
    this.#state.show(null);
    this.#tell();
  }

  play() {
    if (this.#state.isLive || this.isPlaying) return;
    this.isPlaying = true;
    let last_ms = performance.now();
    const tick = async () => {
      const now_ms = performance.now();
      const next_ms = this.#timeline.shown_ms + (now_ms - last_ms) * this.speed;
      last_ms = now_ms;
      if (next_ms >= this.#timeline.to_ms) return this.live();
      await this.seek(next_ms);
      if (this.isPlaying) this.#timer = setTimeout(tick, TICK_MS);
      return undefined;
    };
    this.#timer = setTimeout(tick, TICK_MS);
    this.#tell();
  }

  pause() {
    clearTimeout(this.#timer);
    this.isPlaying = false;
    this.#tell();
  }

  #show(frame, shown_ms) {
    this.#state.show({ ...frame, shown_ms });
    this.#tell();
  }

  #tell() {
    for (const listener of this.#listeners) listener();
  }
}
