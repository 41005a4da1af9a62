/**
 * The types that callers see most: entries, conditions, guards, the options of every call.
 *
 * Owns their shape. What stands in answers is taken from the types of the wire, so that a change of the API shows up here.
 */

import type { JsonInput, RawJson } from "./json.js";
import type { Camel } from "./names.js";
import type { Wire } from "./wire.js";

/** A point in the history of the cluster: a 64-bit number as a decimal string, never a float. See {@link compareRevisions}. */
export type Revision = string;
/** The token of an entry's version: a decimal string, to be taken as it is. */
export type Cas = string;
/** A fencing token of a lock, or a term of an election: a decimal string that only grows. See {@link compareRevisions}. */
export type Token = string;

/** Which of two revisions, or of two tokens, is greater: below 0, 0, above 0, as a sort wants it. */
export function compareRevisions(one: Revision, other: Revision): number {
  const difference = BigInt(one) - BigInt(other);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}

/** An entry as it is, or was. */
export interface Entry<T = unknown> {
  /** Its key. One that is no text has a lone surrogate for each byte that is none: see {@link bytesOfKey}. */
  readonly key: string;
  /** What is stored; a `Uint8Array` where {@link contentType} is `bytes`, `undefined` where only keys were asked for. */
  readonly value: T;
  /** Whether it is JSON or bytes. */
  readonly contentType: Wire["ContentType"];
  /** The token of this version; `null` while somebody has the entry locked. */
  readonly cas: Cas | null;
  /** The revision that created it. */
  readonly createRevision: Revision;
  /** The revision of its last change. */
  readonly modRevision: Revision;
  /** Writes since it was created. */
  readonly version: number;
  /** Whether somebody has it locked. */
  readonly locked?: boolean;
  /** How long that lock holds. */
  readonly lockMs?: number;
  /** How many bytes the value has as it is stored, where a list was asked for `sizes`. */
  readonly valueBytes?: number;
  /** The session that it goes with. */
  readonly session?: string;
  /** How long it lives. */
  readonly ttlMs?: number;
  /** The revision at which this is true, where it is an answer of its own. */
  readonly revision?: Revision;
  /** The log position of the answer. */
  readonly index?: number;
  /** Whether nothing was done, since that was asked for. */
  readonly dryRun?: boolean;
  /** Whether an earlier try under the same request id had done it. */
  readonly replayed?: boolean;
}

/** What a write came to. */
export interface WriteResult<T = unknown> {
  /** Which key. */
  readonly key: string;
  /** The revision of the write. */
  readonly revision: Revision;
  /** The token of the version written; absent where nothing is there any more. */
  readonly cas?: Cas;
  /** The revision that created the entry. */
  readonly createRevision?: Revision;
  /** Writes since it was created. */
  readonly version?: number;
  /** How long it lives. */
  readonly ttlMs?: number;
  /** How long the lock holds that was asked for. */
  readonly lockMs?: number;
  /** The entry as it was before, where that was asked for. */
  readonly prev?: Entry<T>;
  /** Whether nothing was written, since that was asked for. */
  readonly dryRun?: boolean;
  /** Whether an earlier try under the same request id had done it. */
  readonly replayed?: boolean;
  /** The log position of the write. */
  readonly index: number;
}

/** How a field is compared. */
export type Operator = Wire["Operator"];

/** What has to hold of an entry: one comparison, or several of them. `value` may be `{ now: true }`, the time of the write. */
export type Criterion =
  | { readonly field: string; readonly op: Operator; readonly value?: unknown }
  | { readonly any: readonly Criterion[] }
  | { readonly all: readonly Criterion[] }
  | { readonly not: Criterion };

/** One criterion, or several that must all hold. */
export type Criteria = Criterion | readonly Criterion[];

/** A fence: a write that names it is applied only while the token holds the lock, or leads the election. */
export type Guard =
  | { readonly lock: string; readonly token: Token }
  | { readonly election: string; readonly token: Token };

