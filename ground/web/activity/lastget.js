// The path of the last get: which satellites served it, through which others, and how long each took.
import { make, say, set } from "../live/dom.js";
import { named } from "../live/state.js";
import * as words from "../live/words.js";

const HEADS = ["satellite", "through", "chunks", "from the request to the last answer", "done after"];
const VIEW = 1000; // width of the drawing of the bars

export function startLastGet(holder, note, state) {
  const body = make("tbody");
  const head = make("tr", {}, ...HEADS.map((name) => make("th", { scope: "col" }, name)));
  const caption = make("caption", { class: "for-readers" }, "Satellites that served the last get, the slowest first");
  const table = make("table", { class: "get-table" }, caption, make("thead", {}, head), body);
  const empty = make("p", { class: "note" }, "Nothing was fetched yet.");
  holder.append(empty, make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "The way of the last get" }, table));
  const update = () => {
    const { sky, newest } = state;
    const get = newest?.frame?.last_get;
    table.parentElement.hidden = !get || !sky;
    empty.hidden = Boolean(get);
    if (!get || !sky) return say(note, "");
    const came = get.hits === get.blocks ? words.plural(get.blocks, "block", "blocks") : `${get.hits} of ${words.plural(get.blocks, "block", "blocks")}`;
    const ago = words.duration(Math.max(0, newest.frame.time_ms - get.began_ms));
    say(note, `${came}, ${words.bytes(get.bytes)} in ${words.seconds(get.duration_s)}, ${ago} ago`);
    while (body.children.length > get.steps.length) body.lastChild.remove();
    get.steps.forEach((step, at) => fill(body.children[at] ?? body.appendChild(row(state)), sky, step, get.duration_s));
    return undefined;
  };
  state.on("sky newest", update);
}

function row(state) {
  const bar = make("td", { class: "bar" }, make("i", { class: "wait" }), make("i", { class: "serve" }));
  const one = make("tr", {}, make("th", { scope: "row" }), make("td"), make("td"), bar, make("td"));
  one.addEventListener("pointerenter", () => state.choose(Number(one.dataset.satellite)));
  one.addEventListener("pointerleave", () => state.choose(null));
  return one;
}

function fill(one, sky, step, duration_s) {
  const [name, through, chunks, bar, done] = one.children;
  set(one, "data-satellite", step.satellite);
  say(name, named(sky, step.satellite));
  say(through, step.entry === step.satellite ? "straight" : `${named(sky, step.entry)}, ${words.plural(hops(sky, step), "hop", "hops")}`);
  say(chunks, step.repeats ? `${step.chunks} (${step.repeats} asked again)` : String(step.chunks));
  say(done, step.last_s !== null ? words.seconds(step.last_s) : step.asked_s === null ? "not needed" : "no answer");
  const at = (seconds) => Math.round((VIEW * Math.min(seconds ?? duration_s, duration_s)) / (duration_s || 1)) / (VIEW / 100);
  const [asked, first, last] = [at(step.asked_s), at(step.first_s), at(step.last_s)];
  place(bar.children[0], asked, step.asked_s === null ? asked : first);
  place(bar.children[1], first, step.first_s === null ? first : Math.max(last, first + 0.6));
}

/** Sets an element's style by script; the policy of the page forbids styles in markup only. */
function place(part, from, to) {
  part.style.left = `${from}%`;
  part.style.width = `${Math.max(0, to - from)}%`;
}

/** Returns the links from the satellite that the ground reaches to the one that serves: the shorter way round on both axes. */
function hops({ slots, planes }, { entry, satellite }) {
  const around = (difference, count) => Math.min((difference + count) % count, (count - difference) % count);
  const across = around((satellite % slots) - (entry % slots), slots);
  return across + around(Math.floor(satellite / slots) - Math.floor(entry / slots), planes);
}
