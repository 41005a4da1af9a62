/**
 * The client: what callers call.
 *
 * Owns the settings and the names of things; each thing is done in a module of its own. The way of a call to the nodes is `caller`'s.
 */

import { Access, type PageOptions } from "./access.js";
import { type BackupEnd, type BackupOptions, backup } from "./backup.js";
import { namePath, readCall } from "./call.js";
import { Caller, type TokenSource } from "./caller.js";
import type {
  BulkAnswer,
  BulkOptions,
  ClaimAnswer,
  ClaimOptions,
  Txn,
  TxnAnswer,
  TxnOptions,
  UpdateWhereOptions,
  WhereAnswer,
  WhereOptions,
} from "./changes.js";
import * as changes from "./changes.js";
import { Cluster, requestOutcome } from "./cluster.js";
import { Collection, Sequence } from "./collections.js";
import { Election } from "./election.js";
import type { EntryLockOptions } from "./entries.js";
import * as entries from "./entries.js";
import { InvalidArgumentError } from "./errors.js";
import { parseJson, type Storable } from "./json.js";
import { Latch } from "./latch.js";
import { NamedLock } from "./lock.js";
import { Mirror, type MirrorOptions } from "./mirror.js";
import { type Op, op } from "./ops.js";
import { checkNarrowing, checkOptions, duration, type NamesOf, patienceOf, shownValue } from "./options.js";
import { type PageOf, Pages } from "./pages.js";
import type {
  Counted,
  CountOptions,
  FindOptions,
  FindPage,
  HistoryOptions,
  ListOptions,
  ListPage,
  VersionOf,
} from "./queries.js";
import * as queries from "./queries.js";
import { Renewals } from "./renewals.js";
import { RETRY_DEFAULT, type RetryPolicy } from "./retry.js";
import { createSession, type Session, type SessionOptions, startSession } from "./session.js";
import { endSession, SessionById } from "./session-by-id.js";
import { type Streamed, stream } from "./stream.js";
import { type QueueStats, TaskQueue } from "./tasks.js";
import { asyncDispose } from "./timing.js";
import { type Fetch, othersTls, parseEndpoints } from "./transport.js";
import { type TroubleListener, Troubles } from "./trouble.js";
import type {
  AuditLine,
  AuditPage,
  BarrierInfo,
  CallOptions,
  Cas,
  CollectionInfo,
  CollectionPage,
  ConditionOptions,
  ElectionPage,
  ElectionSummary,
  Entry,
  LockPage,
  LockSummary,
  Patch,
  PutOptions,
  QueuePage,
  ReadOptions,
  RequestOptions,
  RequestOutcome,
  SessionCreated,
  SessionInfo,
  SessionPage,
  WriteOptions,
  WriteResult,
} from "./types.js";
import { type ChangeOf, type Updated, type UpdateOptions, update } from "./update.js";
import { type Change, type WaitOptions, waitForChange } from "./wait-for-change.js";
import { type ChangeEvent, Watch, type WatchEvent, type WatchOptions, WatchStream } from "./watch.js";

/** The nodes of the local cluster that `scripts/cluster up` starts. */
export const DEFAULT_ENDPOINTS = "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103";

/** Deadline of a call that sets none. */
const TIMEOUT_DEFAULT_MS = 10_000;
/** How long one node may take before another is asked: some elections, but a good part of the deadline is left. */
const ATTEMPT_TIMEOUT_DEFAULT_MS = 3_000;

/** Settings of a {@link Client}. */
export interface ClientOptions {
  /**
   * The nodes: `host:port` or URLs, in a list or separated by commas; one is enough, all of them are better. Without it: those of the
   * local cluster. `unix:/path`, the socket of a node on this machine, needs `connect` of `quorate/node`.
   */
  readonly endpoints?: string | readonly string[] | undefined;
  /** Whether endpoints that name no scheme speak TLS. */
  readonly tls?: boolean | undefined;
  /** The token that says who asks, or what gives it; called again with a token that a node has refused. */
  readonly token?: string | TokenSource | undefined;
  /** Deadline of each call, retries included. Default 10 s. A write is tried for 5 minutes at most, whatever this says. */
  readonly timeoutMs?: number | undefined;
  /** How long one node may take before another is asked, within the deadline. Default 3 s. */
  readonly attemptTimeoutMs?: number | undefined;
  /** When to try again. */
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** Where reads go: `any` node in turn, the default, or the `leader`, which is the shortest way for few clients. */
  readonly reads?: "any" | "leader" | undefined;
  /**
   * Whether members that no endpoint names are found out, and asked while an endpoint does not answer. Default true. A member is used
   * once it has answered at the address that it advertises. A token is never sent in clear to an address that was not given.
   */
  readonly discoverMembers?: boolean | undefined;
  /** How requests are sent, instead of the `fetch` of the runtime: one that knows certificates, say. */
  readonly fetch?: Fetch | undefined;
  /** How JSON is read. The default makes a `bigint` of a whole number that no float holds, and is `JSON.parse` else. */
  readonly parseJson?: ((text: string) => unknown) | undefined;
  /**
   * Is told of what the client lives with and no call hears of: a node of another cluster among the endpoints, a lock that is given up
   * in the background, a listener that threw. Without it, it is written to the console as a warning.
   */
  readonly onTrouble?: TroubleListener | undefined;
}

