// Bundles the page into the folder that the Python package serves it from, and says how large it is.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST_BYTES = 300 * 1024;
const folder = new URL("../generator/kubewright/tools/explore/page/", import.meta.url);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const { metafile } = await build({
  metafile: true,
  entryPoints: ["src/main.tsx", "src/style.css"],
  outdir: folder.pathname,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  define: { "process.env.NODE_ENV": '"production"' },
});
copyFileSync("src/index.html", new URL("index.html", folder));

// The licenses of what is in the bundle go with it.
const packages = new Set(
  Object.keys(metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
    .filter(Boolean),
);
const notices = [...packages].sort().map((name) => {
  const own = new URL(`node_modules/${name}/`, import.meta.url);
  const file = readdirSync(own).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no license file`);
  return `${name} ${JSON.parse(readFileSync(new URL("package.json", own))).version}\n\n${readFileSync(new URL(file, own), "utf8")}`;
});
let total = 0;
for (const name of readdirSync(folder)) total += gzipSync(readFileSync(new URL(name, folder))).length;
writeFileSync(new URL("LICENSES.txt", folder), notices.join("\n\n---\n\n"));
console.log(`the page: ${Math.round(total / 1024)} KB compressed`);
if (total > MOST_BYTES) {
  console.error(`it may have ${MOST_BYTES / 1024} KB`);
  process.exit(1);
}
