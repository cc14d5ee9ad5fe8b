// The grid once more as a table, for people who rather read. It is made when it is opened: most people never open it.
import { make, say } from "../live/dom.js";
import { SILENT, named } from "../live/state.js";
import * as words from "../live/words.js";

const COLUMNS = ["satellite [plane, slot]", "state", "server", "chunks", "bytes", "chunks served", "asked in vain", "handed on"];

export function startTable(details, state) {
  const body = make("tbody");
  const head = make("tr", {}, ...COLUMNS.map((name) => make("th", { scope: "col" }, name)));
  const table = make("table", { class: "all-table" }, make("caption", { class: "for-readers" }, "Satellites, by plane and slot"), make("thead", {}, head), body);
  details.append(make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Table of satellites" }, table));
  const update = () => {
    const { sky, frame } = state;
    if (!details.open) return;
    const rows = sky && frame ? frame.state.map((_, index) => rowOf(state, index)) : [];
    while (body.children.length > rows.length) body.lastChild.remove();
    rows.forEach((cells, at) => {
      const row = body.children[at] ?? body.appendChild(make("tr", {}, make("th", { scope: "row" }), ...cells.slice(1).map(() => make("td"))));
      cells.forEach((text, column) => say(row.children[column], text));
    });
  };
  details.addEventListener("toggle", update);
  state.on("sky frame", update);
}

function rowOf({ sky, frame }, index) {
  const server = frame.servers.indexOf(index);
  return [
    named(sky, index) + (frame.centre === index ? ", centre" : ""),
    frame.state[index] === SILENT ? "no answer" : "answers",
    server >= 0 ? String(server + 1) : "",
    frame.chunks[index].toLocaleString("en"),
    words.bytes(frame.bytes[index]),
    words.perSecond(frame.hits_per_s[index]),
    words.perSecond(frame.misses_per_s[index]),
    words.perSecond(frame.moved_per_s[index]),
  ];
}
