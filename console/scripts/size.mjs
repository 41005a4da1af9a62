/**
 * Checks how large the built console is, and that its page has no inline code.
 *
 * Usage: node scripts/size.mjs [DIRECTORY]
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** All files together, each compressed, as a node sends them. */
const LIMIT = 150 * 1024;

const directory = process.argv[2] ?? "dist";
const files = readdirSync(directory, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .sort();
let sum = 0;
for (const file of files) {
  const size = gzipSync(readFileSync(file), { level: 9 }).length;
  sum += size;
  console.log(`${String(size).padStart(8)}  ${file}`);
}
console.log(`${String(sum).padStart(8)}  bytes compressed, of ${LIMIT}`);
const page = readFileSync(join(directory, "index.html"), "utf8");
if (/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/i.test(page)) {
  console.error("size.mjs: index.html has inline code or style, which its own policy forbids");
  process.exit(1);
}
if (sum > LIMIT) {
  console.error(`size.mjs: the console is ${sum - LIMIT} bytes too large`);
  process.exit(1);
}
