/**
 * Single entries: read, written, locked. Waiting for one is `wait-for-change`'s.
 *
 * Owns the calls for one key; `ops` owns what an operation is.
 */

import { checkKey, keyPath, queryCall, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { checkOp, type Op } from "./ops.js";
import { duration } from "./options.js";
import type { Entry, ReadOptions, RequestOptions, WriteResult } from "./types.js";

/** How a lock of an entry is asked for. */
export interface EntryLockOptions extends RequestOptions {
  /** How long it holds: at most 30 s, and 15 s where nothing or more is said. */
  readonly lockMs?: number | undefined;
  /** How long to wait for it while somebody else has it, at most a minute. */
  readonly waitMs?: number | undefined;
}

/** The parameters of a read. */
export function readQuery(options: ReadOptions) {
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
  const extras = { preference: caller.settings.reads, about: { key } };
  if (path !== undefined) {
    return caller.find<Entry<T>>(readCall(path, readQuery(options), options, extras));
  }
  // An operation is always linearizable, and of now.
  return Object.values(readQuery(options)).every((said) => said === undefined)
    ? caller.find<Entry<T>>({ ...queryCall("/v1/ops", { op: "get", key }, options), ...extras })
    : listed<T>(caller, key, options, false);
}

/** An entry whose key is not for paths, as the only one of a range. */
async function listed<T>(
  caller: Caller,
  key: string,
  options: ReadOptions,
  keysOnly: boolean,
): Promise<Entry<T> | undefined> {
  const range = { start: key, end: `${key}\0`, keys_only: keysOnly || undefined };
  const call = readCall("/v1/kv", { ...range, ...readQuery(options) }, options, {
    preference: caller.settings.reads,
  });
  return (await caller.fetch<{ entries: Entry<T>[] }>(call)).entries[0];
}

/** Whether there is an entry; its value is not read. */
export async function exists(caller: Caller, key: string, options: ReadOptions = {}): Promise<boolean> {
  const path = keyPath(key);
  if (path === undefined) {
    return (await listed(caller, key, options, true)) !== undefined;
  }
  const call = readCall(path, readQuery(options), options, { preference: caller.settings.reads });
  return (await caller.send({ ...call, method: "HEAD" })).status !== 404;
}

/** Sends one operation. */
export async function write<Answer = WriteResult>(
  caller: Caller,
  op: Op,
  options: RequestOptions = {},
): Promise<Answer> {
  checkOp(op);
  checkKey(op.key);
  const holdMs = duration("waitMs", op.waitMs) ?? 0;
  return caller.fetch<Answer>(writeCall("POST", "/v1/ops", op, options, { holdMs, about: { key: op.key } }));
}
