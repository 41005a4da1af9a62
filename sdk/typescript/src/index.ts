/**
 * The client of Quorate, a replicated compare-and-swap store.
 *
 * Owns what the package exports. This entry point needs nothing of any runtime but `fetch` and web streams: what needs Node is in
 * `quorate/node` and `quorate/testing`.
 */

export { Access, type PageOptions, type TokenOptions } from "./access.js";
export type { BackupEnd, BackupOptions } from "./backup.js";
export { Barrier, type BarrierOptions } from "./barrier.js";
export { keyPath, randomRequestId } from "./call.js";
export type { TokenSource } from "./caller.js";
export {
  type BulkAnswer,
  type BulkOptions,
  type BulkResult,
  type ClaimAnswer,
  Claimed,
  type ClaimOptions,
  type Txn,
  type TxnAnswer,
  type TxnBlockResult,
  type TxnCheck,
  type TxnFailed,
  type TxnOptions,
  type TxnRead,
  type TxnResult,
  type TxnStep,
  type TxnWritten,
  type UpdateWhereOptions,
  type WhereAnswer,
  type WhereOptions,
} from "./changes.js";
export { Client, type ClientOptions, DEFAULT_ENDPOINTS } from "./client.js";
export { type ChangeMembersOptions, Cluster, type NodeSays } from "./cluster.js";
export { Collection, type RulesOptions, Sequence } from "./collections.js";
export { type CampaignOptions, Election, Leadership } from "./election.js";
export type { EntryLockOptions } from "./entries.js";
export * from "./errors.js";
export { type JsonInput, type JsonValue, RawJson, type Storable } from "./json.js";
export { bytesOfKey, encodedKey, keyOfBytes, keyOfShown, shownKey } from "./keys.js";
export { Latch } from "./latch.js";
export type { SessionState } from "./lease.js";
export { Lock, type LockOptions, NamedLock } from "./lock.js";
export { Mirror, type MirrorChange, type MirrorOptions } from "./mirror.js";
export type { Camel } from "./names.js";
export { type Leads, Observation } from "./observe.js";
export { type Op, op } from "./ops.js";
export { type PageOf, Pages } from "./pages.js";
export type {
  Counted,
  CountOptions,
  FindOptions,
  FindPage,
  HistoryOptions,
  ListOptions,
  ListPage,
  Part,
  VersionOf,
} from "./queries.js";
export type { PlaceOptions } from "./queue-place.js";
export type { RetryPolicy } from "./retry.js";
export { Session, type SessionOptions } from "./session.js";
export { SessionById } from "./session-by-id.js";
export type { Streamed } from "./stream.js";
export { TaskFailure, type TaskRun } from "./task-run.js";
export {
  type ClaimTasksOptions,
  type QueueStats,
  Task,
  type TaskAnswer,
  type TaskFailureOptions,
  type TaskInfo,
  type TaskOptions,
  type TaskPage,
  TaskQueue,
  type TaskScheduled,
  type TaskSpec,
  type TaskState,
  type TasksRequeued,
  type TasksScheduled,
} from "./tasks.js";
export type { Fetch } from "./transport.js";
export type { TroubleListener } from "./trouble.js";
export * from "./types.js";
export type { ChangeOf, Updated, UpdateOptions } from "./update.js";
export type { Change, WaitOptions } from "./wait-for-change.js";
export {
  type ChangeEvent,
  type DeleteEvent,
  type InitialEvent,
  type PutEvent,
  Watch,
  type WatchEvent,
  type WatchOptions,
} from "./watch.js";
export type { Wire } from "./wire.js";
export type { TaskHandler, WorkerOptions, WorkerReport } from "./worker.js";
