/**
 * Builds the console's front into src/tidelog/console/static. `--tests` builds the unit tests into .tests instead.
 * What is built depends on the sources and on package-lock.json alone, so that a rebuild can be compared.
 */

import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "..", "src", "tidelog", "console", "static");
/** Bytes of everything that a browser loads, compressed. */
const MOST = 120 * 1024;

const SHARED = { absWorkingDir: HERE, bundle: true, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", charset: "utf8" };

async function buildTests() {
  const files = (await readdir(join(HERE, "test"))).filter((name) => name.endsWith(".test.ts"));
  await rm(join(HERE, ".tests"), { recursive: true, force: true });
  await build({ ...SHARED, entryPoints: files.map((name) => join("test", name)), outdir: ".tests", outExtension: { ".js": ".mjs" }, format: "esm", platform: "node", target: "node20" });
}

async function buildFront() {
  await rm(join(OUT, "assets"), { recursive: true, force: true });
  await mkdir(join(OUT, "assets"), { recursive: true });
  const { metafile } = await build({
    ...SHARED,
    entryPoints: { app: "src/main.tsx", theme: "src/theme.ts" },
    entryNames: "[name]-[hash]",
    outdir: join(OUT, "assets"),
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    metafile: true,
  });
  const assets = Object.keys(metafile.outputs).map((path) => basename(path)).sort();
  const named = (pattern) => {
    const found = assets.filter((name) => pattern.test(name));
    if (found.length !== 1) throw new Error(`${found.length} files match ${pattern}`);
    return `assets/${found[0]}`;
  };
  let page = await readFile(join(HERE, "src", "index.html"), "utf8");
  for (const [mark, pattern] of [["%APP%", /^app-.*\.js$/], ["%STYLE%", /^app-.*\.css$/], ["%THEME%", /^theme-.*\.js$/]]) page = page.replace(mark, named(pattern));
  await writeFile(join(OUT, "index.html"), page);
  await writeFile(join(OUT, "favicon.svg"), await readFile(join(HERE, "src", "favicon.svg")));
  await writeFile(join(OUT, "licenses.txt"), await licenses());
  const sizes = await Promise.all(["index.html", "favicon.svg", ...assets.map((name) => join("assets", name))].map(async (name) => [name, await readFile(join(OUT, name))]));
  let total = 0;
  for (const [name, bytes] of sizes) {
    const packed = gzipSync(bytes, { level: 9 }).length;
    total += packed;
    console.log(`${String(bytes.length).padStart(8)} ${String(packed).padStart(8)} ${name}`);
  }
  console.log(`${total} bytes compressed, of ${MOST}`);
  await writeFile(join(HERE, "BUILT"), await hashes());
  if (total > MOST) throw new Error(`the front is ${total} bytes compressed, more than ${MOST}`);
}

/** Hashes of sources and built files, which tools/checks/front.py compares. */
async function hashes() {
  const root = join(HERE, "..");
  const inside = async (folder) => (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const single = ["build.mjs", "package.json", "package-lock.json"].map((name) => join(HERE, name));
  const files = [...single, ...(await inside(join(HERE, "src"))), ...(await inside(OUT))];
  const lines = await Promise.all(files.map(async (file) => `${createHash("sha256").update(await readFile(file)).digest("hex")}  ${relative(root, file)}\n`));
  return lines.sort((left, right) => (left.slice(66) < right.slice(66) ? -1 : 1)).join("");
}

/** The licences of what is bundled. */
async function licenses() {
  const { dependencies } = JSON.parse(await readFile(join(HERE, "package.json"), "utf8"));
  const parts = [];
  for (const [name, version] of Object.entries(dependencies).sort()) {
    const folder = join(HERE, "node_modules", name);
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    parts.push(`${name} ${version}\n\n${(await readFile(join(folder, file), "utf8")).trim()}\n`);
  }
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

await (process.argv.includes("--tests") ? buildTests() : buildFront());
