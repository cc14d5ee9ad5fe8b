// Puts the page's parts together.
import { startEvents } from "./activity/events.js";
import { startLastGet } from "./activity/lastget.js";
import { startGlobe } from "./globe/globe.js";
import { startDetails } from "./grid/details.js";
import { legend, startGrid } from "./grid/grid.js";
import { startModels } from "./grid/models.js";
import { startTable } from "./grid/table.js";
import { startHeadline } from "./headline/headline.js";
import { startLink } from "./link/link.js";
import { Connection } from "./live/connection.js";
import { say, set } from "./live/dom.js";
import { State } from "./live/state.js";
import { clock } from "./live/words.js";
import { Player } from "./scrubber/player.js";
import { startScrubber } from "./scrubber/scrubber.js";
import { Timeline } from "./scrubber/timeline.js";
import { startSeries } from "./series/series.js";
import { startTheme } from "./theme/theme.js";

/** Age from which a state is no longer "live": the agent asks every 2 s, and waits a moment for silent satellites. */
const OLD_MS = 8_000;
const part = (name) => document.getElementById(name);
const state = new State();

let lost = null;
const connection = new Connection(
  (message) => state.take(message),
  (how, seconds) => {
    lost = how === "lost" ? seconds : null;
    tell();
  },
);

const grid = startGrid(part("grid"), part("grid-note"), state);
const tellScale = legend(part("legend"));
state.on("frame", () => tellScale(grid.most));
const globe = startGlobe(part("globe"), part("globe-note"), part("globe-controls"), state, grid);
startModels(part("models"), state);
startDetails(part("details"), part("details-place"), state);
startTable(part("table"), state);
const timeline = new Timeline(state);
startHeadline(part("headline"), part("schedule"), part("notice"), state, timeline);
const player = new Player(state, timeline, connection);
startScrubber(part("scrubber"), part("controls"), state, timeline, player);
startSeries(part("series"), timeline, player);
startLastGet(part("get"), part("get-note"), state);
startEvents(part("events"), part("events-note"), state, player);
startLink(part("link"), { state, timeline, player, globe });
startTheme(part("theme"));

function tell() {
  const age_ms = state.newest ? performance.now() - state.newest.received_ms : 0;
  const kind = lost !== null ? "lost" : !state.newest ? "waiting" : !state.isLive ? "past" : state.newest.state;
  const old = age_ms > OLD_MS ? `, ${Math.round(age_ms / 1000)} s old` : "";
  const [what, since = ""] = {
    lost: [`no agent; trying again in ${Math.max(1, Math.round(lost))} s`],
    waiting: ["connecting"],
    past: ["replay", `, ${state.past && clock(state.past.shown_ms)}`],
    none: ["no constellation"],
    silent: ["no answer"],
    up: ["live", old],
  }[kind];
  set(part("state"), "data-kind", kind);
  // Screen readers hear the state, not each second of it
  say(part("status"), what);
  say(part("since"), since);
  document.body.dataset.shows = kind;
}
state.on("sky frame newest", tell);
state.on("sky", () => {
  say(part("security"), state.sky?.security ?? "");
  set(part("security"), "data-open", state.sky && !state.sky.secured ? "" : null);
});
setInterval(tell, 1000);
