/**
 * Waiting for one entry to change.
 *
 * Owns what counts as a change. The node waits where the key can stand in a path; where it cannot, a watch tells when to look again.
 */

import { etag, keyPath, readCall } from "./call.js";
import type { Caller } from "./caller.js";
import { get, readQuery } from "./entries.js";
import { RejectedError } from "./errors.js";
import { duration } from "./options.js";
import { after, anySignal } from "./timing.js";
import type { Cas, Entry, ReadOptions } from "./types.js";
import { WatchStream } from "./watch.js";

/** The token that no entry has. */
const NO_ENTRY: Cas = "0";
const WAIT_DEFAULT_MS = 30_000;

/** How a change is waited for. */
export interface WaitOptions extends ReadOptions {
  /** The token that is known; a change is anything else. Without it: until there is an entry. */
  readonly cas?: Cas | undefined;
  /** How long to wait, at most a minute. Default 30 s. */
  readonly waitMs?: number | undefined;
}

/** What became of an entry that was waited for. */
export type Change<T> =
  | { readonly type: "none" }
  | { readonly type: "entry"; readonly entry: Entry<T> }
  | { readonly type: "gone" };

/** Waits until the entry is something else than is known. */
export async function waitForChange<T>(
  caller: Caller,
  key: string,
  options: WaitOptions = {},
): Promise<Change<T>> {
  const waitMs = duration("waitMs", options.waitMs) ?? WAIT_DEFAULT_MS;
  const path = keyPath(key);
  if (path === undefined) {
    return watched<T>(caller, key, options, waitMs);
  }
  const call = readCall(path, { ...readQuery(options), wait_ms: waitMs }, options, {
    headers: { "if-none-match": etag(options.cas ?? NO_ENTRY) },
    holdMs: waitMs,
    about: { key },
    preference: caller.settings.reads,
  });
  try {
    const reply = await caller.send(call);
    return reply.status === 304
      ? { type: "none" }
      : { type: "entry", entry: caller.decode<Entry<T>>(call, reply) };
  } catch (error) {
    if (error instanceof RejectedError && error.code === "not_found") {
      return { type: "gone" };
    }
    throw error;
  }
}

/** What the entry is now, against what is known of it. */
async function looked<T>(caller: Caller, key: string, options: WaitOptions): Promise<Change<T>> {
  const { cas: known = NO_ENTRY, waitMs: _wait, ...read } = options;
  const entry = await get<T>(caller, key, read);
  if ((entry === undefined ? NO_ENTRY : entry.cas) === known) {
    return { type: "none" };
  }
  return entry === undefined ? { type: "gone" } : { type: "entry", entry };
}

/** Looks at the entry, and again after each change of it. */
async function watched<T>(
  caller: Caller,
  key: string,
  options: WaitOptions,
  waitMs: number,
): Promise<Change<T>> {
  const before = await looked<T>(caller, key, options);
  if (before.type !== "none") {
    return before;
  }
  const late = new AbortController();
  const { signal, release } = anySignal(options.signal, late.signal);
  const watch = new WatchStream<T>(caller, { key, signal });
  const timer = after(waitMs, () => late.abort());
  try {
    // Before the next look: what changes after that is seen.
    await watch.start();
    let change = await looked<T>(caller, key, options);
    while (change.type === "none") {
      // One without events only says how far the watch is.
      const { events } = await watch.next();
      change = events.length === 0 ? change : await looked<T>(caller, key, options);
    }
    return change;
  } catch (error) {
    if (late.signal.aborted && !options.signal?.aborted) {
      return { type: "none" };
    }
    throw error;
  } finally {
    timer.cancel();
    watch.close();
    release();
  }
}
