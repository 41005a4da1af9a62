/**
 * Single entries: read, written, locked, waited for.
 *
 * Owns the calls for one key; `ops` owns what an operation is.
 */

import { etag, keyPath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { InvalidArgumentError, RejectedError } from "./errors.js";
import type { Op } from "./ops.js";
import type { Cas, Entry, ReadOptions, RequestOptions, WriteResult } from "./types.js";

/** The token that no entry has. */
const NO_ENTRY: Cas = "0";

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

/** How a lock of an entry is asked for. */
export interface EntryLockOptions extends RequestOptions {
  /** How long it holds: at most 30 s, and 15 s where nothing or more is said. */
  readonly lockMs?: number | undefined;
  /** How long to wait for it while somebody else has it, at most a minute. */
  readonly waitMs?: number | undefined;
}

function readQuery(options: ReadOptions) {
  const { consistency, minRevision, revision } = options;
  return { consistency, min_revision: minRevision, revision };
}

/** The entry, if there is one. */
export async function get<T>(
  caller: Caller,
  key: string,
  options: ReadOptions = {},
): Promise<Entry<T> | undefined> {
  const path = keyPath(key);
  if (path === undefined) {
    return getDots<T>(caller, key, options);
  }
  const call = readCall(path, readQuery(options), options, { preference: caller.settings.reads });
  return caller.find<Entry<T>>(call);
}

/** A key of dots alone has no path: it is listed. */
async function getDots<T>(caller: Caller, key: string, options: ReadOptions): Promise<Entry<T> | undefined> {
  const query = { start: key, end: `${key}\0`, ...readQuery(options) };
  const page = await caller.fetch<{ entries: Entry<T>[] }>(readCall("/v1/kv", query, options));
  return page.entries[0];
}

/** Whether there is an entry; its value is not read. */
export async function exists(caller: Caller, key: string, options: ReadOptions = {}): Promise<boolean> {
  const path = keyPath(key);
  if (path === undefined) {
    return (await getDots(caller, key, options)) !== undefined;
  }
  const call = readCall(path, readQuery(options), options, { preference: caller.settings.reads });
  return (await caller.send({ ...call, method: "HEAD" })).status !== 404;
}

/** Waits until the entry is something else than is known. */
export async function waitForChange<T>(
  caller: Caller,
  key: string,
  options: WaitOptions = {},
): Promise<Change<T>> {
  const path = keyPath(key);
  if (path === undefined) {
    throw new InvalidArgumentError(`a key of dots alone cannot be waited for: ${JSON.stringify(key)}`);
  }
  const waitMs = options.waitMs ?? 30_000;
  const call = readCall(path, { ...readQuery(options), wait_ms: waitMs }, options, {
    headers: { "if-none-match": etag(options.cas ?? NO_ENTRY) },
    holdMs: waitMs,
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

/** Sends one operation. */
export async function write<Answer = WriteResult>(
  caller: Caller,
  op: Op,
  options: RequestOptions = {},
): Promise<Answer> {
  if (op.key === "") {
    throw new InvalidArgumentError("a key has at least one character");
  }
  const extras = op.waitMs === undefined ? {} : { holdMs: op.waitMs };
  return caller.fetch<Answer>(writeCall("POST", "/v1/ops", op, options, extras));
}