/** A guard, or what has one: a `Lock`, a `Leadership`. */
export type GuardSource = Guard | { readonly guard: Guard };

/** A session, or its id. */
export type SessionSource = string | { readonly id: string };

/**
 * A part of an update: RFC 7396 merge patch, a list of operators (`inc set unset append max min now`), or an RFC 6902 JSON Patch; or one of
 * them as its text.
 */
export type Patch = Readonly<Record<string, JsonInput>> | readonly PatchStep[] | RawJson;

/** A step of a patch. */
export interface PatchStep {
  /** What is done. */
  readonly op: string;
  /** To which field: a dotted path, or a JSON pointer. */
  readonly path: string;
  /** With what. */
  readonly value?: JsonInput;
  /** From which field, for a move or a copy. */
  readonly from?: string;
}

/** What every call takes. */
export interface CallOptions {
  /** Deadline of the call, retries included, instead of the client's own. */
  readonly timeoutMs?: number | undefined;
  /** Gives the call up: it rejects with the reason of the signal. A write may have been applied by then. */
  readonly signal?: AbortSignal | undefined;
}

/** What every write takes. */
export interface RequestOptions extends CallOptions {
  /** An id of one's own instead of a random one: the same write under the same id is applied once. */
  readonly requestId?: string | undefined;
}

/** How a read may be answered. */
export interface ReadOptions extends CallOptions {
  /** `local` takes whatever the node has, maybe stale; the default sees every write acknowledged before. */
  readonly consistency?: Wire["ReadConsistency"] | undefined;
  /** Only by a node that has come to this revision. */
  readonly minRevision?: Revision | undefined;
  /** As it was at this revision. */
  readonly revision?: Revision | undefined;
}

