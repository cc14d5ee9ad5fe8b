// The log of events, the newest first: handovers, losses, returns, and the agent's other events.
import { make, say, set } from "../live/dom.js";
import { clock } from "../live/words.js";

const BAD = new Set(["lost", "silent", "late"]);

export function startEvents(holder, note, state, player) {
  const list = make("ol", { class: "events-list" });
  const empty = make("p", { class: "note" }, "Nothing has happened since the agent began to look.");
  holder.append(empty, make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Log of events" }, list));
  let shown = "";
  const update = () => {
    const events = state.newest?.frame?.events ?? [];
    const mark = `${state.sky?.id}/${events.length}/${events.at(-1)?.number}`;
    if (mark === shown) return;
    shown = mark;
    empty.hidden = events.length > 0;
    list.parentElement.hidden = !events.length;
    say(note, events.length ? "click a time to see that moment" : "");
    list.replaceChildren(...events.toReversed().map((event) => entry(event, state, player)));
  };
  state.on("sky newest", update);
}

function entry(event, state, player) {
  const time = make("button", { type: "button", class: "quiet", onclick: () => player.seek(event.time_ms) }, clock(event.time_ms));
  const kind = make("b", { class: "kind", "data-bad": BAD.has(event.kind) }, event.kind);
  const one = make("li", {}, time, kind, make("span", {}, event.text));
  if (event.satellites.length) {
    one.addEventListener("pointerenter", () => state.choose(event.satellites[0]));
    one.addEventListener("pointerleave", () => state.choose(null));
  }
  set(one, "data-kind", event.kind);
  return one;
}
