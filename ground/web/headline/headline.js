// Headline numbers, and the words on top: the state of the page, and the next move of the schedule.
import { make, say, sentence, set } from "../live/dom.js";
import { SILENT, UNASKED, named } from "../live/state.js";
import * as words from "../live/words.js";

/** Each tile: name, value, the line below it, and an explanation for the pointer. */
const TILES = [
  ["hit rate", ({ lately }) => words.ratio(lately("hit_ratio")), ({ asked }) => asked && counted(asked),
    "Share of the blocks asked for in the last minute that came. Cold keys, which nobody had stored, count as asked for. So do blocks that were found but not fetched, mostly because computing them is faster."],
  ["delivery", ({ lately }) => words.ratio(lately("delivery_ratio")), ({ asked }) => asked && `${words.count(asked.not_delivered)} lost in all`,
    "Share of the blocks fetched in the last minute, because they were believed to be in the sky, that came."],
  ["tokens saved", ({ saved }) => words.count(saved?.tokens), () => "so far",
    "Tokens that engines fetched from the sky since the agent began, instead of computing them."],
  ["time saved", ({ saved }) => savedTime(saved), ({ saved }) => saved?.compute_s > 0 && `${words.seconds(saved.fetch_s)} of fetching`,
    "Time in which the engines would have computed the fetched blocks, by their own estimates, less the time of fetching them."],
  ["typical get", ({ lately }) => words.seconds(lately("get_p50_s")), () => "half are faster", "Median duration of recent gets."],
  ["slow get", ({ lately }) => words.seconds(lately("get_p99_s")), () => "99 % are faster", "99th percentile of the duration of recent gets."],
  ["from the sky", ({ frame }) => words.rate(frame.bytes_down_per_s), () => "fetched", "Bytes of blocks fetched a second."],
  ["to the sky", ({ frame }) => words.rate(frame.bytes_up_per_s), () => "stored", "Bytes of blocks stored a second."],
  ["in the sky", ({ frame }) => words.bytes(sum(frame.bytes)), () => "on all satellites", "Bytes that all satellites hold together."],
  ["satellites", ({ frame }) => `${frame.alive} of ${frame.state.filter((one) => one !== UNASKED).length}`, ({ sky, frame }) => dead(sky, frame),
    "Satellites that answered the agent's last question, and those that did not."],
  ["degraded", ({ agent }) => words.count(agent?.degraded), ({ agent }) => agent && `${words.count(agent.puts_again)} put again`,
    "Blocks with parity that came though chunks of them were missing, and those of them that this agent has put again, since it began."],
  ["lost packets", ({ frame }) => words.ratio(frame.loss_ratio), () => "on all links", "Share of the packets that links between satellites lost."],
];
const BAD = TILES.findIndex(([name]) => name === "satellites");
const sum = (values) => values.reduce((total, value) => total + value, 0);

function counted({ hit, blocks, not_fetched }) {
  return `${words.count(hit)} of ${words.count(blocks)} in all${not_fetched ? `; ${words.count(not_fetched)} not fetched` : ""}`;
}

/** Most satellites that a tile names. */
const NAMED_MOST = 2;

/** Names the satellites that did not answer. */
function dead(sky, { state, alive }) {
  const silent = state.flatMap((one, index) => (one === SILENT ? [index] : []));
  if (!silent.length || !alive) return "answer";
  return `lost: ${silent.length > NAMED_MOST ? silent.length : silent.map((one) => named(sky, one)).join(", ")}`;
}

/** Tells in two sentences which servers are lost now and what that means; null: none is, or the past is shown. */
function losses({ isLive, newest }) {
  const window = newest?.frame?.window;
  if (!isLive || !window || window.state === "whole") return null;
  const end = window.words.indexOf(". ") + 1;
  return [window.words.slice(0, end), `${window.words.slice(end + 1)}.`];
}

function savedTime(saved) {
  if (!saved || !(saved.compute_s > 0)) return "–";
  const seconds = saved.compute_s - saved.fetch_s;
  return `${seconds < 0 ? "−" : ""}${words.long(Math.abs(seconds))}`;
}

export function startHeadline(list, schedule, notice, state, timeline) {
  const tiles = TILES.map(([name, value, more, title]) => {
    const [text, below] = [make("dd", {}, "–"), make("dd", { class: "below" })];
    list.append(make("div", { title }, make("dt", {}, name), text, below));
    return [text, value, below, more];
  });
  const update = () => {
    const { frame } = state;
    // Totals belong to the newest frame only
    const told = { sky: state.sky, frame, lately: (name) => timeline.at(timeline.shown_ms, name), asked: frame?.asked, saved: frame?.saved, agent: frame?.agent };
    for (const [text, value, below, more] of tiles) {
      say(text, frame ? value(told) : "–");
      set(text, "data-long", text.textContent.length > 10 ? "" : null);
      say(below, (frame && more(told)) || "\u00a0");
    }
    list.children[BAD].classList.toggle("is-bad", Boolean(frame?.state.includes(SILENT)));
    tellSchedule(schedule, state);
    tellNotice(notice, state);
  };
  state.on("sky frame newest", update);
  timeline.onChange(update);
  setInterval(() => tellSchedule(schedule, state), 1000);
}

function tellSchedule(line, state) {
  const { sky, frame, newest } = state;
  const plan = newest?.frame?.schedule;
  if (!sky || !frame || !plan) return say(line, "");
  if (plan.rows === null) return say(line, "no schedule is followed: the window stays where it is");
  const parts = [`position ${frame.row} of ${plan.rows} of the schedule`];
  if (plan.rate > 0 && plan.speed !== 1) parts.push(`replayed ${plan.speed}× as fast`);
  const now_ms = newest.frame.time_ms + performance.now() - newest.received_ms;
  const next = plan.moves.find((move) => move.time_ms > now_ms);
  if (state.isLive) parts.push(next ? `in ${words.duration(next.time_ms - now_ms)} the window moves to ${named(sky, next.centre)}` : "the window stays there");
  return say(line, parts.join(" · "));
}

/** Tells why there is nothing to see, and what to do; else which servers are lost. */
function tellNotice(notice, state) {
  const { newest } = state;
  const [what, more] = newest?.why ? [newest.why, newest.cure] : (losses(state) ?? ["", ""]);
  const text = `${what} ${more}`;
  if (notice.dataset.text === text) return;
  notice.dataset.text = text;
  notice.hidden = !what;
  notice.replaceChildren(...(what ? [make("strong", {}, what), make("p", {}, ...sentence(more))] : []));
}
