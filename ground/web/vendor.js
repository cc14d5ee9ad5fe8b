// The parts of packages and data that the page uses; esbuild leaves out the rest.
import { feature } from "topojson-client";
import land from "world-atlas/land-110m.json";

export { geoCircle, geoGraticule10, geoOrthographic, geoPath } from "d3-geo";
export { scaleLinear, scaleTime } from "d3-scale";
export { interpolateCividis } from "d3-scale-chromatic";
export { area, line } from "d3-shape";

/** Coastlines as GeoJSON: Natural Earth 1:110 million. */
export const coastlines = feature(land, land.objects.land);
