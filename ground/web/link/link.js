// A link that reproduces the view, whose settings stand in the part of the address behind the "#".
//
// at: Unix time in ms, left out while the page is live. span: length of the series. sat: the pinned satellite, plane.slot.
// globe: longitude, latitude and zoom. names, track: switches of the globe.
import { SPANS } from "../scrubber/timeline.js";
import { place } from "../live/state.js";

const LATER_MS = 250;

export function startLink(button, { state, timeline, player, globe }) {
  let timer = 0;
  const write = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const text = written({ state, timeline, globe });
      if (text !== location.hash.slice(1) && (text || location.hash.includes("="))) history.replaceState(null, "", text ? `#${text}` : location.pathname);
    }, LATER_MS);
  };
  const read = () => {
    if (location.hash.includes("=")) apply(new URLSearchParams(location.hash.slice(1)), { state, timeline, player, globe });
  };
  // A link is read once the agent has sent a constellation
  const begin = () => {
    if (!state.sky || begin.done) return;
    begin.done = true;
    read();
    state.on("chosen frame", write);
    timeline.onChange(write);
    globe.onChange(write);
    addEventListener("hashchange", read);
  };
  state.on("newest", begin);
  button.addEventListener("click", async () => {
    history.replaceState(null, "", `#${written({ state, timeline, globe }) || "live=1"}`);
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Link copied";
    } catch {
      button.textContent = "Link is in the address bar"; // no clipboard without https
    }
    setTimeout(() => (button.textContent = "Copy link"), 3000);
  });
}

function written({ state, timeline, globe }) {
  const parts = [];
  if (!state.isLive) parts.push(`at=${Math.round(state.past.shown_ms)}`);
  if (timeline.span !== SPANS[0]) parts.push(`span=${timeline.span[0].replace(" ", "")}`);
  if (state.pinned !== null && state.sky) parts.push(`sat=${place(state.sky, state.pinned).join(".")}`);
  if (globe.view) parts.push(`globe=${globe.view.map((value) => value.toFixed(1)).join(",")}`);
  if (globe.names.isOn) parts.push("names=1");
  if (!globe.tracks.isOn) parts.push("track=0");
  return parts.join("&");
}

/** Applies a link. Settings that are missing or make no sense stay as they are. */
function apply(told, { state, timeline, player, globe }) {
  const span = SPANS.find(([name]) => name.replace(" ", "") === told.get("span"));
  if (span) timeline.span = span;
  const [, plane, slot] = (told.get("sat") ?? "").match(/^(\d{1,3})\.(\d{1,3})$/) ?? [];
  const { planes, slots } = state.sky;
  const index = (plane - 1) * slots + Number(slot) - 1;
  if (plane >= 1 && plane <= planes && slot >= 1 && slot <= slots && state.pinned !== index) state.pin(index);
  const view = (told.get("globe") ?? "").split(",").map(Number);
  if (view.length === 3 && view.every(Number.isFinite)) globe.view = view;
  globe.names.turn(told.get("names") === "1");
  globe.tracks.turn(told.get("track") !== "0");
  globe.paint();
  const at_ms = Number(told.get("at"));
  if (at_ms > 0) player.seek(at_ms);
  else if (!state.isLive) player.live();
}
