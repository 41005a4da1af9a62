/**
 * Optimistic update: read, decide, write on the token that was read, again while someone else was faster.
 *
 * Owns the loop and its bound. A refused try brings the entry as it is along, so the next try costs one round trip.
 */

import type { Caller } from "./caller.js";
import { get, write } from "./entries.js";
import { ContendedError, type Problem, type QuorateError, RejectedError, refusal } from "./errors.js";
import type { JsonInput } from "./json.js";
import { op } from "./ops.js";
import { checkOptions, timeToLive } from "./options.js";
import { sleep } from "./timing.js";
import type { Entry, GuardSource, RequestOptions, SessionSource, WriteResult } from "./types.js";

/** Tries of one update. Rivals that are nearer to the leader win more often, so that the unluckiest may take hundreds. */
const TRIES_MAX = 1_024;
/** So many further tries follow at once: mostly there are few rivals, and what a refusal showed is never as fresh again. */
const AT_ONCE = 8;
/**
 * Then there are pauses, so that the crowd spreads; but who lost so often tries at once again, until it wins. Its rivals are mostly
 * fresher: who pauses and reads while they do not would lose to them for ever.
 */
const PATIENT = 48;
/** Pauses are random up to this. */
const PAUSE_MAX_MS = 16;

/** How an update is done. */
export interface UpdateOptions extends Omit<RequestOptions, "requestId"> {
  /** Most tries. Default 1,024. */
  readonly tries?: number | undefined;
  /** Time to live from the write on instead of what the entry has left. */
  readonly ttlMs?: number | undefined;
  /** The session that the entry goes with from now on instead of the one that it has. */
  readonly session?: SessionSource | undefined;
  /** Only while this holds its lock or leads its election; fails with `guard_failed`. */
  readonly guard?: GuardSource | undefined;
}

/** What an update did. */
export type Updated<T> =
  | {
      readonly written: true;
      /** What it wrote. */
      readonly value: T;
      /** The answer to the write. */
      readonly result: WriteResult<T>;
      /** How many tries that took. */
      readonly tries: number;
    }
  | {
      /** The function returned `undefined`: the entry is as it was. */
      readonly written: false;
      readonly value: T | undefined;
    };

/** What makes the new value of the old one. */
export type ChangeOf<T> = (
  value: T | undefined,
  entry: Entry<T> | undefined,
) => T | undefined | Promise<T | undefined>;

/** The write of this value in place of what was read. The entry keeps its session and the time it has left to live. */
function writeOf<T>(
  caller: Caller,
  key: string,
  value: T,
  current: Entry<T> | undefined,
  options: UpdateOptions,
) {
  const { ttlMs, session, guard } = options;
  if (current === undefined) {
    const put = op.insert(key, value as JsonInput, { ttlMs, session, guard });
    return write<WriteResult<T>>(caller, put, options);
  }
  if (current.cas === null) {
    throw locked(current);
  }
  const put = op.replace(key, value as JsonInput, {
    cas: current.cas,
    // The time that was left when it was read would be given anew by each update, and the entry would never expire.
    ...(ttlMs === undefined ? { ttl: "keep" as const } : { ttlMs }),
    session: session ?? current.session,
    guard,
  });
  return write<WriteResult<T>>(caller, put, options);
}

function locked(current: Entry): QuorateError {
  const left = current.lockMs === undefined ? "" : ` for ${current.lockMs} ms`;
  return refusal("locked", `\`${current.key}\` is locked by somebody else${left}`, current);
}

/** Whether the entry changed between read and write. */
function lostTheRace(error: unknown): error is RejectedError {
  const codes: unknown[] = ["cas_mismatch", "already_exists", "not_found"];
  return error instanceof RejectedError && codes.includes(error.code) && error.errors.length === 0;
}

/** How long to wait after so many tries; `undefined` for not at all. */
export function pauseAfter(tries: number, roll: number): number | undefined {
  const later = tries - (AT_ONCE + 1);
  return later < 0 || tries > PATIENT
    ? undefined
    : Math.min(2 * 2 ** Math.min(later, 10), PAUSE_MAX_MS) * roll;
}

/** The entry from the refusal, or `null` where that does not carry it. */
function shown<T>(problem: Problem | undefined): Entry<T> | null {
  const current = problem?.current as Entry<T> | undefined;
  return current === undefined || current.value === undefined ? null : current;
}

/** One try: what it wrote, or the refusal of a try that lost the race. */
async function attempt<T>(
  write: () => Promise<WriteResult<T>>,
): Promise<{ result: WriteResult<T> } | { lost: RejectedError }> {
  try {
    return { result: await write() };
  } catch (error) {
    if (lostTheRace(error)) {
      return { lost: error };
    }
    throw error;
  }
}

/** Replaces the entry's value by what `change` makes of it. */
export async function update<T>(
  caller: Caller,
  key: string,
  change: ChangeOf<T>,
  options: UpdateOptions = {},
): Promise<Updated<T>> {
  checkOptions(options);
  timeToLive(options.ttlMs);
  const { timeoutMs, signal } = options;
  const triesMax = Math.max(1, options.tries ?? TRIES_MAX);
  const read = () => get<T>(caller, key, { timeoutMs, signal });
  let current = await read();
  for (let tries = 1; ; tries += 1) {
    const value = await change(current?.value, current);
    if (value === undefined) {
      return { written: false, value: current?.value };
    }
    const before = current;
    const tried = await attempt(async () => writeOf(caller, key, value, before, options));
    if ("result" in tried) {
      return { written: true, value, result: tried.result, tries };
    }
    if (tries >= triesMax) {
      throw new ContendedError(key, tries, tried.lost);
    }
    current = await next(tried.lost, pauseAfter(tries, Math.random()), read, signal);
  }
}

/** The entry as it is for the next try. What the refusal showed has aged after a pause: a try on it would lose to who has just read. */
async function next<T>(
  lost: RejectedError,
  pauseMs: number | undefined,
  read: () => Promise<Entry<T> | undefined>,
  signal: AbortSignal | undefined,
): Promise<Entry<T> | undefined> {
  if (pauseMs === undefined) {
    return shown<T>(lost.problem) ?? (await read());
  }
  await sleep(pauseMs, signal);
  return read();
}
