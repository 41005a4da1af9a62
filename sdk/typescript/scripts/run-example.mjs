// Runs example1.js of this directory against a node, with the package that is installed here, and compares what it prints.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { TestCluster } from "quorate/testing";

const cluster = await TestCluster.start();
try {
  const program = readFileSync("example1.js", "utf8").replace(
    /127\.0\.0\.1:7101(,127\.0\.0\.1:710[23])*/g,
    cluster.endpoints.join(","),
  );
  writeFileSync("example1.js", program);
  const ran = spawnSync(process.execPath, ["example1.js"], { encoding: "utf8", timeout: 30_000 });
  assert.equal(ran.status, 0, ran.stderr);
  assert.equal(ran.stdout, readFileSync("example1.txt", "utf8"));
  console.log("the first example of README.md runs with the package as it was packed");
} finally {
  await cluster.stop();
}
