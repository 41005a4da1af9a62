// Runs example1.js, the first example of README.md, against a node, with the package that is installed where it stands, and compares what
// it prints: run-example.mjs [RUNTIME [ARGUMENT...]]. Without a runtime: in Node.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { TestCluster } from "quorate/testing";

const [runtime = process.execPath, ...args] = process.argv.slice(2);
const program = existsSync("example1.js") ? "example1.js" : "build/test/examples/example1.js";
const expected = existsSync("example1.txt") ? "example1.txt" : "test/examples/example1.txt";
const copy = program.replace("example1", "example1-here");

const cluster = await TestCluster.start();
try {
  const here = cluster.endpoints.join(",");
  writeFileSync(
    copy,
    readFileSync(program, "utf8").replace(/127\.0\.0\.1:7101(,127\.0\.0\.1:710[23])*/g, here),
  );
  const ran = spawnSync(runtime, [...args, copy], { encoding: "utf8", timeout: 30_000 });
  assert.equal(ran.status, 0, ran.stderr || String(ran.error));
  // Runtimes show objects in lines of their own.
  const flat = (text) => text.replace(/\s+/g, " ").replace(/, }/g, " }");
  assert.equal(flat(ran.stdout), flat(readFileSync(expected, "utf8")));
  console.log(`the first example of README.md runs in ${runtime}`);
} finally {
  rmSync(copy, { force: true });
  await cluster.stop();
}
