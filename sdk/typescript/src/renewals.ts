/**
 * The renewals of all sessions of one client.
 *
 * Owns when it wakes, and that sessions which are due about the same time go in one request. When a session is due, and what an
 * answer means for it, is its `lease`'s.
 */

import { queryCall } from "./call.js";
import type { Caller } from "./caller.js";
import type { Lease } from "./lease.js";
import { after, now } from "./timing.js";

/** Most sessions of one request. */
const SESSIONS_RENEWED_MAX = 1_024;

/** At least so often they are looked at: timers stand still while the machine is suspended, and what is due by then is seen a moment after it. */
const LOOK_EVERY_MS = 1_000;

/** What is known of a session that is renewed. */
export interface Renewed {
  readonly id: string;
  readonly lease: Lease;
  /** Told after each change of the lease, and when its state has changed with the time. */
  onChange(): void;
}

/** Renews once; to renew twice is as good as once. */
export async function renewOnce(
  caller: Caller,
  sessions: readonly string[],
  roundMs: number,
): Promise<{ sessions: { session: string; expired?: boolean }[] }> {
  const call = queryCall("/v1/sessions/renew", { sessions }, { timeoutMs: roundMs });
  // Half of the time for one node, so that another can be asked.
  return caller.fetch({ ...call, preference: "leader", attemptMs: roundMs / 2 });
}

/** The sessions of a client that are renewed. */
export class Renewals {
  readonly #caller: Caller;
  readonly #sessions = new Set<Renewed>();
  #timer: { cancel(): void } | undefined;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Renews this session from now on. */
  add(session: Renewed): void {
    this.#sessions.add(session);
    this.look();
  }

  /** All sessions that live. */
  get sessions(): readonly Renewed[] {
    return [...this.#sessions];
  }

  /** Looks at the sessions: renews what is due, and wakes again when something will be. */
  look(): void {
    const at = now();
    for (const session of this.#sessions) {
      if (session.lease.loss(at) !== undefined) {
        this.#sessions.delete(session);
        session.onChange();
      }
    }
    this.#renewDue(at);
    this.#sleep();
  }

  #renewDue(at: number): void {
    const live = [...this.#sessions];
    const isDue = live.some(({ lease }) => (lease.renewalAt() ?? Number.POSITIVE_INFINITY) <= at);
    const due = isDue ? live.filter(({ lease }) => lease.mayJoin(at)) : [];
    for (let from = 0; from < due.length; from += SESSIONS_RENEWED_MAX) {
      void this.#renew(due.slice(from, from + SESSIONS_RENEWED_MAX));
    }
  }

  /** Also wakes to notice in time that a session is suspect, or lost. */
  #sleep(): void {
    const at = now();
    const times = [...this.#sessions].flatMap(({ lease }) => [lease.renewalAt(), lease.changesAt(at)]);
    const next = Math.min(...times.filter((time) => time !== undefined));
    this.#timer?.cancel();
    this.#timer = undefined;
    if (Number.isFinite(next)) {
      this.#timer = after(Math.min(Math.ceil(next - at), LOOK_EVERY_MS), () => {
        for (const session of this.#sessions) {
          session.onChange();
        }
        this.look();
      });
    }
  }

  /** One request. Whatever comes of it, all its sessions hear; never rejects. */
  async #renew(batch: readonly Renewed[]): Promise<void> {
    for (const { lease } of batch) {
      lease.onSent();
    }
    const sent = now();
    const round = Math.min(...batch.map(({ lease }) => lease.roundMs()));
    const answered = await this.#ask(batch, round);
    const at = now();
    for (const session of batch) {
      const isOver = answered.get(session.id);
      if (isOver === undefined) {
        session.lease.onFailed(at);
      } else if (isOver) {
        session.lease.onOver("expired", at);
      } else {
        session.lease.onConfirmed(sent, at);
      }
      session.onChange();
    }
    this.look();
  }

  /** Of each session that the answer names whether it is over. One that it does not name was not renewed; none where there is no answer. */
  async #ask(batch: readonly Renewed[], roundMs: number): Promise<ReadonlyMap<string, boolean>> {
    try {
      const ids = batch.map((session) => session.id);
      const { sessions } = await renewOnce(this.#caller, ids, roundMs);
      return new Map(sessions.map(({ session, expired }) => [session, expired === true]));
    } catch {
      // What the lease makes of it is told by its state: suspect, then lost.
      return new Map();
    }
  }
}
