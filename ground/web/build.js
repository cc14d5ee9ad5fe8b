// Bundles the packages that the page uses into one module, and writes their licences. The only argument is the target folder.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2] ?? "vendor";
const { metafile } = await build({
  entryPoints: ["vendor.js"],
  outfile: join(folder, "d3.js"),
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  metafile: true,
});

// Only packages that are in the module; their licences ask for their text to go along.
const packages = new Set(Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
const licences = [...packages].sort().map((name) => {
  const at = join("node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const file = readdirSync(at).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}, ${license}\n\n${file ? readFileSync(join(at, file), "utf8").trim() : ""}\n`;
});
writeFileSync(join(folder, "LICENSES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));
