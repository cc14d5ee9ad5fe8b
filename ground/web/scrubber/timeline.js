// The time that series and scrubber show, and the agent's series over it.

const POINTS = 900;
const LEAST_MS = 60_000;
/** Time for which the duration of a get is shown: gets come now and then. */
const LATELY_MS = 60_000;
const AGAIN_MS = 5 * 60_000;

export const SPANS = [
  ["15 min", 15 * 60_000, 2_000],
  ["1 h", 3_600_000, 10_000],
  ["6 h", 6 * 3_600_000, 10_000],
];

const NAMES = ["hit_ratio", "delivery_ratio", "asked_per_s", "hit_per_s", "lost_per_s", "get_p50_s", "get_p99_s", "loss_ratio", "retry_ratio", "bytes_up_per_s", "bytes_down_per_s", "alive"];

/** Shares of `hit_per_s` in the sum of these. */
const RATIOS = { hit_ratio: ["asked_per_s"], delivery_ratio: ["hit_per_s", "lost_per_s"] };

export class Timeline {
  /** Columns of the series, `time_ms` first. */
  data = empty();
  from_ms = 0;
  to_ms = 1;
  #state;
  #span = SPANS[0];
  #fetched_ms = 0;
  #id = null;
  #listeners = [];

  constructor(state) {
    this.#state = state;
    state.on("newest", () => this.#take());
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }

  get step_ms() {
    return this.#span[2];
  }

  /** The instant that is shown. */
  get shown_ms() {
    return this.#state.isLive ? this.to_ms : this.#state.past.shown_ms;
  }

  get span() {
    return this.#span;
  }

  set span(span) {
    this.#span = span;
    this.#reach(this.#state.newest?.history?.span_ms?.[0]);
    this.#fetch();
    this.#tell();
  }

  /**
   * What a series says at an instant: the last value until then that is not older than a minute; null: there is none.
   * Of the shares of what was asked for: that of all that was asked for in this minute.
   */
  at(time_ms, name) {
    const rates = RATIOS[name];
    if (rates) return this.#share(time_ms, rates);
    const { time_ms: times } = this.data;
    for (let at = times.length - 1; at >= 0 && times[at] >= time_ms - LATELY_MS; at -= 1) {
      if (times[at] <= time_ms && this.data[name][at] !== null) return this.data[name][at];
    }
    return null;
  }

  #share(time_ms, rates) {
    const { time_ms: times } = this.data;
    let [part, whole] = [0, 0];
    for (let at = times.length - 1; at > 0 && times[at] >= time_ms - LATELY_MS; at -= 1) {
      if (times[at] > time_ms) continue;
      const seconds = Math.min(times[at] - times[at - 1], LATELY_MS) / 1000;
      part += seconds * (this.data.hit_per_s[at] ?? 0);
      for (const rate of rates) whole += seconds * (this.data[rate][at] ?? 0);
    }
    return whole > 0 ? part / whole : null;
  }

  #take() {
    const { frame, history } = this.#state.newest;
    if (!frame) {
      this.data = empty();
      this.#id = null;
      return this.#tell();
    }
    const { id } = this.#state.sky;
    if (this.#id !== id || performance.now() - this.#fetched_ms > AGAIN_MS) {
      this.#id = id;
      this.#fetch();
    }
    const { data } = this;
    if (frame.time_ms > (data.time_ms.at(-1) ?? 0)) {
      data.time_ms.push(frame.time_ms);
      for (const name of NAMES) data[name].push(frame[name]);
      data.moving.push(frame.moves.length > 0);
    }
    if (this.#state.isLive) {
      this.to_ms = frame.time_ms;
      this.#reach(history?.span_ms?.[0]);
    }
    return this.#tell();
  }

  /** Begin of the time shown: that of the span, or of the agent's memory. */
  #reach(first_ms = 0) {
    this.from_ms = Math.min(Math.max(first_ms, this.to_ms - this.#span[1]), this.to_ms - LEAST_MS);
  }

  async #fetch() {
    this.#fetched_ms = performance.now();
    const to = this.#state.newest?.frame?.time_ms;
    if (!to) return;
    const from = to - this.#span[1];
    let data;
    try {
      const answer = await fetch(`api/history?from=${from}&to=${to}&step=${Math.floor(this.#span[1] / POINTS)}`);
      data = { ...empty(), ...(await answer.json()) };
    } catch {
      this.#id = null; // ask once more with the next frame
      return;
    }
    // Values that came meanwhile follow it
    const first = this.data.time_ms.findIndex((time_ms) => time_ms > to);
    if (first >= 0) for (const name of Object.keys(this.data)) data[name].push(...this.data[name].slice(first));
    this.data = data;
    this.#reach(this.data.time_ms[0]);
    this.#tell();
  }

  #tell() {
    for (const listener of this.#listeners) listener();
  }
}

const empty = () => Object.fromEntries(["time_ms", "moving", ...NAMES].map((name) => [name, []]));