const NAMES: NamesOf<ClientOptions> = {
  endpoints: true,
  tls: true,
  token: true,
  timeoutMs: true,
  attemptTimeoutMs: true,
  retry: true,
  reads: true,
  discoverMembers: true,
  fetch: true,
  parseJson: true,
  onTrouble: true,
};

/** The token as what gives it. */
function tokenSource(token: ClientOptions["token"]): TokenSource | undefined {
  if (typeof token !== "string") {
    return token;
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new InvalidArgumentError("a token is one line of printable ASCII characters without spaces");
  }
  return () => token;
}

/** The policy that this makes of the usual one. */
function retryOf(given: Partial<RetryPolicy> = {}): RetryPolicy {
  checkOptions(given);
  const { backoffMinMs, backoffMaxMs, attemptsMax = RETRY_DEFAULT.attemptsMax } = given;
  if (!(attemptsMax >= 1)) {
    throw new InvalidArgumentError(`\`attemptsMax\` is ${shownValue(attemptsMax)}: expected 1 or more`);
  }
  return {
    backoffMinMs: duration("backoffMinMs", backoffMinMs) ?? RETRY_DEFAULT.backoffMinMs,
    backoffMaxMs: duration("backoffMaxMs", backoffMaxMs) ?? RETRY_DEFAULT.backoffMaxMs,
    attemptsMax,
  };
}

function callerOf(options: ClientOptions): Caller {
  // Endpoints that are not seen would be those of the local cluster.
  checkNarrowing(options, NAMES);
  const prefersTls = options.tls ?? false;
  const endpoints = parseEndpoints(options.endpoints ?? DEFAULT_ENDPOINTS, prefersTls);
  const socket = endpoints.find(({ isSocket }) => isSocket);
  if (socket !== undefined && options.fetch === undefined) {
    throw new InvalidArgumentError(
      `${socket.address}: \`fetch\` knows no Unix sockets; make the client by \`connect\` of quorate/node`,
    );
  }
  return new Caller({
    endpoints,
    othersTls: othersTls(endpoints, prefersTls),
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    token: tokenSource(options.token),
    timeoutMs: patienceOf("timeoutMs", options.timeoutMs) ?? TIMEOUT_DEFAULT_MS,
    attemptMs: patienceOf("attemptTimeoutMs", options.attemptTimeoutMs) ?? ATTEMPT_TIMEOUT_DEFAULT_MS,
    retry: retryOf(options.retry),
    reads: options.reads ?? "any",
    discovers: options.discoverMembers ?? true,
    parse: options.parseJson ?? parseJson,
    troubles: new Troubles(options.onTrouble),
  });
}

/**
 * A client of one cluster. Connects to nothing until it is asked for something; one client is enough for a program.
 *
 * ```ts
 * const client = new Client("10.0.0.1:7100,10.0.0.2:7100,10.0.0.3:7100");
 * await client.put("orders/o42", { status: "new" });
 * ```
 */
export class Client {
  readonly #caller: Caller;
  readonly #renewals: Renewals;

