// The torus as a grid: satellites with their chunks, links between them, and moves.
import { draw, make, say, set } from "../live/dom.js";
import { SILENT, UNASKED, named, place } from "../live/state.js";
import * as words from "../live/words.js";
import { onTheme } from "../theme/theme.js";
import { arcs } from "./arcs.js";
import { fill, ink, nice } from "./colour.js";
import { moveFocus } from "./keyboard.js";
import { layout } from "./layout.js";
import { drawLinks, updateLinks } from "./links.js";

export function startGrid(holder, note, state) {
  const grid = new Grid(holder, note, state);
  state.on("sky", () => grid.build());
  state.on("frame", () => grid.update());
  state.on("chosen", () => grid.choose());
  onTheme(() => grid.update());
  new ResizeObserver(() => grid.build()).observe(holder);
  return grid;
}

/** Describes a satellite in words, for people who do not see the grid. */
export function spoken(state, index) {
  const { sky, frame } = state;
  const parts = [`Satellite ${place(sky, index).join(", ")}`];
  if (frame.state[index] === SILENT) parts.push("lost: does not answer");
  else if (frame.state[index] === UNASKED) parts.push("not asked yet");
  else parts.push(`${frame.chunks[index]} chunks, ${words.bytes(frame.bytes[index])}, ${words.perSecond(frame.hits_per_s[index])} hits`);
  const server = frame.servers.indexOf(index);
  if (server >= 0) parts.push(`server ${server + 1}`);
  if (frame.centre === index) parts.push("centre of the window");
  return parts.join("; ");
}

class Grid {
  #holder;
  #note;
  #state;
  #cells = [];
  #links = [];
  #arcs;
  #box;
  #width = 0;
  #id = null;
  /** Chunks at the upper end of the colours. */
  most = 1;

  constructor(holder, note, state) {
    this.#holder = holder;
    this.#note = note;
    this.#state = state;
  }

