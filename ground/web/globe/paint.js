// Draws the globe: earth, night, site, satellites, links in use, and what moves.
import { coastlines, geoCircle, geoGraticule10, geoPath } from "../vendor/d3.js";
import { fill } from "../grid/colour.js";
import { LINK_UP, SILENT, ends, named } from "../live/state.js";
import { horizon, subsolar, vector } from "./vectors.js";

/** From so many satellites on they are drawn small. */
const MANY = 400;
const FONT = 'system-ui, "Segoe UI", Roboto, sans-serif';
const graticule = geoGraticule10();

export function paintEarth(context, camera, colours, site, sky_ms) {
  const path = geoPath(camera.projection, context);
  const shape = (object, paint, colour, width = 1) => {
    context.beginPath();
    path(object);
    context[`${paint}Style`] = colour;
    context.lineWidth = width;
    context[paint]();
  };
  shape({ type: "Sphere" }, "fill", colours.sea);
  shape(coastlines, "fill", colours.land);
  shape(graticule, "stroke", colours.graticule, 0.6);
  shape(coastlines, "stroke", colours.coast, 0.8);
  if (sky_ms) {
    const [longitude, latitude] = subsolar(sky_ms);
    // Twilight in three steps: civil, nautical, astronomical
    for (const depth of [0.8, 6, 12]) shape(geoCircle().center([longitude + 180, -latitude]).radius(90 - depth)(), "fill", colours.night);
  }
  shape({ type: "Sphere" }, "stroke", colours.limb, 1);
  if (site) {
    const reach = horizon(site.altitude_km, site.min_elevation_deg);
    const circle = geoCircle().center([site.longitude_deg, site.latitude_deg]).radius(reach)();
    shape(circle, "fill", colours.sight);
    context.setLineDash([3, 3]);
    shape(circle, "stroke", colours.site, 1);
    context.setLineDash([]);
  }
}

/**
 * @param {number[][]} places  a vector for each satellite
 * @param {number} phase  position on an arc of the points that move, 0 to 1; null: nothing moves
 */
export function paintSky(context, camera, colours, { sky, frame, site, places, chosen, most, phase, names }) {
  const look = camera.look;
  const seen = places.map(look);
  paintLinks(context, colours, sky, frame, seen);
  if (site) paintSite(context, colours, look(vector(site.longitude_deg, site.latitude_deg)), frame, seen);
  for (const [, from, to] of frame.moves) paintMove(context, colours, look, places[from], places[to], phase);
  // Far satellites first: near ones lie over them
  const order = seen.map((_, index) => index).sort((a, b) => (seen[a][2] ?? -9) - (seen[b][2] ?? -9));
  const servers = new Set(frame.servers);
  const small = places.length > MANY;
  for (const index of order) {
    const [x, y, depth] = seen[index];
    if (depth !== null) paintSatellite(context, colours, frame, index, { x, y, depth, most, small, server: servers.has(index), chosen: chosen === index });
  }
  context.font = `600 12px ${FONT}`;
  context.textBaseline = "middle";
  for (const index of order) {
    const [x, y, depth] = seen[index];
    if (depth !== null && depth > 0 && (names || index === chosen)) paintName(context, colours, named(sky, index), x + 9, y - 9);
  }
}

/** Draws text with a seam in the colour of the panel, so that it can be read over land, sea and lines. */
function paintName(context, colours, text, x, y) {
  context.lineWidth = 3;
  context.strokeStyle = colours.panel;
  context.strokeText(text, x, y);
  context.fillStyle = colours.text;
  context.fillText(text, x, y);
}

/** Draws a satellite's ground track: dashes behind it, a line before it. */
export function paintTrack(context, camera, colours, points) {
  const path = geoPath(camera.projection, context);
  const middle = Math.floor(points.length / 2);
  context.strokeStyle = colours.track;
  context.lineWidth = 1.6;
  for (const [part, dashes] of [[points.slice(0, middle + 1), [2, 4]], [points.slice(middle), []]]) {
    context.setLineDash(dashes);
    context.beginPath();
    path({ type: "LineString", coordinates: part });
    context.stroke();
  }
  context.setLineDash([]);
}

function paintLinks(context, colours, sky, frame, seen) {
  frame.link_state.forEach((state, link) => {
    if (state !== LINK_UP) return;
    const [a, b] = ends(sky, link).map((index) => seen[index]);
    if (a[2] === null || b[2] === null) return;
    const used = frame.packets_per_s[link] > 0;
    context.globalAlpha = Math.min(a[2], b[2]) < 0 ? 0.2 : 1;
    context.strokeStyle = used ? colours.used : colours.link;
    context.lineWidth = used ? 1.8 : 0.7;
    context.beginPath();
    context.moveTo(a[0], a[1]);
    context.lineTo(b[0], b[1]);
    context.stroke();
  });
  context.globalAlpha = 1;
}

function paintSite(context, colours, [x, y, depth], frame, seen) {
  if (depth === null || depth < 0) return;
  context.strokeStyle = context.fillStyle = colours.site;
  context.lineWidth = 1.1;
  for (const index of frame.positions.in_sight) {
    if (seen[index][2] === null) continue;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(seen[index][0], seen[index][1]);
    context.stroke();
  }
  context.beginPath();
  context.moveTo(x, y - 6);
  context.lineTo(x + 5.5, y + 4);
  context.lineTo(x - 5.5, y + 4);
  context.closePath();
  context.fill();
}

function paintSatellite(context, colours, frame, index, { x, y, depth, most, small, server, chosen }) {
  context.globalAlpha = depth < 0 ? 0.28 : 1;
  const radius = (server ? 4.6 : 3.1) * (small ? 0.6 : 1);
  if (frame.state[index] === SILENT) {
    context.strokeStyle = colours.lost;
    context.lineWidth = 1.8;
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(x - 3.5, y - 3.5 * side);
      context.lineTo(x + 3.5, y + 3.5 * side);
    }
    context.stroke();
  } else {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = fill(frame.chunks[index] / most) ?? colours.empty;
    context.fill();
    context.strokeStyle = server ? colours.server : colours.rim;
    context.lineWidth = server ? 1.8 : 0.8;
    context.stroke();
  }
  if (index === frame.centre || chosen) {
    context.strokeStyle = chosen ? colours.focus : colours.server;
    context.lineWidth = chosen ? 2.2 : 1.2;
    context.beginPath();
    context.arc(x, y, radius + (chosen ? 5.5 : 3.5), 0, 2 * Math.PI);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** Draws a path over the satellites, with a point that goes along. */
function paintMove(context, colours, look, from, to, phase) {
  const steps = 24;
  const points = Array.from({ length: steps + 1 }, (_, at) => {
    const share = at / steps;
    const radius = Math.hypot(...from) + 0.16 * Math.sin(Math.PI * share);
    const mixed = [0, 1, 2].map((axis) => (1 - share) * from[axis] + share * to[axis]);
    const length = Math.hypot(...mixed) || 1;
    return look(mixed.map((value) => (value / length) * radius));
  });
  context.strokeStyle = colours.arc;
  context.lineWidth = 2.4;
  context.lineCap = "round";
  context.beginPath();
  points.forEach(([x, y, depth], at) => (depth === null || at === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  context.stroke();
  const [x, y, depth] = points[phase === null ? steps : Math.floor(phase * steps)];
  if (depth === null) return;
  context.fillStyle = colours.arc;
  context.beginPath();
  context.arc(x, y, 3.4, 0, 2 * Math.PI);
  context.fill();
}
