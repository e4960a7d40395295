// Bundles the page into the folder that the Python package serves it from, and says how large it is.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MOST_BYTES = 300 * 1024;
const folder = new URL("../generator/kubewright/tools/explore/page/", import.meta.url);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
await build({
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
let total = 0;
for (const name of readdirSync(folder)) total += gzipSync(readFileSync(new URL(name, folder))).length;
console.log(`the page: ${Math.round(total / 1024)} KB compressed`);
if (total > MOST_BYTES) {
  console.error(`it may have ${MOST_BYTES / 1024} KB`);
  process.exit(1);
}
