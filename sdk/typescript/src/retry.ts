/**
 * Whether, and how soon, to try again.
 *
 * Owns the policy, the time, and the bookkeeping of one call's attempts. Knows nothing of the network. Retries are safe by
 * construction: what is tried again is a read, or a write under one request id, or was certainly not applied.
 */

import type { Problem } from "./errors.js";
import { now } from "./timing.js";

/** How eagerly a call is retried, within its deadline. */
export interface RetryPolicy {
  /** Pause after all nodes failed once; the first failure is retried at another node at once. Default 10 ms. */
  readonly backoffMinMs: number;
  /** Longest pause. Short, since a new leader is there within a second. Default 250 ms. */
  readonly backoffMaxMs: number;
  /** Most attempts of one call; 1 for no retries. Default 1,000. */
  readonly attemptsMax: number;
}

/** What holds where the caller says nothing else. */
export const RETRY_DEFAULT: RetryPolicy = { backoffMinMs: 10, backoffMaxMs: 250, attemptsMax: 1_000 };

/** A node that has too much to do says when to come again. Another one may have room sooner. */
const ADVICE_MAX_MS = 1_000;
/**
 * Longest time in which a write is repeated under one request id. Nodes remember an id for at least 15 minutes, and would apply it a
 * second time after that; what is still on its way, and clocks that differ, have the rest.
 */
const WRITE_PATIENCE_MAX_MS = 5 * 60_000;

/** How long a write is tried, whose caller wants it for so long. */
export function patience(wantedMs: number): number {
  return Math.min(wantedMs, WRITE_PATIENCE_MAX_MS);
}

/**
 * What is left, from now on, of the time in which something may be repeated under one request id: the node may hold its answer back for
 * `holdMs` on top. Over when either clock says so: while a machine sleeps its monotonic clock may stand still, and nodes forget meanwhile.
 */
export function patienceLeft(wantedMs = Number.POSITIVE_INFINITY, holdMs = 0): () => number {
  const [started, startedWall] = [now(), Date.now()];
  return () =>
    holdMs +
    Math.min(patience(wantedMs) - (now() - started), WRITE_PATIENCE_MAX_MS - (Date.now() - startedWall));
}

/** Before a wait that no node could serve within a call's deadline goes on with another call. */
export const WAIT_PAUSE_MS = 50;

/**
 * What may be done with a call whose attempt failed: a read may be repeated at will, a write too since it has an id, and so may many writes
 * that have one each; what changes something without an id only while it was certainly not applied.
 */
export type Intent =
  | { readonly kind: "read" }
  | { readonly kind: "write"; readonly id: string }
  | { readonly kind: "writes" }
  | { readonly kind: "once" };

/** One attempt that brought no final answer. */
export interface Failure {
  readonly kind: "connect" | "tls" | "foreign" | "broken" | "timed_out" | "problem" | "strange";
  /** In words. */
  readonly reason: string;
  readonly problem?: Problem;
  readonly cause?: unknown;
}

/** Whether a write could have been applied, or could still be, by this attempt. */
export function leavesFateOpen(failure: Failure): boolean {
  switch (failure.kind) {
    case "connect":
    case "tls":
    // What another cluster did with it is nothing to ours.
    case "foreign":
      return false;
    case "problem":
      return failure.problem?.applied !== "no";
    default:
      return true;
  }
}

/** Whether a problem document ends the call. If not, another attempt may find a better moment or a better node. */
export function isFinal(problem: Problem): boolean {
  // A full disk does not clear up within a deadline: the caller should hear of it now.
  const futile = problem.retry !== "same_request_id" || problem.code === "quota_exceeded";
  return futile && problem.applied !== "unknown";
}

/** The pause after so many failures of one call over so many nodes. `roll` in 0..1 is the jitter. */
export function pauseMs(policy: RetryPolicy, failures: number, nodes: number, roll: number): number {
  if (failures % nodes !== 0) {
    return 0;
  }
  const rounds = failures / nodes;
  const full = Math.min(policy.backoffMinMs * 2 ** Math.min(rounds - 1, 16), policy.backoffMaxMs);
  return full * (0.5 + 0.5 * roll);
}

/** The attempts of one call so far. */
export class Attempts {
  /** How many failed. */
  failures = 0;
  /** Whether one may have been applied. Stays set: a later attempt's `not applied` speaks for itself only. */
  fateOpen = false;

  /**
   * Whether a final problem document decides the whole call. What went through the log does, since request ids make all attempts
   * one; a refusal before it was proposed says nothing about earlier attempts.
   */
  settledBy(problem: Problem): boolean {
    return !this.fateOpen || problem.index !== undefined;
  }

  /** Counts a failure. The pause before the next attempt; `undefined`: there is none. */
  onFailure(
    failure: Failure,
    intent: Intent,
    policy: RetryPolicy,
    nodes: number,
    roll: number,
  ): number | undefined {
    this.failures += 1;
    this.fateOpen ||= leavesFateOpen(failure) && intent.kind !== "read";
    const isUnsafe = this.fateOpen && intent.kind === "once";
    if (isUnsafe || this.failures >= policy.attemptsMax) {
      return undefined;
    }
    if (failure.problem?.code === "too_many_requests") {
      const pause = pauseMs(policy, this.failures * nodes, nodes, roll);
      return Math.max(pause, Math.min(failure.problem.retryAfterMs ?? 0, ADVICE_MAX_MS));
    }
    // Certificates do not get better within a deadline, but another node may have good ones.
    if (failure.kind === "tls" && this.failures >= nodes) {
      return undefined;
    }
    return pauseMs(policy, this.failures, nodes, roll);
  }
}
