// One chart: one or two lines, with holes where nothing was measured, and a mark at the instant shown.
import { area, line, scaleLinear } from "../vendor/d3.js";
import { draw, say, set } from "../live/dom.js";
import { nice } from "../grid/colour.js";

const HEIGHT = 58;
const TOP = 8;
const BOTTOM = 3;

export class Chart {
  #holder;
  #about;
  #parts;
  #x = scaleLinear();

  constructor(holder, about, onSeek) {
    this.#holder = holder;
    this.#about = about;
    const lines = about.lines.map((_, number) => draw("path", { class: `line line-${number}` }));
    this.#parts = {
      ground: draw("line", { class: "ground", x1: 0, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }),
      area: draw("path", { class: "area" }),
      lines,
      dots: about.lines.map((_, number) => draw("path", { class: `dots line-${number}` })),
      cursor: draw("line", { class: "cursor", y1: 0, y2: HEIGHT }),
      most: draw("text", { class: "most", x: 4, y: TOP + 3 }),
      svg: draw("svg", { height: HEIGHT, role: "img" }),
    };
    const { svg, ground, area: below, dots, cursor, most } = this.#parts;
    svg.append(ground, below, ...lines, ...dots, cursor, most);
    holder.append(svg);
    const seek = (event) => onSeek(this.#x.invert(event.clientX - svg.getBoundingClientRect().left));
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      seek(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && seek(event));
  }

  draw({ data, from_ms, to_ms, shown_ms }) {
    const width = this.#holder.clientWidth;
    if (!width) return;
    const { svg, ground, area: below, lines, dots, cursor, most } = this.#parts;
    const seen = this.#about.lines.map(([name]) => points(data, name, from_ms));
    const highest = Math.max(this.#about.least ?? 0, ...seen.flat().map(([, value]) => value ?? 0));
    const top = this.#about.most ?? nice(highest);
    this.#x = scaleLinear([from_ms, to_ms], [0, width]);
    const y = scaleLinear([0, top], [HEIGHT - BOTTOM, TOP]);
    const at = (shape) => shape.defined(([, value]) => value !== null).x(([time_ms]) => this.#x(time_ms));
    set(svg, "width", width);
    set(ground, "x2", width);
    set(below, "d", at(area()).y0(y(0)).y1(([, value]) => y(value))(seen[0]));
    seen.forEach((one, number) => {
      set(lines[number], "d", at(line()).y(([, value]) => y(value))(one));
      set(dots[number], "d", alone(one).map(([time_ms, value]) => `M${this.#x(time_ms).toFixed(1)} ${y(value).toFixed(1)}h0`).join(""));
    });
    for (const end of ["x1", "x2"]) set(cursor, end, this.#x(shown_ms).toFixed(1));
    say(most, seen.flat().length ? this.#about.word(top) : "");
    set(svg, "aria-label", `${this.#about.name} over the time shown, up to ${this.#about.word(highest)}`);
  }
}

/** Returns times and values, with one from before the first instant, so that lines come in from the edge. */
function points(data, name, from_ms) {
  const first = Math.max(0, data.time_ms.findIndex((time_ms) => time_ms >= from_ms) - 1);
  return data.time_ms.slice(first).map((time_ms, at) => [Math.max(time_ms, from_ms), data[name][first + at]]);
}

/** Splits values at holes: no line goes through them. */
function alone(one) {
  const known = (at) => (one[at]?.[1] ?? null) !== null;
  return one.filter((_, at) => known(at) && !known(at - 1) && !known(at + 1));
}
