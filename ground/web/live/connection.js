// The WebSocket to the agent: opens it, opens it again when it is lost, and tells the agent when nobody looks.

const FIRST_MS = 500;
const MOST_MS = 15_000;

export class Connection {
  #socket = null;
  #pause_ms = FIRST_MS;
  #looks = true;
  #timer = 0;

  /**
   * @param {(message: object) => void} onMessage  a state, as /api/now has it
   * @param {(state: "open"|"lost", seconds?: number) => void} onState
   */
  constructor(onMessage, onState) {
    this.onMessage = onMessage;
    this.onState = onState;
    document.addEventListener("visibilitychange", () => this.#say());
    this.#open();
  }

  /** True if somebody looks at the newest state; else the agent may ask satellites less often. */
  set looks(value) {
    this.#looks = value;
    this.#say();
  }

  #open() {
    const url = new URL("api/live", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#pause_ms = FIRST_MS;
      this.onState("open");
      this.#say();
    });
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      if (!message.error) this.onMessage(message);
    });
    socket.addEventListener("close", () => this.#again());
  }

  #again() {
    clearTimeout(this.#timer);
    this.onState("lost", this.#pause_ms / 1000);
    this.#timer = setTimeout(() => this.#open(), this.#pause_ms);
    this.#pause_ms = Math.min(2 * this.#pause_ms, MOST_MS);
  }

  #say() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    const what = this.#looks && !document.hidden ? "resume" : "pause";
    if (this.#socket.said !== what) this.#socket.send(JSON.stringify({ do: what }));
    this.#socket.said = what;
  }
}
