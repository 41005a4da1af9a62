/**
 * Files that are read again when they change.
 *
 * Owns when they are looked at. Never lets go of what it has for something that cannot be read: a file may be half written.
 */

import { readFileSync, statSync } from "node:fs";

/** How often a file is looked at, at most. */
const LOOK_EVERY_MS = 1_000;

/** What is made of the text of files, and made anew when one of them has changed. */
export class WatchedFiles<T> {
  readonly #paths: readonly string[];
  readonly #make: (texts: readonly string[]) => T;
  #made: T;
  #stamps: string;
  #lookAt: number;

  /** Reads them. Throws what `make` throws, and where one cannot be read. */
  constructor(paths: readonly string[], make: (texts: readonly string[]) => T) {
    this.#paths = paths;
    this.#make = make;
    // Before they are read: what is written meanwhile is seen the next time.
    this.#stamps = stampsOf(paths);
    this.#made = make(paths.map((path) => readFileSync(path, "utf8")));
    this.#lookAt = performance.now() + LOOK_EVERY_MS;
  }

  /** What they are, at most a second ago; as they are `now` where that is said. */
  get(now = false): T {
    if (now || performance.now() >= this.#lookAt) {
      this.#look();
    }
    return this.#made;
  }

  #look(): void {
    this.#lookAt = performance.now() + LOOK_EVERY_MS;
    try {
      const stamps = stampsOf(this.#paths);
      if (stamps !== this.#stamps) {
        this.#made = this.#make(this.#paths.map((path) => readFileSync(path, "utf8")));
        this.#stamps = stamps;
      }
    } catch {
      // Half written, or away for a moment: what was read before stays in use, and the next look tries again.
    }
  }
}

/** What changes when a file does: it is written, or another one takes its place. */
function stampsOf(paths: readonly string[]): string {
  return paths
    .map((path) => {
      const { mtimeNs, size, ino } = statSync(path, { bigint: true });
      return `${mtimeNs}.${size}.${ino}`;
    })
    .join(" ");
}
