// The state of the page: the agent's newest message, or a frame of the past. All parts draw from here when it tells them to.

export class State {
  /** The constellation; null: none is known. */
  sky = null;
  /** The newest message of the agent. */
  newest = null;
  /** A frame of the past; null: the newest is shown. */
  past = null;
  /** Index of the satellite under the pointer or with the focus; null: none. */
  chosen = null;
  /** Index of the satellite that somebody has pinned by a click; null: none. */
  pinned = null;
  #listeners = new Map();
  /** The constellation of the pinned satellite; null: a link named the satellite before there was one. */
  #pinnedOf = null;

  /** Calls `listener` when one of these happened: "sky", "frame" (another one is shown), "newest", "chosen" (or pinned). */
  on(names, listener) {
    for (const name of names.split(" ")) {
      if (!this.#listeners.has(name)) this.#listeners.set(name, []);
      this.#listeners.get(name).push(listener);
    }
  }

  #tell(name) {
    for (const listener of this.#listeners.get(name) ?? []) listener(this);
  }

  /** The frame that is shown; null: there is none. */
  get frame() {
    return this.past ?? this.newest?.frame ?? null;
  }

  get isLive() {
    return this.past === null;
  }

  /** Takes in a message. */
  take(message) {
    const isOther = "sky" in message && JSON.stringify(message.sky) !== JSON.stringify(this.sky);
    if (isOther) {
      const isNew = this.sky?.id !== message.sky?.id;
      this.sky = message.sky;
      if (isNew) this.past = this.chosen = null;
      if (isNew && this.#pinnedOf !== null) this.pinned = null;
      this.#pinnedOf = this.sky?.id ?? null;
    }
    this.newest = { ...message, received_ms: performance.now() };
    if (isOther) this.#tell("sky");
    this.#tell("newest");
    if (this.isLive) this.#tell("frame");
  }

  /** Shows a frame of the past; null: the newest. */
  show(frame) {
    this.past = frame;
    this.#tell("frame");
  }

  choose(index) {
    if (this.chosen === index) return;
    this.chosen = index;
    this.#tell("chosen");
  }

  /** Pins a satellite, so that it stays in view. The same one again, or null, unpins it. */
  pin(index) {
    this.pinned = this.pinned === index ? null : index;
    this.#tell("chosen");
  }

  /** The satellite whose details are shown: the one under the pointer, the pinned one, or the centre of the window. */
  get looked() {
    const pinned = this.pinned !== null && this.pinned < (this.frame?.state.length ?? 0) ? this.pinned : null;
    return this.chosen ?? pinned ?? this.frame?.centre ?? null;
  }
}

/** Returns plane and slot, from 1, of a satellite's index. */
export const place = (sky, index) => [Math.floor(index / sky.slots) + 1, (index % sky.slots) + 1];

/** Returns a satellite's name, [plane, slot], both from 1. */
export const named = (sky, index) => `[${place(sky, index).join(", ")}]`;

/** Returns the ends of a link: 2i is east of satellite i, 2i + 1 south of it; both axes wrap. */
export function ends(sky, link) {
  const from = link >> 1;
  const [plane, slot] = place(sky, from);
  const to = link & 1 ? (plane % sky.planes) * sky.slots + slot - 1 : (plane - 1) * sky.slots + (slot % sky.slots);
  return [from, to];
}

export const SILENT = 0;
export const UNASKED = 2;
export const NO_LINK = 0;
export const LINK_UP = 1;
export const LINK_DOWN = 2;
