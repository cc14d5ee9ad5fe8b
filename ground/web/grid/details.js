// One satellite in numbers: the one under the pointer or with the focus, else the centre of the window.
import { make, say } from "../live/dom.js";
import { LINK_DOWN, LINK_UP, NO_LINK, SILENT, UNASKED, ends, named, place } from "../live/state.js";
import * as words from "../live/words.js";

const SIDES = ["north", "east", "south", "west"];
const LINK_WORDS = { [NO_LINK]: "none", [LINK_UP]: "up", [LINK_DOWN]: "down" };

export function startDetails(holder, where, state) {
  const facts = make("dl", { class: "facts" });
  const body = make("tbody");
  const head = make("tr", {}, ...["link", "to", "state", "packets", "lost", "one-way delay"].map((name) => make("th", { scope: "col" }, name)));
  const links = make("table", { class: "links-table" }, make("thead", {}, head), body);
  holder.append(facts, links);
  const update = () => {
    const { sky, frame } = state;
    const index = state.looked;
    holder.hidden = !sky || !frame || index === null;
    say(where, holder.hidden ? "" : titleOf(state, index));
    if (holder.hidden) return;
    show(facts, factsOf(state, index));
    showLinks(body, sky, frame, index);
  };
  state.on("sky frame chosen", update);
}

/** Returns the satellite's name in words, and why it is shown. */
function titleOf({ sky, frame, chosen, pinned }, index) {
  const [plane, slot] = place(sky, index);
  const why = index === pinned ? ", pinned" : chosen !== null ? "" : index === frame.centre ? ", centre of the window" : "";
  return `plane ${plane}, slot ${slot}${why}`;
}

function factsOf(state, index) {
  const { sky, frame } = state;
  const server = frame.servers.indexOf(index);
  const roles = [server >= 0 ? `server ${server + 1} of ${frame.servers.length}` : "not a server now"];
  const move = frame.moves.find(([, from, to]) => from === index || to === index);
  if (move) roles.push(move[1] === index ? `hands over to ${named(sky, move[2])}` : `takes over from ${named(sky, move[1])}`);
  const total = (name) => frame.totals?.[name]?.[index];
  const facts = [
    ["state", { [SILENT]: "no answer", [UNASKED]: "not asked yet" }[frame.state[index]] ?? "answers"],
    ["role", roles.join("; ")],
    ["name", `satellite ${named(sky, index)}`],
    ["holds", `${frame.chunks[index].toLocaleString("en")} chunks, ${words.bytes(frame.bytes[index])}`],
    ["store in use", sky.store_bytes ? `${words.ratio(frame.used_bytes[index] / sky.store_bytes)} of ${words.bytes(sky.store_bytes)}` : "–"],
    ["chunks served", withTotal(frame.hits_per_s[index], total("hits"))],
    ["asked in vain", withTotal(frame.misses_per_s[index], total("misses"))],
    ["blocks evicted", withTotal(frame.evictions_per_s[index], total("evictions"))],
    ["chunks handed on", words.perSecond(frame.moved_per_s[index])],
  ];
  if (total("degraded")) facts.push(["degraded blocks found", words.count(total("degraded"))]);
  if (total("repaired")) facts.push(["chunks rebuilt", words.count(total("repaired"))]);
  if (total("uptime_ms") != null) facts.push(["up for", words.duration(total("uptime_ms"))]);
  return facts;
}

const withTotal = (rate, total) => words.perSecond(rate) + (total == null ? "" : `, ${words.count(total)} in all`);

function show(list, facts) {
  while (list.children.length > facts.length) list.lastChild.remove();
  facts.forEach(([name, value], at) => {
    const row = list.children[at] ?? list.appendChild(make("div", {}, make("dt"), make("dd")));
    say(row.firstChild, name);
    say(row.lastChild, value);
  });
}

function showLinks(body, sky, frame, index) {
  const rows = linksOf(sky, index).map(([side, link, other]) => [
    SIDES[side],
    named(sky, other),
    LINK_WORDS[frame.link_state[link]] ?? "unknown",
    words.perSecond(frame.packets_per_s[link]),
    words.perSecond(frame.drops_per_s[link]),
    frame.delay_us?.[link] ? `${(frame.delay_us[link] / 1000).toFixed(2)} ms` : "–",
  ]);
  rows.forEach((cells, at) => {
    const row = body.children[at] ?? body.appendChild(make("tr", {}, make("th", { scope: "row" }), ...cells.slice(1).map(() => make("td"))));
    cells.forEach((text, column) => say(row.children[column], text));
  });
}

/** Returns the four links of a satellite: side, number, other end. */
export function linksOf(sky, index) {
  const count = sky.planes * sky.slots;
  const slot = index % sky.slots;
  const west = index - slot + ((slot + sky.slots - 1) % sky.slots);
  const north = (index + count - sky.slots) % count;
  return [
    [0, 2 * north + 1, north],
    [1, 2 * index, ends(sky, 2 * index)[1]],
    [2, 2 * index + 1, ends(sky, 2 * index + 1)[1]],
    [3, 2 * west, west],
  ];
}
