// Satellites as vectors from the earth's centre, in earth radii, and where they are between two instants.

export const EARTH_KM = 6371;
const RAD = Math.PI / 180;

export function vector(longitude, latitude, radius = 1) {
  const flat = radius * Math.cos(latitude * RAD);
  return [flat * Math.cos(longitude * RAD), flat * Math.sin(longitude * RAD), radius * Math.sin(latitude * RAD)];
}

/** Reads `positions` of a frame: start and end of each satellite's way. */
export function orbits(positions) {
  const found = [];
  for (let at = 0; at * 3 < positions.now.length; at += 1) {
    const radius = 1 + positions.now[3 * at + 2] / EARTH_KM;
    found.push({
      from: vector(positions.now[3 * at], positions.now[3 * at + 1], radius),
      to: vector(positions.ahead[2 * at], positions.ahead[2 * at + 1], radius),
    });
  }
  return found;
}

/** Returns a vector on the great circle between two vectors of one length; shares beyond 1 go on behind the second. */
export function between({ from, to }, share) {
  const square = from[0] ** 2 + from[1] ** 2 + from[2] ** 2;
  const cosine = Math.min(1, Math.max(-1, (from[0] * to[0] + from[1] * to[1] + from[2] * to[2]) / square));
  const angle = Math.acos(cosine);
  if (angle < 1e-6) return from;
  const a = Math.sin((1 - share) * angle) / Math.sin(angle);
  const b = Math.sin(share * angle) / Math.sin(angle);
  return [0, 1, 2].map((axis) => a * from[axis] + b * to[axis]);
}

const DAY_MS = 86_164_090; // the earth's turn against the stars
const STEPS = 120;

/**
 * Returns one orbit of a satellite over the earth, half of it before and half after now, as [longitude, latitude] in degrees.
 *
 * The orbit is taken as a circle, below which the earth turns.
 *
 * @param {number} ahead_ms  time between the two ends of its way
 */
export function track({ from, to }, ahead_ms) {
  const turned = (2 * Math.PI * ahead_ms) / DAY_MS;
  // Where the second end is without the turn of the earth
  const end = [to[0] * Math.cos(turned) - to[1] * Math.sin(turned), to[0] * Math.sin(turned) + to[1] * Math.cos(turned), to[2]];
  const radius = Math.hypot(...from);
  const cosine = (from[0] * end[0] + from[1] * end[1] + from[2] * end[2]) / (radius * Math.hypot(...end));
  const angle = Math.acos(Math.min(1, Math.max(-1, cosine)));
  if (angle < 1e-6) return [];
  const period_ms = (2 * Math.PI * ahead_ms) / angle;
  return Array.from({ length: STEPS + 1 }, (_, at) => {
    const share = at / STEPS - 0.5;
    const [a, b] = [Math.sin((1 - (share * period_ms) / ahead_ms) * angle) / Math.sin(angle), Math.sin(((share * period_ms) / ahead_ms) * angle) / Math.sin(angle)];
    const [x, y, z] = [0, 1, 2].map((axis) => a * from[axis] + b * end[axis]);
    const longitude = Math.atan2(y, x) / RAD - (360 * share * period_ms) / DAY_MS;
    return [((((longitude % 360) + 540) % 360) - 180), Math.asin(z / Math.hypot(x, y, z)) / RAD];
  });
}

/** Returns the geographic longitude and latitude above which the sun stands at a Unix time, to half a degree. */
export function subsolar(unix_ms) {
  const days = unix_ms / 86_400_000 - 10957.5;
  const anomaly = (357.529 + 0.98560028 * days) * RAD;
  const longitude = (280.459 + 0.98564736 * days + 1.915 * Math.sin(anomaly) + 0.02 * Math.sin(2 * anomaly)) * RAD;
  const tilt = 23.439 * RAD;
  const ascension = Math.atan2(Math.cos(tilt) * Math.sin(longitude), Math.cos(longitude)) / RAD;
  const sidereal = 280.46061837 + 360.98564737 * days;
  return [((((ascension - sidereal) % 360) + 540) % 360) - 180, Math.asin(Math.sin(tilt) * Math.sin(longitude)) / RAD];
}

/** Returns how far from the site, in degrees of arc, a satellite may stand and still be seen above an elevation. */
export function horizon(altitude_km, min_elevation_deg) {
  const elevation = min_elevation_deg * RAD;
  return Math.acos(Math.cos(elevation) / (1 + altitude_km / EARTH_KM)) / RAD - min_elevation_deg;
}
