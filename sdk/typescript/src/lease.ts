/**
 * What a session knows of itself: until when it certainly lives, and when to renew it.
 *
 * Owns the reckoning behind every token that is handed out. Pure: time comes in as an argument, nothing is sent. A session lives at
 * the nodes for its time to live from the moment at which a renewal *applies*, which is after it was sent; so it certainly lives until
 * the last confirmed one was *sent* and that time has passed, less a margin for clocks that differ. That is reckoned by the monotonic
 * clock, which stands still while the machine is suspended; where the wall clock shows that it may have been, nothing is certain until a
 * renewal that was sent after that is confirmed.
 */

import type { Loss } from "./errors.js";
import { wallAhead } from "./timing.js";

/** Part of the time to live that is given away for clocks that do not run alike. */
const MARGIN_PART = 10;
/** At least this much, for the scheduling of the event loop. */
const MARGIN_MIN_MS = 20;
/** A session is renewed at least so often in its time to live, whatever a node says. */
const RENEWALS = 3;
/** Part of the time to live that one renewal may take before it is sent anew: between the first and the deadline fit three. */
const ROUND_PART = 6;
/** A renewal may always take this long: less is no time to answer in. */
const ROUND_MIN_MS = 20;
/** A renewal that is longer on its way than this is lost. */
const ROUND_MAX_MS = 3_000;

/**
 * Whether a session lives, as far as it can be known here: `alive` while renewals are confirmed, `suspect` where none was for half of its
 * time or since the machine may have been suspended, `lost` once what it held can be somebody else's, which is final.
 */
export type SessionState = "alive" | "suspect" | "lost";

/** The reckoning of one session. */
export class Lease {
  readonly ttlMs: number;
  readonly #renewInMs: number;
  /** When the last request was sent that was confirmed: a renewal, or the creation. */
  #confirmed: number;
  /** By how much the wall clock was ahead then, and when the renewal was sent that is on its way. */
  #confirmedAhead: number;
  #sentAhead: number;
  readonly #ahead: () => number;
  /** Not before this, after a renewal that failed. */
  #againAt: number | undefined;
  /** Whether a renewal is on its way. */
  #isRenewing = false;
  #lost: Loss | undefined;

  /** A session that was asked for at `sent`, when the wall clock was `sentAhead` ahead, and that the node wants renewed after `renewInMs`. */
  constructor(ttlMs: number, renewInMs: number, sent: number, sentAhead: number, ahead = wallAhead) {
    this.ttlMs = ttlMs;
    this.#renewInMs = Math.min(renewInMs, ttlMs / RENEWALS);
    this.#confirmed = sent;
    this.#confirmedAhead = sentAhead;
    this.#sentAhead = sentAhead;
    this.#ahead = ahead;
  }

  /** What it is now. */
  state(now: number): SessionState {
    if (this.loss(now) !== undefined) {
      return "lost";
    }
    return now >= this.#suspectAt() || this.wasSuspended() ? "suspect" : "alive";
  }

  /**
   * Whether the wall clock moved on by so much more than the monotonic one since the last confirmation that it may be over. It is not lost
   * for that: the wall clock may have been set, and a renewal tells.
   */
  wasSuspended(): boolean {
    return this.#ahead() - this.#confirmedAhead > this.#marginMs();
  }

  /** Why it is lost, if it is. */
  loss(now: number): Loss | undefined {
    return this.#lost ?? (now >= this.deadline() ? "not_renewed" : undefined);
  }

  /** When it is lost unless it is renewed before. */
  deadline(): number {
    return this.#confirmed + Math.max(0, this.ttlMs - this.#marginMs());
  }

  /** When its state changes next, if nothing happens meanwhile; `undefined` once it is lost. */
  changesAt(now: number): number | undefined {
    switch (this.state(now)) {
      case "alive":
        return this.#suspectAt();
      case "suspect":
        return this.deadline();
      case "lost":
        return undefined;
    }
  }

  /** When to renew it; `undefined` while a renewal is on its way, and once it is lost. */
  renewalAt(): number | undefined {
    if (this.#isRenewing || this.#lost !== undefined) {
      return undefined;
    }
    const due = this.wasSuspended() ? this.#confirmed : this.#confirmed + this.#renewInMs;
    return Math.max(due, this.#againAt ?? 0);
  }

  /** Whether it may as well be renewed now, since another one is: a quarter of the time early at most. */
  mayJoin(now: number): boolean {
    const due = this.renewalAt();
    return due !== undefined && now + this.#renewInMs / 4 >= due;
  }

  /** How long one renewal may take before it is sent anew, perhaps by another way. */
  roundMs(): number {
    return Math.min(Math.max(this.ttlMs / ROUND_PART, ROUND_MIN_MS), ROUND_MAX_MS);
  }

  /** A renewal goes out. */
  onSent(): void {
    this.#isRenewing = true;
    this.#sentAhead = this.#ahead();
  }

  /** A renewal that went out at `sent` was confirmed. Too late is never: who looked meanwhile was told that it is lost. */
  onConfirmed(sent: number, now: number): void {
    this.#isRenewing = false;
    this.#againAt = undefined;
    this.#lost = this.loss(now);
    if (sent > this.#confirmed) {
      this.#confirmed = sent;
      this.#confirmedAhead = this.#sentAhead;
    }
  }

  /** A renewal brought no answer. */
  onFailed(now: number): void {
    this.#isRenewing = false;
    this.#againAt = now + this.roundMs() / 8;
  }

  /** It is over. */
  onOver(loss: Loss, now: number): void {
    this.#isRenewing = false;
    this.#lost = this.loss(now) ?? loss;
  }

  #marginMs(): number {
    return Math.max(this.ttlMs / MARGIN_PART, MARGIN_MIN_MS);
  }

  #suspectAt(): number {
    return Math.min(this.#confirmed + this.ttlMs / 2, this.deadline());
  }
}
