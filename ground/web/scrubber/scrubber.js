// The scrubber: a slider over the time of the series, with play, steps, spans, and back to now.
import { scaleTime } from "../vendor/d3.js";
import { draw, make, say, set } from "../live/dom.js";
import { clock, duration } from "../live/words.js";
import { SPEEDS } from "./player.js";
import { SPANS } from "./timeline.js";

const HEIGHT = 28;
/** Events with a mark on the axis of time; handovers have a line of their own. */
const MARKED = new Set(["lost", "silent", "restarted", "late"]);

export function startScrubber(holder, controls, state, timeline, player) {
  const play = make("button", { type: "button", class: "play", onclick: () => toggle() });
  const back = make("button", { type: "button", "aria-label": "One step back", onclick: () => player.step(-1) }, "◂");
  const forth = make("button", { type: "button", "aria-label": "One step forward", onclick: () => player.step(1) }, "▸");
  const live = make("button", { type: "button", class: "live", onclick: () => player.live() }, "Live");
  const speeds = choice("Speed of replay", SPEEDS.map((speed) => [`${speed}×`, speed]), player.speed, (speed) => (player.speed = speed));
  const spans = choice("Time shown", SPANS.map((span) => [span[0], span]), SPANS[0], (span) => (timeline.span = span));
  const time = make("span", { class: "time" });
  const table = make("a", { class: "button", download: "skymemory.csv", title: "The series of the time shown, as a table" }, "CSV");
  controls.append(time, make("span", { class: "group" }, back, play, forth), speeds, spans, live, table);

  const slider = make("input", { type: "range", class: "slider", "aria-label": "Time", oninput: () => player.seek(Number(slider.value)) });
  slider.addEventListener("pointerdown", () => player.pause());
  const axis = draw("svg", { class: "axis", height: HEIGHT, "aria-hidden": "true" });
  const track = make("div", { class: "track" }, axis, slider);
  holder.append(make("div", { class: "name" }), track, make("div", { class: "value" }));

  const toggle = () => {
    if (state.isLive) player.seek(timeline.to_ms);
    else if (player.isPlaying) player.pause();
    else player.play();
  };
  const update = () => {
    const { from_ms, to_ms, step_ms, shown_ms } = timeline;
    set(table, "href", `api/history.csv?from=${Math.floor(from_ms)}&to=${Math.ceil(to_ms)}`);
    spans.value = String(SPANS.indexOf(timeline.span));
    // Steps count from `min`, and the end has to be one
    set(slider, "min", to_ms - Math.ceil((to_ms - from_ms) / step_ms) * step_ms);
    set(slider, "max", to_ms);
    set(slider, "step", step_ms);
    slider.value = String(Math.round(shown_ms));
    const when = state.isLive ? "live" : `${clock(shown_ms)}, ${duration(to_ms - shown_ms)} ago`;
    set(slider, "aria-valuetext", state.isLive ? `live, ${clock(to_ms)}` : when);
    say(time, state.frame ? when : "");
    const word = state.isLive ? "Hold" : player.isPlaying ? "Pause" : "Play";
    say(play, word);
    set(live, "aria-pressed", String(state.isLive));
    set(forth, "disabled", state.isLive);
    drawAxis(axis, timeline, state.newest?.frame?.events ?? []);
  };
  timeline.onChange(update);
  player.onChange(update);
  new ResizeObserver(update).observe(track);
}

function choice(label, options, first, onChoice) {
  const select = make("select", { "aria-label": label });
  options.forEach(([text, value], at) => select.append(make("option", { value: at, selected: value === first }, text)));
  select.addEventListener("change", () => onChoice(options[Number(select.value)][1]));
  return select;
}

function drawAxis(axis, { from_ms, to_ms, data }, events) {
  const width = axis.parentElement.clientWidth;
  set(axis, "width", width);
  const x = scaleTime([from_ms, to_ms], [0, width]);
  const ticks = x.ticks(Math.max(2, Math.floor(width / 110))).map((tick) => {
    const text = to_ms - from_ms < 20 * 60_000 ? clock(tick) : clock(tick).slice(0, 5);
    return draw("text", { x: x(tick), y: HEIGHT - 3 }, text);
  });
  const moves = data.moving.flatMap((moving, at) => {
    if (!moving || data.moving[at - 1]) return [];
    const end = data.moving.findIndex((later, index) => index > at && !later);
    const [a, b] = [x(data.time_ms[at]), x(end < 0 ? to_ms : data.time_ms[end])];
    return b < 0 ? [] : [draw("rect", { class: "moved", x: Math.max(0, a), y: 0, width: Math.max(2, b - Math.max(0, a)), height: 3 })];
  });
  const marks = events
    .filter(({ kind, time_ms }) => MARKED.has(kind) && time_ms >= from_ms && time_ms <= to_ms)
    .map(({ time_ms }) => draw("path", { class: "event", d: `M${x(time_ms)} 0l4 7h-8z` }));
  axis.replaceChildren(...moves, ...marks, ...ticks);
}
