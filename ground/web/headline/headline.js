// Headline numbers, and the words on top: what is shown, and what the schedule does next.
import { make, say, sentence, set } from "../live/dom.js";
import { NO_LINK, SILENT, named } from "../live/state.js";
import * as words from "../live/words.js";

const TILES = [
  ["hit rate", (_, lately) => words.ratio(lately("hit_ratio")), "of the gets of late"],
  ["get, median", (_, lately) => words.seconds(lately("get_p50_s")), "half of the gets are faster"],
  ["get, p99", (_, lately) => words.seconds(lately("get_p99_s")), "99 of 100 gets are faster"],
  ["down", (frame) => words.rate(frame.bytes_down_per_s), "from the sky"],
  ["up", (frame) => words.rate(frame.bytes_up_per_s), "to the sky"],
  ["held", (frame) => words.bytes(sum(frame.bytes)), "by all satellites"],
  ["satellites", (frame) => `${frame.alive} of ${frame.state.filter((one) => one !== 2).length}`, "answer"],
  ["links in use", (frame) => `${frame.packets_per_s.filter((one) => one > 0).length} of ${frame.link_state.filter((one) => one !== NO_LINK).length}`, ""],
  ["lost packets", (frame) => words.ratio(frame.loss_ratio), "on links"],
];
const sum = (values) => values.reduce((total, value) => total + value, 0);

export function startHeadline(list, schedule, notice, state, timeline) {
  const tiles = TILES.map(([name, value, more]) => {
    const text = make("dd", {}, "–");
    list.append(make("div", { title: more || null }, make("dt", {}, name), text));
    return [text, value];
  });
  const update = () => {
    const { frame } = state;
    const lately = (name) => timeline.at(timeline.shown_ms, name);
    for (const [text, value] of tiles) {
      say(text, frame ? value(frame, lately) : "–");
      set(text, "data-long", text.textContent.length > 10 ? "" : null);
    }
    list.querySelectorAll("div")[6].classList.toggle("is-bad", Boolean(frame?.state.includes(SILENT)));
    tellSchedule(schedule, state);
    tellNotice(notice, state.newest);
  };
  state.on("sky frame newest", update);
  timeline.onChange(update);
  setInterval(() => tellSchedule(schedule, state), 1000);
}

function tellSchedule(line, state) {
  const { sky, frame, newest } = state;
  const plan = newest?.frame?.schedule;
  if (!sky || !frame || !plan) return say(line, "");
  if (plan.rows === null) return say(line, "no schedule: the window stays");
  const parts = [`row ${frame.row} of ${plan.rows}`];
  if (plan.rate > 0) parts.push(`${plan.speed}×`);
  const now_ms = newest.frame.time_ms + performance.now() - newest.received_ms;
  const next = plan.moves.find((move) => move.time_ms > now_ms);
  if (state.isLive) parts.push(next ? `next move in ${words.duration(next.time_ms - now_ms)}, to ${named(sky, next.centre)}` : "the last row: the window stays");
  return say(line, parts.join(" · "));
}

/** Why there is nothing to see, and what to do. */
function tellNotice(notice, newest) {
  const text = newest?.why ? `${newest.why} ${newest.cure}` : "";
  if (notice.dataset.text === text) return;
  notice.dataset.text = text;
  notice.hidden = !text;
  notice.replaceChildren(...(text ? [make("strong", {}, newest.why), make("p", {}, ...sentence(newest.cure))] : []));
}
