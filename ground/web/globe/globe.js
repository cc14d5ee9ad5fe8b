// The globe: drag and arrow keys turn it, and it is painted while something flies or moves; with its switches.
import { make, say, set } from "../live/dom.js";
import { named } from "../live/state.js";
import { degrees, utc } from "../live/words.js";
import { colours, onTheme, still } from "../theme/theme.js";
import { Camera } from "./camera.js";
import { paintEarth, paintSky, paintTrack } from "./paint.js";
import { EARTH_KM, between, orbits, track } from "./vectors.js";

const COLOURS = [
  ...["sea", "land", "coast", "graticule", "night", "limb", "sight", "site", "link", "used", "rim", "track"],
  ...["server", "empty", "lost", "arc", "focus", "text", "panel"],
];
const ARC_MS = 1800;
/** Pictures a second: a satellite moves by less than a pixel between two. */
const CALM_MS = 100;
const MOVING_MS = 33;

export function startGlobe(holder, note, controls, state, grid) {
  const canvas = make("canvas", {
    tabindex: 0,
    role: "application",
    "aria-roledescription": "globe",
    "aria-label": "Globe. Arrow keys turn it, plus and minus zoom, Home shows the site",
  });
  holder.append(canvas);
  const globe = new Globe(canvas, note, state, grid);
  new ResizeObserver(() => globe.fit()).observe(holder);
  state.on("frame", () => globe.take());
  state.on("sky", () => globe.arrive());
  state.on("chosen", () => globe.paint());
  onTheme(() => globe.dress());
  controls.append(
    make("button", { type: "button", "aria-label": "Zoom out", onclick: () => globe.zoom(-1) }, "−"),
    make("button", { type: "button", "aria-label": "Zoom in", onclick: () => globe.zoom(1) }, "+"),
    make("button", { type: "button", onclick: () => globe.home() }, "Site"),
    globe.names.button,
    globe.tracks.button,
  );
  return globe;
}

/** A button that is on or off. */
class Switch {
  constructor(text, isOn, onChange) {
    this.isOn = isOn;
    this.button = make("button", { type: "button", "aria-pressed": String(isOn), onclick: () => this.turn(!this.isOn, onChange) }, text);
  }

  turn(isOn, onChange = () => {}) {
    this.isOn = isOn;
    set(this.button, "aria-pressed", String(isOn));
    onChange();
  }
}

class Globe {
  /** On: all satellites are named, not only the one that is looked at. */
  names = new Switch("Names", false, () => this.#change());
  /** On: the ground track of the satellite that is looked at is drawn. */
  tracks = new Switch("Track", true, () => this.#change());
  #canvas;
  #note;
  #state;
  #grid;
  #camera;
  #colours = {};
  #orbits = null;
  #since_ms = 0;
  #timer = 0;
  #listeners = [];

  constructor(canvas, note, state, grid) {
    this.#canvas = canvas;
    this.#note = note;
    this.#state = state;
    this.#grid = grid;
    this.#camera = new Camera(canvas, () => this.#change());
  }

  /** Calls `listener` when somebody has turned or zoomed the globe, or used a switch. */
  onChange(listener) {
    this.#listeners.push(listener);
  }

  #change() {
    this.paint();
    for (const listener of this.#listeners) listener();
  }

  get view() {
    return this.#camera.view;
  }

  set view(numbers) {
    this.#camera.view = numbers;
    this.paint();
  }

  zoom(steps) {
    const change = () => this.#change();
    if (steps > 0) this.#camera.zoomIn(change);
    else this.#camera.zoomOut(change);
  }

  home() {
    this.#camera.goHome(() => this.#change());
  }

  get #site() {
    const { sky } = this.#state;
    return sky?.host === "ground" ? { ...sky.site, altitude_km: sky.altitude_km } : null;
  }

  fit() {
    const size = Math.floor(Math.min(this.#canvas.parentElement.clientWidth, 560));
    if (!size) return;
    const ratio = window.devicePixelRatio || 1;
    this.#canvas.width = this.#canvas.height = Math.round(size * ratio);
    this.#canvas.style.width = this.#canvas.style.height = `${size}px`;
    this.#camera.fit(size, 1 + (this.#state.sky?.altitude_km ?? 550) / EARTH_KM);
    this.paint();
  }

  arrive() {
    const site = this.#site;
    if (site) this.#camera.home = [site.longitude_deg, Math.max(-60, Math.min(60, site.latitude_deg))];
    this.fit();
    this.take();
  }

  dress() {
    this.#colours = colours(...COLOURS);
    this.paint();
  }

  take() {
    const { frame, sky } = this.#state;
    this.#orbits = frame?.positions ? orbits(frame.positions) : null;
    this.#since_ms = performance.now();
    const unknown = sky && frame && !frame.positions;
    say(this.#note, unknown ? "this schedule does not say where its satellites are" : frame ? utc(frame.sky_ms) : "");
    set(this.#canvas, "aria-label", this.#spoken());
    this.paint();
  }

  #spoken() {
    const { sky, frame } = this.#state;
    if (!sky || !frame) return "Globe";
    const { latitude_deg, longitude_deg } = sky.site;
    const where = sky.host === "ground" ? `site at ${degrees(latitude_deg, "NS")}, ${degrees(longitude_deg, "EW")}` : "host on board";
    const seen = frame.positions?.in_sight.map((index) => named(sky, index)).join(" ");
    return `Globe with the ${where}; in sight: ${seen || "nobody"}; window around ${named(sky, frame.centre)}. Arrow keys turn it, plus and minus zoom, Home shows the site`;
  }

  paint() {
    clearTimeout(this.#timer);
    const { frame, sky } = this.#state;
    const context = this.#canvas.getContext("2d");
    if (!this.#camera.size || !this.#colours.sea) return;
    const ratio = this.#canvas.width / this.#camera.size;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.#camera.size, this.#camera.size);
    const positions = frame?.positions;
    const rate = this.#state.isLive ? (positions?.rate ?? 0) : 0;
    const passed_ms = (performance.now() - this.#since_ms) * rate;
    paintEarth(context, this.#camera, this.#colours, this.#site, frame ? frame.sky_ms + passed_ms : null);
    if (!sky || !frame || !this.#orbits) return;
    const places = this.#orbits.map((orbit) => between(orbit, passed_ms / positions.ahead_ms));
    const moving = frame.moves.length > 0;
    const phase = moving && !still.matches ? (performance.now() % ARC_MS) / ARC_MS : null;
    const { looked } = this.#state;
    if (this.tracks.isOn && looked !== null && this.#orbits[looked]) {
      paintTrack(context, this.#camera, this.#colours, track(this.#orbits[looked], positions.ahead_ms));
    }
    const about = { sky, frame, site: this.#site, places, chosen: looked, most: this.#grid.most, phase, names: this.names.isOn };
    paintSky(context, this.#camera, this.#colours, about);
    if ((rate > 0 || phase !== null) && !document.hidden && !(still.matches && rate <= 1)) {
      this.#timer = setTimeout(() => requestAnimationFrame(() => this.paint()), phase === null && rate < 20 ? CALM_MS : MOVING_MS);
    }
  }
}
