/**
 * The client of Quorate, a replicated compare-and-swap store.
 *
 * Owns what the package exports. This entry point needs nothing of any runtime but `fetch` and web streams: what needs Node is in
 * `quorate/node` and `quorate/testing`.
 */

export { Barrier, type BarrierOptions } from "./barrier.js";
export { randomRequestId } from "./call.js";
export type { TokenSource } from "./caller.js";
export { Client, type ClientOptions, DEFAULT_ENDPOINTS } from "./client.js";
export { type CampaignOptions, Election, Leadership } from "./election.js";
export type { Change, EntryLockOptions, WaitOptions } from "./entries.js";
export * from "./errors.js";
export type { SessionState } from "./lease.js";
export { Lock, type LockOptions, NamedLock } from "./lock.js";
export type { Camel } from "./names.js";
export { type Leads, Observation } from "./observe.js";
export { type Op, op } from "./ops.js";
export type { PlaceOptions } from "./queue-place.js";
export type { RetryPolicy } from "./retry.js";
export { Session, type SessionOptions } from "./session.js";
export type { Fetch } from "./transport.js";
export * from "./types.js";
export type { ChangeOf, Updated, UpdateOptions } from "./update.js";
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