/** Conditions of a write. */
export interface ConditionOptions extends RequestOptions {
  /** Only while the entry has this token. */
  readonly cas?: Cas | undefined;
  /** Only while this holds of the entry. */
  readonly if?: Criteria | undefined;
  /** Only while this holds its lock or leads its election. */
  readonly guard?: GuardSource | undefined;
  /** Answer with the entry as it was before. */
  readonly prev?: boolean | undefined;
  /** Say what would happen, write nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What a write of a value takes. */
export interface WriteOptions extends ConditionOptions {
  /** Time to live; without it, for ever. */
  readonly ttlMs?: number | undefined;
  /** The entry expires when it would have without this write. Not beside `ttlMs`, and not where an entry is created only. */
  readonly ttl?: "keep" | undefined;
  /** The entry goes with this session: it is removed when that ends. */
  readonly session?: SessionSource | undefined;
}

/** What `put` takes. */
export interface PutOptions extends WriteOptions {
  /** Only if there is no entry. */
  readonly ifAbsent?: boolean | undefined;
  /** Only if there is one. */
  readonly ifPresent?: boolean | undefined;
}

/** The guard of this, as the wire has it. */
export function guardOf(source: GuardSource | undefined): Guard | undefined {
  return source !== undefined && "guard" in source ? source.guard : source;
}

/** The id of this session. */
export function sessionOf(source: SessionSource | undefined): string | undefined {
  return typeof source === "object" ? source.id : source;
}

/** These criteria as a list. */
export function criteriaOf(criteria: Criteria | undefined): readonly Criterion[] | undefined {
  if (criteria === undefined) {
    return undefined;
  }
  return Array.isArray(criteria) ? (criteria as readonly Criterion[]) : [criteria as Criterion];
}

/** What a lock says of a holder. */
export type LockHolder = Camel<Wire["LockHolder"]>;
/** What a lock or an election says of who waits. */
export type LockWaiter = Camel<Wire["LockWaiter"]>;
/** Who holds a lock, and who waits for it. */
export type LockInfo = Camel<Wire["LockAnswer"]>;
/** A lock in a list. */
export type LockSummary = Camel<Wire["LockSummary"]>;
/** Whether a token holds its lock. */
export type LockCheck = Camel<Wire["CheckAnswer"]>;
/** What a release came to. */
export type Released = Camel<Wire["ReleaseAnswer"]>;
/** Who leads an election, and who stands. */
export type ElectionInfo = Camel<Wire["ElectionAnswer"]>;
/** An election in a list. */
export type ElectionSummary = Camel<Wire["ElectionSummary"]>;
/** Who leads. */
export type Leader = Camel<Wire["LeaderView"]>;
/** What a proclamation came to. */
export type Proclaimed = Camel<Wire["ProclaimAnswer"]>;
/** What a resignation came to. */
export type Resigned = Camel<Wire["ResignAnswer"]>;
/** A session as others see it. */
export type SessionInfo = Camel<Wire["SessionView"]>;
/** A session that was created. */
export type SessionCreated = Camel<Wire["SessionAnswer"]>;
/** A session that was renewed by its id. */
export type SessionRenewed = Camel<Wire["RenewedAnswer"]>;
/** A session that was ended. */
export type SessionEnded = Camel<Wire["SessionEnded"]>;
/** A barrier as it is. */
export type BarrierInfo = Camel<Wire["BarrierAnswer"]>;
/** A latch as it is. */
export type LatchInfo = Camel<Wire["LatchAnswer"]>;
/** A latch that was removed. */
export type LatchRemoved = Camel<Wire["LatchRemoved"]>;
/** The numbers that were taken from a sequence. */
export type SequenceNext = Camel<Wire["SequenceNext"]>;
/** A sequence as it is. */
export type SequenceInfo = Camel<Wire["SequenceAnswer"]>;
/** The rules of a collection. */
export type CollectionRules = Camel<Wire["CollectionRules"]>;
/** A collection and its rules. */
export type CollectionInfo = Camel<Wire["CollectionAnswer"]>;
/** A collection whose rules were removed. */
export type CollectionRemoved = Camel<Wire["CollectionRemoved"]>;
/** What became of a request. */
export type RequestOutcome = Camel<Wire["RequestAnswer"]>;
/** The cluster as one node sees it. */
export type Status = Camel<Wire["StatusAnswer"]>;
/** Limits of the cluster. */
export type Limits = Camel<Wire["LimitsAnswer"]>;
/** The version of a node. */
export type Version = Camel<Wire["VersionAnswer"]>;
/** The limited resources of a node, and who holds most of each. */
export type NodeCallers = Camel<Wire["NodeCallersAnswer"]>;
/** The members. */
export type Members = Camel<Wire["MembersAnswer"]>;
/** What a change of the members came to, or would. */
export type MembersChanged = Camel<Wire["MembersChanged"]>;
/** One decision about an entry. */
export type AuditLine = Camel<Wire["AuditView"]>;
/** A permission on keys that begin with a prefix. */
export type Grant = Camel<Wire["Grant"]>;
/** A role. */
export type RoleInfo = Camel<Wire["RoleAnswer"]>;
/** A user. */
export type UserInfo = Camel<Wire["UserAnswer"]>;
/** A token as it is listed, without its secret. */
export type TokenInfo = Camel<Wire["TokenView"]>;
/** A token that was created, with its secret. */
export type TokenCreated = Camel<Wire["TokenCreated"]>;
/** Who the caller is, and what it may do. */
export type Self = Camel<Wire["SelfAnswer"]>;
/** A page of collections. */
export type CollectionPage = Camel<Wire["CollectionList"]>;
/** A page of sessions. */
export type SessionPage = Camel<Wire["SessionList"]>;
/** A page of locks. */
export type LockPage = Camel<Wire["LockList"]>;
/** A page of elections. */
export type ElectionPage = Camel<Wire["ElectionList"]>;
/** A page of queues of tasks. */
export type QueuePage = Camel<Wire["QueueList"]>;
/** A page of decisions about an entry. */
export type AuditPage = Camel<Wire["AuditAnswer"]>;
