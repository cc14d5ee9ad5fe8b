// Who looks at the globe from where: an orthographic view that is turned by drag, by wheel of keys, and comes back to the site.
import { geoOrthographic } from "../vendor/d3.js";

const RAD = Math.PI / 180;
const STEP_DEG = 10;
const KEYS = { ArrowLeft: [-STEP_DEG, 0], ArrowRight: [STEP_DEG, 0], ArrowUp: [0, STEP_DEG], ArrowDown: [0, -STEP_DEG] };

export class Camera {
  longitude = 0;
  latitude = 20;
  #home = [0, 20];
  /** Somebody turned it: it then stays, whatever site a schedule has. */
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
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key in KEYS) turn(...KEYS[event.key]);
      else if (event.key === "Home") this.goHome(onTurn);
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
    onTurn();
  }

  /** The picture's size in pixels, and how far out, in earth radii, something is still to be seen. */
  fit(size, reach) {
    this.size = size;
    this.radius = size / 2 / (reach * 1.03);
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

  /** A function from vectors to [x, y, depth] on the picture; `depth` below 0 is on the far side, null: behind the earth. */
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
