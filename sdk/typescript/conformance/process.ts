/** What a file does to this process: its standard error, and its wall clock. Owns that both are whole again after it. */

import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STDERR = 2;
/** Behind what is there already, where it is a file. */
const WRITES = constants.O_WRONLY | constants.O_APPEND;
const wallClock = Date.now;
/** Standard error as it was, once it is lost. */
let stderr: number | undefined;

/** Opens a file that takes the place of standard error: a process gets the lowest number that is free. */
function openInstead(path: string): void {
  closeSync(STDERR);
  const opened = openSync(path, WRITES);
  if (opened !== STDERR) {
    throw new Error(`standard error became ${opened}`);
  }
}

/** From now on standard error is a pipe that nobody reads. There is no `dup2` here, but files can be opened a second time (Linux). */
export function closeStderr(): void {
  const directory = mkdtempSync(join(tmpdir(), "quorate-stderr-"));
  try {
    const path = join(directory, "pipe");
    execFileSync("mkfifo", [path]);
    // Somebody has to read while it is opened to be written.
    const reads = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    stderr ??= openSync(`/proc/self/fd/${STDERR}`, WRITES);
    openInstead(path);
    closeSync(reads);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The wall clock is so far ahead from now on. */
export function wallAhead(ms: number): void {
  Date.now = () => wallClock() + ms;
}

/** Everything as it was. */
export function restoreProcess(): void {
  Date.now = wallClock;
  if (stderr !== undefined) {
    openInstead(`/proc/self/fd/${stderr}`);
    closeSync(stderr);
    stderr = undefined;
  }
}