  constructor(options: string | readonly string[] | ClientOptions = {}) {
    const isList = typeof options === "string" || Array.isArray(options);
    this.#caller = callerOf(
      isList ? { endpoints: options as string | string[] } : (options as ClientOptions),
    );
    this.#renewals = new Renewals(this.#caller);
  }

  /** The nodes that were given, `host:port` or `unix:/path`. */
  get endpoints(): string[] {
    return this.#caller.settings.endpoints.map((endpoint) => endpoint.address);
  }

  /** All nodes that calls may go to, `host:port`: those given, and members that were discovered. */
  get knownEndpoints(): string[] {
    return this.#caller.addresses;
  }

  /** Ends all that goes on: sessions, watches, mirrors, workers. What hangs on the sessions is gone then. */
  async close(): Promise<void> {
    const ended = this.#renewals.sessions.map(async ({ id, lease }) => {
      lease.onOver("ended", performance.now());
      await endSession(this.#caller, id);
    });
    this.#renewals.look();
    await Promise.allSettled(ended);
    this.#caller.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }

  // Entries

  /** The entry, or `undefined`. */
  get<T = unknown>(key: string, options?: ReadOptions): Promise<Entry<T> | undefined> {
    return entries.get<T>(this.#caller, key, options);
  }

  /** Whether there is an entry; its value is not read. */
  exists(key: string, options?: ReadOptions): Promise<boolean> {
    return entries.exists(this.#caller, key, options);
  }

  /** Waits until the entry is something else than the version of this `cas`, or until there is one. */
  waitForChange<T = unknown>(key: string, options?: WaitOptions): Promise<Change<T>> {
    return waitForChange<T>(this.#caller, key, options);
  }

  /** Creates or overwrites; with `cas`, `ifAbsent`, `ifPresent` or `if` only then. A `Uint8Array` is stored as bytes, all else as JSON. */
  async put<T>(key: string, value: T & Storable<T>, options: PutOptions = {}): Promise<WriteResult<T>> {
    return entries.write<WriteResult<T>>(this.#caller, op.put<T>(key, value, options), options);
  }

  /** Creates; rejects with `already_exists`. */
  async insert<T>(key: string, value: T & Storable<T>, options: WriteOptions = {}): Promise<WriteResult<T>> {
    return entries.write<WriteResult<T>>(this.#caller, op.insert<T>(key, value, options), options);
  }

  /** Overwrites; rejects with `not_found`. */
  async replace<T>(key: string, value: T & Storable<T>, options: WriteOptions = {}): Promise<WriteResult<T>> {
    return entries.write<WriteResult<T>>(this.#caller, op.replace<T>(key, value, options), options);
  }

  /** Changes parts of a document in one step: by a merge patch, a list of operators, or a JSON Patch. */
  patch<T = unknown>(key: string, patch: Patch, options: WriteOptions = {}): Promise<WriteResult<T>> {
    return entries.write<WriteResult<T>>(this.#caller, op.patch(key, patch, options), options);
  }

  /** Adds to a number of a document; rejects with `not_found` where there is no entry. */
  increment<T = unknown>(
    key: string,
    path: string,
    by = 1,
    options: WriteOptions = {},
  ): Promise<WriteResult<T>> {
    return this.patch<T>(key, [{ op: "inc", path, value: by }], options);
  }

  /** Deletes; rejects with `not_found`. */
  remove<T = unknown>(key: string, options: ConditionOptions = {}): Promise<WriteResult<T>> {
    return entries.write<WriteResult<T>>(this.#caller, op.remove(key, options), options);
  }

  /** Sets the time to live from now, 0 for ever, and changes nothing else. */
  touch(key: string, ttlMs: number, options: ConditionOptions = {}): Promise<WriteResult> {
    return entries.write(this.#caller, op.touch(key, ttlMs, options), options);
  }

  /** Reads an entry and sets its time to live, in one step. */
  getAndTouch<T = unknown>(key: string, ttlMs: number, options?: RequestOptions): Promise<Entry<T>> {
    return entries.write<Entry<T>>(this.#caller, { op: "get_and_touch", key, ttlMs }, options);
  }

  /** Locks an entry: until the lock ends only writes with the `cas` of the answer are applied, and the first of them ends it. */
  lockEntry(key: string, options: EntryLockOptions = {}): Promise<WriteResult> {
    const { lockMs, waitMs } = options;
    return entries.write(this.#caller, { op: "lock", key, lockMs, waitMs }, options);
  }

  /** {@link lockEntry} that also reads the entry, in one step. */
  getAndLock<T = unknown>(key: string, options: EntryLockOptions = {}): Promise<Entry<T>> {
    const { lockMs, waitMs } = options;
    return entries.write<Entry<T>>(this.#caller, { op: "get_and_lock", key, lockMs, waitMs }, options);
  }

  /** Lets the lock of an entry hold for so long from now; `cas` is its key. */
  extendEntryLock(key: string, cas: Cas, lockMs?: number, options?: RequestOptions): Promise<WriteResult> {
    return entries.write(this.#caller, op.extend(key, cas, lockMs), options);
  }

  /** Ends the lock of an entry; `cas` is its key. */
  unlockEntry(key: string, cas: Cas, options?: RequestOptions): Promise<WriteResult> {
    return entries.write(this.#caller, op.unlock(key, cas), options);
  }

  /**
   * Replaces the entry's value by what `change` makes of it. `change` gets `undefined` where there is no entry, which is then created;
   * it returns `undefined` to leave things as they are. It may be called many times and should depend on its arguments only. The
   * entry keeps its session and the time it has left to live.
   *
   * Rejects with `locked` while somebody else has the entry locked, and with a `ContendedError` once all tries are lost.
   */
  update<T = unknown>(key: string, change: ChangeOf<T>, options?: UpdateOptions): Promise<Updated<T>> {
    return update<T>(this.#caller, key, change, options);
  }

  // Many entries

  /** Lists entries by key: `for await` gives all of them, at one moment. */
  list<T = unknown>(options: ListOptions = {}): Pages<Entry<T>, ListPage<T>> {
    return queries.list<T>(this.#caller, options);
  }

  /** Finds entries of which something holds: `for await` gives all of them, at one moment. */
  find<T = unknown>(options: FindOptions = {}): Pages<Entry<T>, FindPage<T>> {
    return queries.find<T>(this.#caller, options);
  }

  /** How many entries there are of which something holds. */
  count(options: CountOptions = {}): Promise<Counted> {
    return queries.count(this.#caller, options);
  }

  /** What the entry was after each change, oldest first, as far back as history was not compacted. */
  history<T = unknown>(
    key: string,
    options: HistoryOptions = {},
  ): AsyncGenerator<VersionOf<T>, void, undefined> {
    return queries.history<T>(this.#caller, key, options);
  }

  /** The decisions about an entry, refused ones too, oldest first, as far back as history was not compacted. */
  audit(key: string, options: HistoryOptions = {}): Pages<AuditLine, AuditPage> {
    return queries.audit(this.#caller, key, options);
  }

  /**
   * Makes a list of operations, each applied or refused on its own, in order. An insert that finds its key is skipped, and so is an operation
   * whose condition does not hold.
   */
  bulk(ops: readonly Op[], options: BulkOptions = {}): Promise<BulkAnswer> {
    return changes.bulk(this.#caller, ops, options);
  }

  /**
   * Does any number of operations, reads too, each by itself: what became of each as soon as it is known, in any order. Many go in one
   * request, which saves what a request costs; they run beside each other, so two of the same key have no order. Writes are repeated under
   * their request ids until they are decided, within the deadline of a call. Operations are asked for as they are sent.
   */
  stream<T = unknown>(
    ops: Iterable<Op>,
    options: CallOptions = {},
  ): AsyncGenerator<Streamed<T>, void, undefined> {
    return stream<T>(this.#caller, ops, options);
  }

  /** Looks at any number of keys, and does one thing or another, all or nothing. */
  txn(txn: Txn, options: TxnOptions = {}): Promise<TxnAnswer> {
    return changes.txn(this.#caller, txn, options);
  }

  /** Patches the entries that match: one part, up to 1,000 of them, in one step. With a cursor in the answer there is more. */
  updateWhere(options: UpdateWhereOptions): Promise<WhereAnswer> {
    return changes.changeWhere(this.#caller, options);
  }

  /** {@link updateWhere} for all parts, made one by one as the loop asks for them. */
  updateAllWhere(options: UpdateWhereOptions): AsyncGenerator<WhereAnswer, void, undefined> {
    return changes.changeAllWhere(this.#caller, options);
  }

  /** Deletes the entries that match: one part, up to 1,000 of them, in one step. With a cursor in the answer there is more. */
  deleteWhere(options: WhereOptions): Promise<WhereAnswer> {
    return changes.changeWhere(this.#caller, options);
  }

  /** {@link deleteWhere} for all parts, made one by one as the loop asks for them. */
  deleteAllWhere(options: WhereOptions): AsyncGenerator<WhereAnswer, void, undefined> {
    return changes.changeAllWhere(this.#caller, options);
  }

  /** Finds entries that nobody has locked, and locks them, in one step: one for 15 s, if nothing else is said. */
  claim<T = unknown>(options: ClaimOptions): Promise<ClaimAnswer<T>> {
    return changes.claim<T>(this.#caller, options);
  }

  /** The collection of this name: the rules of what is below it and a slash. */
  collection(name: string): Collection {
    return new Collection(this.#caller, name);
  }

  /** All collections, by name. */
  collections(options: PageOptions = {}): Pages<CollectionInfo, CollectionPage> {
    return this.#pages("/v1/collections", options, (page) => page.collections);
  }

  /** The sequence of this name: numbers without gaps. */
  sequence(name: string): Sequence {
    return new Sequence(this.#caller, name);
  }

  // Watches

  /** Watches keys as they change. From when this resolves on, nothing is missed. */
  watch<T = unknown>(options: WatchOptions & { readonly initial: true }): Promise<Watch<T, WatchEvent<T>>>;
  watch<T = unknown>(
    options?: WatchOptions & { readonly initial?: false | undefined },
  ): Promise<Watch<T, ChangeEvent<T>>>;
  watch<T = unknown>(options?: WatchOptions): Promise<Watch<T, WatchEvent<T>>>;
  async watch<T>(options: WatchOptions = {}): Promise<Watch<T, WatchEvent<T>>> {
    const stream = new WatchStream<T>(this.#caller, options);
    await stream.start();
    return new Watch<T, WatchEvent<T>>(stream);
  }

  /** Keeps all entries with a prefix in memory. Resolves once all is there. */
  mirror<T = unknown>(options: MirrorOptions = {}): Promise<Mirror<T>> {
    return Mirror.start<T>(this.#caller, options);
  }

  // Coordination

  /** Starts a session that renews itself for as long as it is held. */
  session(options?: SessionOptions): Promise<Session> {
    return startSession(this.#caller, this.#renewals, options);
  }

  /** Starts a session that nobody renews: for others to keep alive by its id. */
  createSession(options?: SessionOptions & RequestOptions): Promise<SessionCreated> {
    return createSession(this.#caller, options);
  }

  /** A session by its id, whoever holds it. */
  sessionById(id: string): SessionById {
    return new SessionById(this.#caller, id);
  }

  /** All sessions. */
  sessions(options: PageOptions = {}): Pages<SessionInfo, SessionPage> {
    return this.#pages("/v1/sessions", options, (page) => page.sessions);
  }

  /** The lock of this name, whoever holds it. `session.lock(name)` acquires it. */
  lock(name: string): NamedLock {
    return new NamedLock(this.#caller, name);
  }

  /** All locks that somebody holds or waits for, by name. */
  locks(options: PageOptions = {}): Pages<LockSummary, LockPage> {
    return this.#pages("/v1/locks", options, (page) => page.locks);
  }

  /** The election of this name. `session.campaign(name)` stands in it. */
  election(name: string): Election {
    return new Election(this.#caller, name);
  }

  /** All elections in which somebody leads or stands, by name. */
  elections(options: PageOptions = {}): Pages<ElectionSummary, ElectionPage> {
    return this.#pages("/v1/elections", options, (page) => page.elections);
  }

  /** The barrier of this name as it is. `session.barrier(name, parties)` enters it. One that nobody is in is empty. */
  barrier(name: string, options?: CallOptions): Promise<BarrierInfo> {
    return this.#caller.fetch(
      readCall(namePath("/v1/barriers/", name), undefined, options, { about: { barrier: name } }),
    );
  }

  /** The latch of this name. */
  latch(name: string): Latch {
    return new Latch(this.#caller, name);
  }

  /** The queue of tasks of this name. */
  tasks(queue: string): TaskQueue {
    return new TaskQueue(this.#caller, queue);
  }

  /** All queues of tasks, by name. */
  taskQueues(options: PageOptions = {}): Pages<QueueStats, QueuePage> {
    return this.#pages("/v1/tasks", options, (page) => page.queues);
  }

  // The cluster

  /** The cluster itself: its nodes and members. */
  get cluster(): Cluster {
    return new Cluster(this.#caller);
  }

  /** Users, roles and tokens. */
  get access(): Access {
    return new Access(this.#caller);
  }

  /**
   * What became of a write; `undefined`: it was never decided, its outcome is no longer kept (it is for 15 minutes at least), or it is still
   * on its way and may be decided after this answer.
   */
  requestOutcome(requestId: string, options?: CallOptions): Promise<RequestOutcome | undefined> {
    return requestOutcome(this.#caller, requestId, options);
  }

  /**
   * The whole cluster as a stream of bytes; the return value of the generator is what its end says. Rejects where it breaks off. In Node
   * `saveBackup` of `quorate/node` writes it to a file.
   */
  backup(options: BackupOptions = {}): AsyncGenerator<Uint8Array, BackupEnd, undefined> {
    return backup(this.#caller, options);
  }

  #pages<Item, Page extends PageOf>(
    route: string,
    options: PageOptions,
    items: (page: Page) => readonly Item[],
  ): Pages<Item, Page> {
    checkOptions(options);
    const { limit } = options;
    return new Pages(
      (cursor) => this.#caller.fetch<Page>(readCall(route, { limit, cursor }, options)),
      items,
    );
  }
}
