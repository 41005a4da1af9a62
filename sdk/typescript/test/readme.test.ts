/** Runs the examples of README.md, in their order, against one node. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TestCluster } from "../src/node/testing.js";
import { nodeProgram, PACKAGE, startCluster } from "./support.js";

const SOURCES = `${PACKAGE}test/examples/`;
const PROGRAMS = `${PACKAGE}build/test/examples/`;
const examples = readdirSync(SOURCES).filter((name) => name.endsWith(".ts")).length;

let cluster: TestCluster;
let home: string;
before(async () => {
  home = mkdtempSync(join(tmpdir(), "quorate-readme-"));
  cluster = await startCluster();
});
after(async () => {
  await cluster.stop();
  rmSync(home, { recursive: true });
});

/** What stands for this expected output. */
function pattern(expected: string): RegExp {
  const parts = expected.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

test("there are examples", () => assert.ok(examples > 0));

for (let number = 1; number <= examples; number += 1) {
  test(`example ${number} of README.md`, () => {
    const program = `${PROGRAMS}example${number}.js`;
    const copy = `${PROGRAMS}example${number}-tested.js`;
    const here = cluster.endpoints.join(",");
    const text = readFileSync(program, "utf8").replace(/127\.0\.0\.1:7101(,127\.0\.0\.1:710[23])*/g, here);
    writeFileSync(copy, text);
    const ran = spawnSync(process.execPath, [copy], {
      cwd: home,
      encoding: "utf8",
      timeout: 30_000,
      env: { ...process.env, QUORATE_ENDPOINTS: here, QUORATE_NODE: nodeProgram() },
    });
    assert.equal(ran.status, 0, ran.stderr);
    const output = `${SOURCES}example${number}.txt`;
    if (existsSync(output)) {
      assert.match(ran.stdout, pattern(readFileSync(output, "utf8")));
    }
  });
}
