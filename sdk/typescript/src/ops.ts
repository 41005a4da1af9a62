/**
 * Operations on one entry, as they stand alone, in a bulk, or in a transaction.
 *
 * Owns what an operation is made of, and which conditions make another kind of it. Sends nothing.
 */

import { InvalidArgumentError } from "./errors.js";
import type { JsonInput, Storable } from "./json.js";
import { checkNarrowing, type NamesOf, REQUEST_NAMES, timeToLive } from "./options.js";
import {
  type Cas,
  type ConditionOptions,
  type Criterion,
  criteriaOf,
  type Guard,
  guardOf,
  type Patch,
  type PutOptions,
  sessionOf,
  type WriteOptions,
} from "./types.js";
import type { Wire } from "./wire.js";

/** What is done to which key, and under which conditions. Made by {@link op}, or by hand. */
export interface Op {
  /** What is done. */
  readonly op: Wire["OpKind"];
  /** To which key. */
  readonly key: string;
  /** The value to write: JSON or a `Uint8Array`. */
  readonly value?: JsonInput | Uint8Array | undefined;
  /** What an update changes. */
  readonly patch?: Patch | undefined;
  /** Only while the entry has this token. */
  readonly cas?: Cas | undefined;
  /** Only while all of this holds of the entry. */
  readonly if?: readonly Criterion[] | undefined;
  /** Only while this token holds its lock or leads its election. */
  readonly guard?: Guard | undefined;
  /** Time to live; without it for ever, and 0, for ever, only for `touch`. */
  readonly ttlMs?: number | undefined;
  /** The entry expires when it would have without this write (upsert, replace, update); not beside `ttlMs`. */
  readonly ttl?: "keep" | undefined;
  /** How long a lock holds. */
  readonly lockMs?: number | undefined;
  /** How long to wait for a lock. Only for an operation that stands alone. */
  readonly waitMs?: number | undefined;
  /** The id of the session that the entry goes with. */
  readonly session?: string | undefined;
  /** Answer with the entry as it was before. */
  readonly prev?: boolean | undefined;
  /** Say what would happen, write nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What an operation says of the conditions under which it is done. */
function conditions(options: ConditionOptions) {
  const { cas, guard, prev, dryRun } = options;
  return {
    cas,
    if: criteriaOf(options.if),
    guard: guardOf(guard),
    prev: prev || undefined,
    dryRun: dryRun || undefined,
  };
}

function writing(options: WriteOptions) {
  const { ttl, ttlMs, session } = options;
  return {
    ...conditions(options),
    ttlMs: timeToLive(ttlMs),
    ttl: kept(ttl, ttlMs),
    session: sessionOf(session),
  };
}

/** Refuses a time in the place of `keep`. */
function kept(ttl: "keep" | undefined, ttlMs: number | undefined): "keep" | undefined {
  if (ttl !== undefined && (ttl !== "keep" || ttlMs !== undefined)) {
    throw new InvalidArgumentError(
      `\`ttl\` is "keep", and stands alone: a time is \`ttlMs\`, in milliseconds`,
    );
  }
  return ttl;
}

function stored(value: unknown): JsonInput | Uint8Array {
  if (value === undefined) {
    throw new InvalidArgumentError("a value is JSON or a Uint8Array, and undefined is neither");
  }
  // What is in it is looked at when it becomes text.
  return value as JsonInput | Uint8Array;
}

const CONDITION_NAMES: NamesOf<ConditionOptions> = {
  ...REQUEST_NAMES,
  cas: true,
  if: true,
  guard: true,
  prev: true,
  dryRun: true,
};
const WRITE_NAMES: NamesOf<WriteOptions> = { ...CONDITION_NAMES, ttlMs: true, ttl: true, session: true };
const PUT_NAMES: NamesOf<PutOptions> = { ...WRITE_NAMES, ifAbsent: true, ifPresent: true };

/** Refuses options of a write that are none: a condition that is not seen is a write without it. */
function checkWrite<Options extends object>(options: Options, names: NamesOf<Options>): Options {
  checkNarrowing(options, names, (given) => `{ cas: ${JSON.stringify(given)} }`);
  return options;
}

/** Refuses an operation made by hand that says what {@link op} would refuse. */
export function checkOp<Step extends { readonly op: string }>(step: Step): Step {
  if (WRITING.includes(step.op)) {
    const { ttl, ttlMs } = step as Pick<Op, "ttl" | "ttlMs">;
    kept(ttl, timeToLive(ttlMs));
  }
  return step;
}

const WRITING: readonly string[] = ["insert", "upsert", "replace", "update"] satisfies Op["op"][];

/** Which kind of operation a put with these conditions is. */
function putKind({ cas, ifAbsent, ifPresent }: PutOptions): Op["op"] {
  if (ifAbsent) {
    if (cas !== undefined || ifPresent) {
      throw new InvalidArgumentError("`ifAbsent` goes with neither `cas` nor `ifPresent`");
    }
    return "insert";
  }
  return cas !== undefined || ifPresent ? "replace" : "upsert";
}

/**
 * Operations for bulks and transactions.
 *
 * ```ts
 * await client.bulk([op.put("a", 1), op.remove("b")]);
 * ```
 */
export const op = {
  /** Reads an entry. For transactions and streams. */
  get: (key: string): Op => ({ op: "get", key }),
  /** Creates or overwrites; with `cas`, `ifAbsent` or `ifPresent` only then. */
  put: <T>(key: string, value: T & Storable<T>, options: PutOptions = {}): Op => ({
    op: putKind(checkWrite(options, PUT_NAMES)),
    key,
    value: stored(value),
    ...writing(options),
  }),
  /** Creates; a bulk skips it where there is an entry, a transaction is refused. */
  insert: <T>(key: string, value: T & Storable<T>, options: WriteOptions = {}): Op => ({
    op: "insert",
    key,
    value: stored(value),
    ...writing(checkWrite(options, WRITE_NAMES)),
  }),
  /** Overwrites; fails with `not_found`. */
  replace: <T>(key: string, value: T & Storable<T>, options: WriteOptions = {}): Op => ({
    op: "replace",
    key,
    value: stored(value),
    ...writing(checkWrite(options, WRITE_NAMES)),
  }),
  /** Changes parts of a document. */
  patch: (key: string, patch: Patch, options: WriteOptions = {}): Op => ({
    op: "update",
    key,
    patch,
    ...writing(checkWrite(options, WRITE_NAMES)),
  }),
  /** Deletes; fails with `not_found`. */
  remove: (key: string, options: ConditionOptions = {}): Op => ({
    op: "remove",
    key,
    ...conditions(checkWrite(options, CONDITION_NAMES)),
  }),
  /** Sets the time to live from now, 0 for ever, and changes nothing else. */
  touch: (key: string, ttlMs: number, options: ConditionOptions = {}): Op => ({
    op: "touch",
    key,
    ...conditions(checkWrite(options, CONDITION_NAMES)),
    ttlMs,
  }),
  /** Locks an entry. */
  lock: (key: string, lockMs?: number, options: ConditionOptions = {}): Op => ({
    op: "lock",
    key,
    ...conditions(checkWrite(options, CONDITION_NAMES)),
    lockMs,
  }),
  /** Lets a lock hold for so long from now; `cas` is its key. */
  extend: (key: string, cas: Cas, lockMs?: number): Op => ({ op: "extend", key, cas, lockMs }),
  /** Ends a lock; `cas` is its key. */
  unlock: (key: string, cas: Cas): Op => ({ op: "unlock", key, cas }),
} as const;
