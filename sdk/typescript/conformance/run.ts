/**
 * The runner of the suite that all clients share: `run [--quick] [FILE…]`.
 *
 * Prints a line for each file, `ok NAME ms` or `FAILED NAME: step n: why`, and exits 1 if any failed.
 */

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { SuiteCluster } from "./cluster.js";
import { check, missing, perform, type SuiteFile } from "./steps.js";

const SUITE = fileURLToPath(new URL("../../../conformance", import.meta.url));

const args = process.argv.slice(2);
const isQuick = args.includes("--quick");
const given = args.filter((arg) => !arg.startsWith("--")).map((file) => resolve(file));
const directory = given[0] === undefined ? SUITE : dirname(given[0]);
const files =
  given.length > 0
    ? given
    : readdirSync(SUITE)
        .filter((name) => name.endsWith(".yaml"))
        .sort()
        .map((name) => join(SUITE, name));

/** Whole numbers are floats where those hold them, as in the answers of the client. */
function small(_: unknown, value: unknown): unknown {
  return typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Whether the file is as it should be; says so. */
async function run(path: string, cluster: SuiteCluster): Promise<boolean> {
  const name = basename(path, ".yaml");
  const started = performance.now();
  try {
    const file = parse(readFileSync(path, "utf8"), small, { intAsBigInt: true }) as SuiteFile;
    check(file);
    if (isQuick && !file.quick) {
      return true;
    }
    const needed = missing(file);
    if (needed.length > 0) {
      console.log(`not tried ${name}: ${needed.join(", ")}`);
      return true;
    }
    await perform(file, cluster);
    console.log(`ok ${name} ${Math.round(performance.now() - started)}`);
    return true;
  } catch (error) {
    console.log(
      `FAILED ${name} ${Math.round(performance.now() - started)}: ${error instanceof Error ? error.message : String(error)}`,
    );
    return false;
  } finally {
    await cluster.fault("reset");
  }
}

const cluster = await SuiteCluster.start(join(directory, "cluster.py"));
let failed = 0;
try {
  for (const file of files) {
    failed += (await run(file, cluster)) ? 0 : 1;
  }
} finally {
  await cluster.stop();
}
process.exitCode = failed === 0 ? 0 : 1;
