// The camera of the globe: an orthographic view that drag and keys turn, that zooms, and comes back to the site.
import { geoOrthographic } from "../vendor/d3.js";

const RAD = Math.PI / 180;
const ZOOM_MAX = 8;
const ZOOM_STEP = 1.4;
const STEP_DEG = 10;
const KEYS = { ArrowLeft: [-STEP_DEG, 0], ArrowRight: [STEP_DEG, 0], ArrowUp: [0, STEP_DEG], ArrowDown: [0, -STEP_DEG] };

export class Camera {
  longitude = 0;
  latitude = 20;
  /** Zoom; 1 shows all satellites. */
  zoom = 1;
  #size = 0;
  #reach = 1;
  #home = [0, 20];
  /** True once somebody turned the globe: it then stays, whatever site a schedule has. */
  #isTurned = false;

  constructor(canvas, onTurn) {
    let last = null;
    const turn = (longitude, latitude) => {
      this.#isTurned = true;
      this.longitude = ((((this.longitude + longitude) % 360) + 540) % 360) - 180;
      this.latitude = Math.max(-90, Math.min(90, this.latitude + latitude));
      onTurn();
    };
    canvas.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const degrees = 60 / this.radius;
      turn((last[0] - event.clientX) * degrees, (event.clientY - last[1]) * degrees);
      last = [event.clientX, event.clientY];
    });
    // As on maps, the wheel alone scrolls the page
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 300), onTurn);
    }, { passive: false });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key in KEYS) turn(...KEYS[event.key]);
      else if (event.key === "Home") this.goHome(onTurn);
      else if (event.key === "+" || event.key === "=") this.zoomIn(onTurn);
      else if (event.key === "-") this.zoomOut(onTurn);
      else return;
      event.preventDefault();
    });
  }

  /** Where the view begins and comes back to. */
  set home([longitude, latitude]) {
    this.#home = [longitude, latitude];
    if (!this.#isTurned) [this.longitude, this.latitude] = this.#home;
  }

  goHome(onTurn) {
    this.#isTurned = false;
    [this.longitude, this.latitude] = this.#home;
    this.zoomBy(1 / this.zoom, onTurn);
  }

  zoomIn(onTurn) {
    this.zoomBy(ZOOM_STEP, onTurn);
  }

  zoomOut(onTurn) {
    this.zoomBy(1 / ZOOM_STEP, onTurn);
  }

  zoomBy(factor, onTurn) {
    // Rounded, so that zooming in and out again gives the same
    this.zoom = Math.max(1, Math.min(ZOOM_MAX, Math.round(1000 * this.zoom * factor) / 1000));
    this.fit(this.#size, this.#reach);
    onTurn();
  }

  /** The view as three numbers, for a link; null: nobody has changed it. */
  get view() {
    if (!this.#isTurned && this.zoom === 1) return null;
    return [this.longitude, this.latitude, this.zoom];
  }

  set view([longitude, latitude, zoom]) {
    this.#isTurned = true;
    this.longitude = ((((longitude % 360) + 540) % 360) - 180) || 0;
    this.latitude = Math.max(-90, Math.min(90, latitude));
    this.zoom = Math.max(1, Math.min(ZOOM_MAX, zoom));
    this.fit(this.#size, this.#reach);
  }

  /** Sets the picture's size in pixels, and the distance in earth radii up to which it shows things. */
  fit(size, reach) {
    [this.#size, this.#reach] = [size, reach];
    this.size = size;
    this.radius = (size / 2 / (reach * 1.03)) * this.zoom;
    this.middle = size / 2;
  }

  get projection() {
    return geoOrthographic()
      .rotate([-this.longitude, -this.latitude])
      .translate([this.middle, this.middle])
      .scale(this.radius)
      .clipAngle(90)
      .precision(0.4);
  }

  /** Returns a function from vectors to [x, y, depth]; `depth` below 0 is on the far side, null: behind the earth. */
  get look() {
    const [sin_l, cos_l] = [Math.sin(this.longitude * RAD), Math.cos(this.longitude * RAD)];
    const [sin_p, cos_p] = [Math.sin(this.latitude * RAD), Math.cos(this.latitude * RAD)];
    return ([x, y, z]) => {
      const right = -sin_l * x + cos_l * y;
      const up = -sin_p * cos_l * x - sin_p * sin_l * y + cos_p * z;
      const depth = cos_p * cos_l * x + cos_p * sin_l * y + sin_p * z;
      const hidden = depth < 0 && right * right + up * up < 1;
      return [this.middle + this.radius * right, this.middle - this.radius * up, hidden ? null : depth];
    };
  }
}