  build() {
    const { sky } = this.#state;
    const width = Math.floor(this.#holder.clientWidth);
    const id = sky && `${sky.planes}x${sky.slots}`;
    if (!sky || !width) {
      this.#holder.replaceChildren();
      this.#id = null;
      return;
    }
    if (width === this.#width && id === this.#id) return;
    this.#width = width;
    this.#id = id;
    const had = this.#cells.findIndex((cell) => cell.group === document.activeElement);
    this.#box = layout(sky, width);
    const box = this.#box;
    const svg = draw("svg", {
      width: box.width,
      height: box.height,
      viewBox: `0 0 ${box.width} ${box.height}`,
      role: "grid",
      "aria-label": `Satellites: ${sky.planes} planes of ${sky.slots} slots. Arrow keys go from one to the next, around the torus`,
      "data-small": box.is_small,
      "aria-rowcount": sky.planes,
      "aria-colcount": sky.slots,
    });
    svg.append(clip(box), labels(sky, box));
    const links = draw("g", { class: "links", "aria-hidden": "true", "clip-path": "url(#torus)" });
    this.#links = drawLinks(links, sky, box);
    svg.append(links, this.#drawCells(sky, box));
    this.#arcs = draw("g", { class: "arcs", "aria-hidden": "true", "clip-path": "url(#torus)" });
    svg.append(this.#arcs);
    this.#holder.replaceChildren(svg);
    this.update();
    if (had >= 0) this.#cells[had]?.group.focus();
  }

  #drawCells(sky, box) {
    this.#cells = [];
    const all = draw("g", { class: "cells", role: "presentation" });
    for (let plane = 1; plane <= sky.planes; plane += 1) {
      const row = draw("g", { role: "row", "aria-rowindex": plane, "aria-label": `plane ${plane}` });
      for (let slot = 1; slot <= sky.slots; slot += 1) row.append(this.#drawCell(sky, box, plane, slot));
      all.append(row);
    }
    return all;
  }

  #drawCell(sky, box, plane, slot) {
    const index = this.#cells.length;
    const { x, y } = box.at(plane, slot);
    const { width, height } = box.cell;
    const size = { x: -width / 2, y: -height / 2, width, height, rx: Math.min(5, height / 5) };
    const cell = {
      group: draw("g", {
        class: "cell",
        role: "gridcell",
        "aria-colindex": slot,
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        tabindex: -1,
        onfocus: () => this.#focus(index),
        onblur: () => this.#state.choose(null),
        onkeydown: (event) => moveFocus(event, sky, box, index, (to) => this.#cells[to].group.focus(), (to) => this.#state.pin(to)),
        onpointerenter: () => this.#state.choose(index),
        onpointerleave: () => this.#state.choose(this.#focused()),
        onclick: () => this.#state.pin(index),
      }),
      // Larger than the visible cell, so that the pointer does not lose it in the gaps
      area: draw("rect", { class: "area", x: -box.pitch.x / 2, y: -box.pitch.y / 2, width: box.pitch.x, height: box.pitch.y }),
      halo: draw("rect", { class: "halo", ...grown(size, box.is_small ? 2.5 : 4) }),
      body: draw("rect", { class: "body", ...size }),
      ring: draw("rect", { class: "ring", ...grown(size, box.is_small ? 0.4 : 1.5) }),
      number: draw("text", { class: "number", y: box.has_server ? 4 : 0 }),
      server: draw("text", { class: "server", x: size.x + 4, y: size.y + 9 }),
      centre: draw("path", { class: "centre", d: diamond(width / 2 - 7, -height / 2 + 7, 3.4) }),
      hits: draw("rect", { class: "hits", x: size.x + 4, y: height / 2 - 6, width: 0, height: 2, rx: 1 }),
      lost: draw("path", { class: "cross", d: cross(Math.min(width, height) * 0.2) }),
    };
    const { group, ...parts } = cell;
    group.append(...Object.values(parts));
    this.#cells.push(cell);
    return group;
  }

  update() {
    const { frame, sky } = this.#state;
    if (!frame || !sky || this.#cells.length !== frame.state.length) return;
    this.most = Math.max(nice(Math.max(...frame.chunks)), 10);
    const hits_most = Math.max(1, ...frame.hits_per_s);
    const servers = new Map(frame.servers.map((index, number) => [index, number]));
    const next = this.#state.isLive ? frame.schedule?.moves?.find((move) => move.time_ms > frame.time_ms)?.centre : null;
    this.#cells.forEach((cell, index) => this.#updateCell(cell, index, { frame, servers, hits_most, next }));
    this.#rove();
    updateLinks(this.#links, frame);
    this.#arcs.replaceChildren(...arcs(sky, this.#box, frame));
    this.choose();
    const moving = frame.moves.length;
    say(this.#note, moving ? `handover: ${words.plural(moving, "server moves", "servers move")}` : `the window is around ${named(sky, frame.centre)}`);
    set(this.#note, "data-moving", moving ? "" : null);
  }

  #updateCell(cell, index, { frame, servers, hits_most, next }) {
    const silent = frame.state[index] === SILENT;
    const colour = silent ? null : fill(frame.chunks[index] / this.most);
    const classes = ["cell"];
    if (silent) classes.push("is-lost");
    if (servers.has(index)) classes.push("is-server");
    if (index === frame.centre) classes.push("is-centre");
    else if (index === next) classes.push("is-next");
    if (!colour) classes.push("is-empty");
    set(cell.group, "class", classes.join(" "));
    set(cell.body, "fill", colour);
    cell.group.style.setProperty("--ink", colour ? ink(colour) : "var(--text)");
    const unknown = frame.state[index] === UNASKED ? "?" : null;
    say(cell.number, this.#box.has_text && !silent ? (unknown ?? (frame.chunks[index] ? words.short(frame.chunks[index]) : "")) : "");
    say(cell.server, this.#box.has_server && servers.has(index) ? String(servers.get(index) + 1) : "");
    const share = Math.log1p(frame.hits_per_s[index]) / Math.log1p(hits_most);
    set(cell.hits, "width", silent ? 0 : (share * (this.#box.cell.width - 8)).toFixed(1));
    set(cell.group, "aria-label", spoken(this.#state, index));
  }

  choose() {
    const { chosen, pinned } = this.#state;
    this.#cells.forEach((cell, index) => set(cell.group, "data-chosen", index === chosen || index === pinned ? "" : null));
  }

  #focus(index) {
    this.#state.choose(index);
    this.#rove();
  }

  #focused() {
    const at = this.#cells.findIndex((cell) => cell.group === document.activeElement);
    return at >= 0 ? at : null;
  }

  /** Puts one cell in the order of Tab: the one that has focus, else the window's centre. */
  #rove() {
    const at = this.#focused() ?? this.#state.frame?.centre ?? 0;
    this.#cells.forEach((cell, index) => set(cell.group, "tabindex", index === at ? 0 : -1));
  }
}

const grown = ({ x, y, width, height, rx }, by) => ({ x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by, rx: rx + by });
const diamond = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
const cross = (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`;

function clip(box) {
  return draw("defs", {}, draw("clipPath", { id: "torus" }, draw("rect", { ...box.area })));
}

function labels(sky, box) {
  const all = draw("g", { class: "labels", "aria-hidden": "true" });
  const every = Math.ceil(18 / Math.min(box.pitch.x, box.pitch.y));
  const [across, down] = box.wide ? [sky.slots, sky.planes] : [sky.planes, sky.slots];
  const at = (column, row) => (box.wide ? box.at(row, column) : box.at(column, row));
  for (let column = 1; column <= across; column += 1) {
    if (column === 1 || column % every === 0) all.append(draw("text", { x: at(column, 1).x, y: box.label.y, class: "across" }, String(column)));
  }
  for (let row = 1; row <= down; row += 1) {
    if (row === 1 || row % every === 0) all.append(draw("text", { x: box.label.x, y: at(1, row).y, class: "down" }, String(row)));
  }
  const [first, second] = box.wide ? ["slot", "plane"] : ["plane", "slot"];
  all.append(draw("text", { x: 0, y: box.label.y, class: "axis" }, `${first} →`));
  all.append(draw("text", { x: 0, y: box.label.y + 15, class: "axis" }, `${second} ↓`));
  return all;
}

export function legend(holder) {
  const item = (kind, text) => make("span", { class: `key key-${kind}` }, make("i", { "aria-hidden": "true" }), text);
  const scale = make("span", { class: "key key-scale" }, make("i", { "aria-hidden": "true" }), make("b"));
  holder.replaceChildren(
    scale,
    item("server", "server, with its number"),
    item("centre", "nearest to the site: centre of the window"),
    item("next", "centre after the next move"),
    item("hits", "chunks served a second"),
    item("lost", "no answer"),
    item("used", "link in use"),
    item("loss", "link that loses packets"),
    item("down", "link down"),
    item("arc", "a server moves: handover"),
  );
  const tell = (most) => say(scale.lastChild, `0 to ${words.count(most)} chunks held`);
  tell(10);
  return tell;
}
