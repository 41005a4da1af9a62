/** Locks and elections alike: somebody holds, others wait. Owns what the two have in common, and the words for it. Pure. */

import type { ElectionInfo, LockInfo } from "quorate";
import type { JsonText } from "../../api/json-text.js";
import { shownName } from "../../text/named.js";
import { counted, duration } from "../../text/words.js";

/** Somebody who holds a lock, or leads. */
export interface Holder {
  readonly session: string;
  readonly owner: string;
  /** The fencing token, or the term. */
  readonly token: string;
  readonly ageMs: number;
  /** What a leader says of itself. */
  readonly value?: JsonText | undefined;
}

/** Somebody who waits for it, or stands. */
export type Waiter = LockInfo["queue"][number];

/** A lock or an election. */
export interface Queue {
  readonly kind: "lock" | "election";
  readonly name: string;
  /** How it is held, in words. */
  readonly mode: string;
  readonly holders: readonly Holder[];
  readonly holderCount: number;
  readonly waiters: readonly Waiter[];
  readonly waiterCount: number;
  /** For how long nobody gets it, since its holder was not renewed in time. */
  readonly delayLeftMs: number;
}

/** The longest wait that nodes take. Whoever waits without a bound asks for it again every few seconds. */
const WAIT_MAX_MS = 24 * 3_600_000;
/** Beyond this age of its last question a wait was not asked for again. */
const ASKED_WITHIN_MS = 60_000;

/** How long somebody still waits, so long after that was read. */
export function waitOf({ waitLeftMs }: Pick<Waiter, "waitLeftMs">, ageMs: number): string {
  if (waitLeftMs > WAIT_MAX_MS - ASKED_WITHIN_MS) {
    return "waits until it gets it";
  }
  return waitLeftMs > ageMs ? `gives up in ${duration(waitLeftMs - ageMs)}` : "gives up now";
}

/** The queue of a lock. */
export function ofLock(lock: LockInfo): Queue {
  return {
    kind: "lock",
    name: lock.lock,
    mode: modeOf(lock.slots, lock.mode, lock.holderCount),
    holders: lock.holders,
    holderCount: lock.holderCount,
    waiters: lock.queue,
    waiterCount: lock.waiterCount,
    delayLeftMs: lock.delayLeftMs,
  };
}

/** The queue of an election. */
export function ofElection(election: ElectionInfo): Queue {
  const { leader } = election;
  const holders =
    leader === null || leader === undefined
      ? []
      : [{ ...leader, token: leader.term, value: leader.value as JsonText | undefined }];
  return {
    kind: "election",
    name: election.election,
    mode: leader ? "led" : "nobody leads",
    holders,
    holderCount: holders.length,
    waiters: election.candidates,
    waiterCount: election.candidateCount,
    delayLeftMs: election.delayLeftMs,
  };
}

/** How a lock is held: `exclusive`, `shared by 3`, `2 of 5 slots`. */
export function modeOf(slots: number, mode: string | undefined, holders: number): string {
  if (slots > 1) {
    return `${holders} of ${slots} slots`;
  }
  if (holders === 0) {
    return "free";
  }
  return mode === "shared" ? `shared by ${holders}` : "exclusive";
}

/** Who has it, in a few words. */
export function whoOf({ holders, holderCount }: Queue): string {
  const [first] = holders;
  if (first === undefined) {
    return "nobody";
  }
  const more = holderCount - 1;
  return `${ownerOf(first)}${more > 0 ? ` and ${counted(more, "other")}` : ""}`;
}

/** The owner of a session as names are shown, or its number where it says nothing of itself. */
export function ownerOf({ owner, session }: Pick<Holder, "owner" | "session">): string {
  return owner === "" ? `session ${session}` : shownName(owner);
}

/** What happens to it when the session of this holder ends. */
export function outcomeOf(queue: Queue, holder: Holder): string {
  const isLock = queue.kind === "lock";
  const left = queue.holders.filter(({ session }) => session !== holder.session);
  // Who waits with the session that ends gets nothing.
  const next = queue.waiters.find(({ session }) => session !== holder.session);
  const begin = isLock
    ? `${ownerOf(holder)} holds it with the fencing token ${holder.token}, for ${duration(holder.ageMs)}. From then on, whatever names this token is refused.`
    : `${ownerOf(holder)} leads in term ${holder.token}, for ${duration(holder.ageMs)}. From then on, whatever names this term is refused.`;
  const rest =
    left.length > 0 ? ` ${left.map(ownerOf).join(", ")} still hold${left.length === 1 ? "s" : ""} it.` : "";
  const then =
    next === undefined
      ? isLock
        ? " Nobody waits for it."
        : " Nobody else stands: nobody leads then."
      : ` ${ownerOf(next)} (session ${next.session}) ${isLock ? "is the next to get it" : "leads next"}.`;
  return begin + rest + then;
}
