/**
 * Many entries changed: in bulk, in a transaction, all that match, or claimed.
 *
 * Owns their options and answers, and that whatever is done to a claimed entry carries the key to its lock.
 */

import { requestIdOf, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { write } from "./entries.js";
import { InvalidArgumentError } from "./errors.js";
import type { JsonInput } from "./json.js";
import type { Camel } from "./names.js";
import { checkOp, type Op, op } from "./ops.js";
import { checkNarrowing, type NamesOf, REQUEST_NAMES, shownValue, timeToLive } from "./options.js";
import { fieldsOf } from "./queries.js";
import {
  type Cas,
  type Criteria,
  type Criterion,
  criteriaOf,
  type Entry,
  type GuardSource,
  guardOf,
  type Patch,
  type RequestOptions,
  type WriteOptions,
  type WriteResult,
} from "./types.js";
import type { Wire } from "./wire.js";

/** Most operations of a bulk. */
const BULK_OPS_MAX = 10_000;

/** How a bulk is done. */
export interface BulkOptions extends RequestOptions {
  /** Answer with the operations that failed only, and the counts. */
  readonly failuresOnly?: boolean | undefined;
  /** Say what would happen, write nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What one operation of a bulk came to. */
export interface BulkResult extends Omit<Camel<Wire["BulkResult"]>, "current" | "prev"> {
  /** The entry as it is, where the operation was refused for it. */
  readonly current?: Entry;
  /** The entry as it was before, where that was asked for. */
  readonly prev?: Entry;
}

/** What a bulk came to. */
export interface BulkAnswer extends Omit<Camel<Wire["BulkAnswer"]>, "results"> {
  /** What each operation came to. */
  readonly results: BulkResult[];
}

/** Makes a list of operations, each applied or refused on its own, in order. */
export async function bulk(caller: Caller, ops: readonly Op[], options: BulkOptions): Promise<BulkAnswer> {
  if (ops.length === 0 || ops.length > BULK_OPS_MAX) {
    throw new InvalidArgumentError(`a bulk has 1 to ${BULK_OPS_MAX} operations, not ${ops.length}`);
  }
  const body = { ops: ops.map(checkOp), dryRun: options.dryRun || undefined };
  const headers: Record<string, string> = options.failuresOnly ? { prefer: "return=minimal" } : {};
  return caller.fetch(writeCall("POST", "/v1/bulk", body, options, { headers }));
}

/** What has to hold of a key before a transaction does its `then`. */
export interface TxnCheck {
  /** Which key. */
  readonly key: string;
  /** Whether there is an entry. */
  readonly exists?: boolean | undefined;
  /** Which version it has. */
  readonly cas?: Cas | undefined;
  /** What holds of it. */
  readonly if?: readonly Criterion[] | undefined;
}

/** A transaction: if all checks hold the steps of `then`, otherwise those of `else`; all of them, or nothing. */
export interface Txn {
  /** What has to hold. */
  readonly if?: readonly TxnCheck[] | undefined;
  /** What is done where all of it holds. */
  readonly then?: readonly TxnStep[] | undefined;
  /** What is done where it does not. */
  readonly else?: readonly TxnStep[] | undefined;
}

/** A step of a transaction: an operation, or a transaction of its own. */
export type TxnStep = Op | ({ readonly op: "txn" } & Txn);

/** A check that did not hold. */
export interface TxnFailed extends Omit<Camel<Wire["TxnFailed"]>, "current"> {
  /** The entry as it is. */
  readonly current?: Entry;
}

/** What a step read. */
export interface TxnRead {
  /** What kind of step it was. */
  readonly op: "get";
  /** Which key. */
  readonly key: string;
  /** The entry, if there is one. */
  readonly entry: Entry | null;
}

/** What a step wrote. */
export interface TxnWritten extends Omit<Camel<Wire["TxnWritten"]>, "op" | "prev"> {
  /** What kind of step it was. */
  readonly op: Exclude<Wire["OpKind"], "get">;
  /** The entry as it was before, where that was asked for. */
  readonly prev?: Entry;
}

/** What a transaction in a transaction came to. */
export interface TxnBlockResult {
  /** What kind of step it was. */
  readonly op: "txn";
  /** Whether its checks held. */
  readonly succeeded: boolean;
  /** What each of its steps came to. */
  readonly results: TxnResult[];
  /** Its checks that did not hold. */
  readonly failed?: TxnFailed[];
}

/** What a step of a transaction came to. */
export type TxnResult = TxnRead | TxnWritten | TxnBlockResult;

/** What a transaction came to. */
export interface TxnAnswer extends Omit<Camel<Wire["TxnAnswer"]>, "results" | "failed"> {
  /** Whether the checks held. */
  readonly succeeded: boolean;
  /** What each step came to. */
  readonly results: TxnResult[];
  /** The checks that did not hold. */
  readonly failed?: TxnFailed[];
}

/** How a transaction is done. */
export interface TxnOptions extends RequestOptions {
  /** Say what would happen, write nothing. */
  readonly dryRun?: boolean | undefined;
}

/** Refuses steps that say what `op` would refuse, at any depth. */
function checkTxn(txn: Txn): Txn {
  for (const step of [...(txn.then ?? []), ...(txn.else ?? [])]) {
    if (step.op === "txn") {
      checkTxn(step);
    } else {
      checkOp(step);
    }
  }
  return txn;
}

/** Does one thing or another, all or nothing. */
export async function txn(caller: Caller, txn: Txn, options: TxnOptions): Promise<TxnAnswer> {
  const { if: checks, then, else: otherwise } = checkTxn(txn);
  const body = { if: checks, then, else: otherwise, dryRun: options.dryRun || undefined };
  return caller.fetch(writeCall("POST", "/v1/txn", body, options));
}

/** Which entries are changed, and on what terms. */
export interface WhereOptions extends RequestOptions {
  /** The keys that begin so. */
  readonly prefix: string;
  /** Which entries are meant. Without it, all with the prefix. */
  readonly where?: Criteria | undefined;
  /** What must hold of each of them; where it does not, it is skipped, counted and shown. */
  readonly if?: Criteria | undefined;
  /** Only while this holds its lock or leads its election. */
  readonly guard?: GuardSource | undefined;
  /** Most entries that one part changes, up to 1,000. */
  readonly limit?: number | undefined;
  /** Goes on where the part that ended with this cursor stopped. */
  readonly cursor?: string | undefined;
  /** Say what would happen, write nothing. */
  readonly dryRun?: boolean | undefined;
}

/** {@link WhereOptions} and what is changed. */
export interface UpdateWhereOptions extends WhereOptions {
  /** What is changed of each entry. */
  readonly patch: Patch;
  /** Time to live from the change on. */
  readonly ttlMs?: number | undefined;
}

/** What one part of a change came to. With a cursor there is more. */
export interface WhereAnswer extends Omit<Camel<Wire["WhereAnswer"]>, "results"> {
  /** What came of the entries that were skipped, or failed. */
  readonly results: BulkResult[];
}

const WHERE_NAMES: NamesOf<UpdateWhereOptions> = {
  ...REQUEST_NAMES,
  prefix: true,
  where: true,
  if: true,
  guard: true,
  limit: true,
  cursor: true,
  dryRun: true,
  patch: true,
  ttlMs: true,
};

/** Refuses what is not seen, or says nothing of the keys: it would be all of them. */
function checkWhere(options: WhereOptions | undefined): void {
  checkNarrowing(options ?? ({} as WhereOptions), WHERE_NAMES);
  checkPrefix(options?.prefix);
}

function checkPrefix(prefix: unknown): void {
  if (typeof prefix !== "string") {
    throw new InvalidArgumentError(`\`prefix\` is ${shownValue(prefix)}, and "" for all keys is to be said`);
  }
}

/** Patches, or without a patch deletes, the entries that match: one part, which is one step in the cluster. */
export async function changeWhere(
  caller: Caller,
  options: WhereOptions & Partial<UpdateWhereOptions>,
): Promise<WhereAnswer> {
  checkWhere(options);
  const { prefix, limit, cursor, patch } = options;
  const body = {
    prefix,
    where: criteriaOf(options.where) ?? [],
    if: criteriaOf(options.if),
    guard: guardOf(options.guard),
    limit,
    cursor,
    patch,
    ttlMs: timeToLive(options.ttlMs),
    dryRun: options.dryRun || undefined,
  };
  return caller.fetch(
    writeCall("POST", patch === undefined ? "/v1/delete_where" : "/v1/update_where", body, options),
  );
}

/**
 * All parts, made one by one as the loop asks for them. The first has the request id of the change, the others that and their number; so
 * the whole can be repeated under it.
 */
export async function* changeAllWhere(
  caller: Caller,
  options: WhereOptions & Partial<UpdateWhereOptions>,
): AsyncGenerator<WhereAnswer, void, undefined> {
  checkWhere(options);
  const id = requestIdOf(options);
  let cursor = options.cursor;
  for (let number = 0; ; number += 1) {
    const requestId = number === 0 ? id : `${id}-${number}`;
    const part = await changeWhere(caller, { ...options, cursor, requestId });
    yield part;
    if (part.cursor === undefined) {
      return;
    }
    cursor = part.cursor;
  }
}

/** What is claimed, and how. */
export interface ClaimOptions extends RequestOptions {
  /** The keys that begin so. */
  readonly prefix: string;
  /** What has to hold of the entries. */
  readonly where?: Criteria | undefined;
  /** Which come first: by these fields; `-` before a path for the greatest first. Without it, by key. */
  readonly orderBy?: string | readonly string[] | undefined;
  /** Most entries, up to 100. Default 1. */
  readonly limit?: number | undefined;
  /** How long the locks hold: at most 30 s, and 15 s where nothing or more is said. */
  readonly lockMs?: number | undefined;
  /** Changes each entry in the same step. */
  readonly patch?: Patch | undefined;
  /** Only while this holds its lock or leads its election. */
  readonly guard?: GuardSource | undefined;
  /** Say what would be claimed; lock and change nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What was claimed, in order; none where there was nothing. */
export interface ClaimAnswer<T = unknown> extends Omit<Camel<Wire["ClaimAnswer"]>, "entries" | "failed"> {
  /** What was claimed. */
  readonly entries: Claimed<T>[];
  /** Entries that matched, and that the patch does not fit. */
  readonly failed?: BulkResult[];
}

const CLAIM_NAMES: NamesOf<ClaimOptions> = {
  ...REQUEST_NAMES,
  prefix: true,
  where: true,
  orderBy: true,
  limit: true,
  lockMs: true,
  patch: true,
  guard: true,
  dryRun: true,
};

/** Finds entries that nobody has locked, and locks them, in one step. No two claims get the same entry while its lock holds. */
export async function claim<T>(caller: Caller, options: ClaimOptions): Promise<ClaimAnswer<T>> {
  checkNarrowing(options ?? ({} as ClaimOptions), CLAIM_NAMES);
  checkPrefix(options?.prefix);
  const { prefix, limit, lockMs, patch } = options;
  const body = {
    prefix,
    where: criteriaOf(options.where),
    orderBy: fieldsOf(options.orderBy),
    limit,
    lockMs,
    patch,
    guard: guardOf(options.guard),
    dryRun: options.dryRun || undefined,
  };
  type Answer = Omit<ClaimAnswer<T>, "entries"> & { entries: Entry<T>[] };
  const answer = await caller.fetch<Answer>(writeCall("POST", "/v1/claim", body, options));
  return { ...answer, entries: answer.entries.map((entry) => new Claimed(caller, entry)) };
}

/**
 * An entry that is locked for us. What is done to it is refused with `cas_mismatch`, `locked` or `not_lock_holder` once the lock has ended by
 * itself.
 */
export class Claimed<T = unknown> {
  /** The entry as it was claimed; its `cas` is the key to the lock. */
  readonly entry: Entry<T>;
  readonly #caller: Caller;

  /** Claimed entries come from `client.claim()`. */
  constructor(caller: Caller, entry: Entry<T>) {
    this.#caller = caller;
    this.entry = entry;
  }

  /** Which entry. */
  get key(): string {
    return this.entry.key;
  }

  /** Its value. */
  get value(): T {
    return this.entry.value;
  }

  /** The key to the lock. Throws where the entry was claimed in a dry run, which locks nothing. */
  get cas(): Cas {
    const { cas } = this.entry;
    if (cas === null) {
      throw new InvalidArgumentError(`\`${this.key}\` is not locked for us: it was claimed in a dry run`);
    }
    return cas;
  }

  /** Removes it: it is done with. */
  async complete(options: RequestOptions = {}): Promise<WriteResult<T>> {
    return write(this.#caller, op.remove(this.key, { cas: this.cas }), options);
  }

  /** Gives it back as it is, for others to claim. */
  async release(options: RequestOptions = {}): Promise<WriteResult<T>> {
    return write(this.#caller, op.unlock(this.key, this.cas), options);
  }

  /** Lets the lock hold for so long from now. */
  async extend(lockMs?: number, options: RequestOptions = {}): Promise<WriteResult<T>> {
    return write(this.#caller, op.extend(this.key, this.cas, lockMs), options);
  }

  /** Overwrites it, which ends the lock. */
  async replace(value: T, options: WriteOptions = {}): Promise<WriteResult<T>> {
    const replace = op.replace(this.key, value as JsonInput, { ...options, cas: this.cas });
    return write(this.#caller, replace, options);
  }

  /** Changes parts of it, which ends the lock. */
  async patch(patch: Patch, options: WriteOptions = {}): Promise<WriteResult<T>> {
    return write(this.#caller, op.patch(this.key, patch, { ...options, cas: this.cas }), options);
  }
}
