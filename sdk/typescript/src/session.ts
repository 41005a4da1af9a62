/**
 * Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on.
 *
 * Owns the handle. It is renewed in the background (`renewals`), and tells of itself only what is certain (`lease`).
 */

import { Barrier, type BarrierOptions } from "./barrier.js";
import { writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { type CampaignOptions, Leadership } from "./election.js";
import { InvalidArgumentError, type Loss, RejectedError, refusal, SessionError } from "./errors.js";
import { Lease, type SessionState } from "./lease.js";
import { Lock, type LockOptions } from "./lock.js";
import { checkOptions, patienceOf } from "./options.js";
import { takePlace } from "./queue-place.js";
import type { Renewals, Renewed } from "./renewals.js";
import { endSession } from "./session-by-id.js";
import { after, anySignal, asyncDispose, deferred, now, orAborted, sleep, wallAhead } from "./timing.js";
import type { CallOptions, SessionCreated } from "./types.js";

/** A session that is created late is over before it is known: then another one is asked for, so many times. */
const STARTS_MAX = 3;
/** Pauses before what is given up in the background is given up again. */
const AGAIN_MIN_MS = 50;
const AGAIN_MAX_MS = 5_000;

/** How long a place that is still given up is waited for: none of both is as long as the session lives. */
interface Patience {
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a session is to be. */
export interface SessionOptions extends CallOptions {
  /**
   * How long it lives without a renewal, 100 ms to a day; default 10 s. Short: others go on soon after we have died. Long: we survive
   * what goes on for long, such as the cluster electing a leader (about a second).
   */
  readonly ttlMs?: number | undefined;
  /** Whose it is, for people. */
  readonly owner?: string | undefined;
  /** What else is to be known of it; at most 16. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Asks for a session without keeping it alive: for one that others renew. */
export function createSession(
  caller: Caller,
  options: SessionOptions & { requestId?: string | undefined } = {},
): Promise<SessionCreated> {
  checkOptions(options);
  const { ttlMs, owner, labels } = options;
  return caller.fetch<SessionCreated>(writeCall("POST", "/v1/sessions", { ttlMs, owner, labels }, options));
}

/** Starts a session that is renewed for as long as it is held. */
export async function startSession(
  caller: Caller,
  renewals: Renewals,
  options: SessionOptions = {},
): Promise<Session> {
  for (let starts = 1; ; starts += 1) {
    const [sent, sentAhead] = [now(), wallAhead()];
    let created: SessionCreated;
    try {
      created = await createSession(caller, options);
    } catch (error) {
      // A retry found that an earlier try, whose answer was lost, had created one, and that it is over.
      if (error instanceof RejectedError && error.code === "session_expired" && starts < STARTS_MAX) {
        continue;
      }
      throw error;
    }
    const lease = new Lease(created.ttlMs, created.renewInMs, sent, sentAhead);
    if (lease.loss(now()) === undefined || starts === STARTS_MAX) {
      const session = new Session(caller, renewals, created.session, lease);
      session.checkAlive();
      return session;
    }
  }
}

/**
 * A session that renews itself until it is ended, or lost. It keeps the process running until then: end it, close its client, or hold
 * it with `await using`.
 */
export class Session {
  /** Its id: the same for all nodes and clients, and never used twice. */
  readonly id: string;
  readonly #caller: Caller;
  readonly #renewals: Renewals;
  readonly #lease: Lease;
  readonly #renewed: Renewed;
  readonly #lost = deferred<Loss>();
  readonly #controller = new AbortController();
  readonly #listeners = new Set<(state: SessionState) => void>();
  #told: SessionState = "alive";
  /** Places in queues that a handle has or waits for: the cluster knows one for each session, so two handles would share it. */
  readonly #taken = new Set<string>();
  /** Places that are being given up in the background. */
  readonly #leaving = new Map<string, Promise<void>>();

  /** Sessions come from `client.session()`. */
  constructor(caller: Caller, renewals: Renewals, id: string, lease: Lease) {
    this.id = id;
    this.#caller = caller;
    this.#renewals = renewals;
    this.#lease = lease;
    this.#renewed = { id, lease, onChange: () => this.#onChange() };
    renewals.add(this.#renewed);
  }

  /** How long it lives without a renewal. */
  get ttlMs(): number {
    return this.#lease.ttlMs;
  }

  /**
   * What it is at this moment. Reckoned by this machine's monotonic clock from what was confirmed. Where the wall clock moved on by more
   * than that, since the machine was suspended, it is suspect until the next renewal is confirmed. Nobody knows what will be once this
   * has returned: what must not happen twice takes a guard.
   */
  get state(): SessionState {
    const at = now();
    const state = this.#lease.state(at);
    if (state === "suspect" && (this.#lease.renewalAt() ?? Number.POSITIVE_INFINITY) <= at) {
      // The timer of the renewals goes by the clock that stood still while the machine was suspended.
      this.#renewals.look();
    }
    return state;
  }

  /** Why it is lost, if it is. */
  get loss(): Loss | undefined {
    return this.#lease.loss(now());
  }

  /** Settles once it is lost, or ended. */
  get lost(): Promise<Loss> {
    return this.#lost.promise;
  }

  /** Aborted once it is lost, or ended: for work that is to stop then. Its reason is a {@link SessionError}. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Calls back after each change of the state; returns what ends that. */
  onStateChange(listener: (state: SessionState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Waits until it is something else than `known`, and tells what. */
  async changed(known: SessionState, signal?: AbortSignal): Promise<SessionState> {
    if (this.state !== known) {
      return this.state;
    }
    const changed = deferred<SessionState>();
    const unsubscribe = this.onStateChange((state) => state !== known && changed.resolve(state));
    try {
      return await orAborted(changed.promise, signal);
    } finally {
      unsubscribe();
    }
  }

  /** Throws a {@link SessionError} unless it is known to live. */
  check(): void {
    if (this.state !== "alive") {
      throw new SessionError(this.id, this.loss);
    }
  }

  /** @internal Throws where it is lost: suspect is well enough to ask for more. */
  checkAlive(): void {
    const { loss } = this;
    if (loss !== undefined) {
      throw new SessionError(this.id, loss);
    }
  }

  /**
   * Waits until the lock of this name is ours: as long as the session lives, if nothing else is said. Rejects with `locked` where it was not
   * got in time, or as many wait already as may; with a {@link SessionError} when the session is lost meanwhile. A signal that is aborted
   * gives up the place in the queue.
   */
  async lock(name: string, options: LockOptions = {}): Promise<Lock> {
    checkOptions(options);
    const { mode, slots, maxWaiters, delayMs } = options;
    const wanted = { mode, slots, maxWaiters, delayMs };
    return new Lock(await takePlace(this, this.#caller, { kind: "lock", name }, wanted, options));
  }

  /** Waits until we lead the election of this name; as {@link lock} does. */
  async campaign(name: string, options: CampaignOptions = {}): Promise<Leadership> {
    checkOptions(options);
    const { value, delayMs } = options;
    const held = await takePlace(this, this.#caller, { kind: "election", name }, { value, delayMs }, options);
    return new Leadership(held, this.#caller);
  }

  /** The barrier of this name, which so many sessions open: all of them say the same number. */
  barrier(name: string, parties: number, options: BarrierOptions = {}): Barrier {
    checkOptions(options);
    const waitMs = patienceOf("waitMs", options.waitMs);
    return new Barrier(this, this.#caller, name, parties, { ...options, waitMs });
  }

  /** Ends it, and with it all that hangs on it: entries, locks, leaderships, places. It is lost here in any case. */
  async end(options: CallOptions = {}): Promise<void> {
    checkOptions(options);
    this.#over("ended");
    await endSession(this.#caller, this.id, options);
  }

  /** Ends it, unless it is lost already. */
  async [asyncDispose](): Promise<void> {
    // What is lost may have been taken over with a delay, which an end would cut short.
    if (this.loss === undefined) {
      await this.end();
    }
  }

  /** @internal What was waited for, unless the session is lost before. */
  async orLost<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.checkAlive();
    try {
      return await orAborted(work(this.signal), this.signal);
    } catch (error) {
      if (error instanceof RejectedError && error.code === "session_expired") {
        this.#over("expired");
        throw new SessionError(this.id, this.loss);
      }
      throw error;
    }
  }

  /** @internal Takes a place in a queue, named by its path, for one handle, once nobody gives it up any more. Returns what frees it. */
  async take(place: string, what: string, options: Patience): Promise<() => void> {
    if (this.#taken.has(place)) {
      throw new InvalidArgumentError(
        `this session has \`${what}\` or waits for it already: give that up first, or ask with another session`,
      );
    }
    this.#taken.add(place);
    let isOurs = true;
    const free = () => {
      // Once: then it may be another handle's.
      if (isOurs) {
        isOurs = false;
        this.#taken.delete(place);
      }
    };
    try {
      await this.left(place, what, options);
    } catch (error) {
      free();
      throw error;
    }
    return free;
  }

  /** @internal Notes that the session itself is in this place, without a handle. */
  enter(place: string): void {
    this.#taken.add(place);
  }

  /** @internal It is not in this place any more. */
  exit(place: string): void {
    this.#taken.delete(place);
  }

  /** @internal Whether a handle has this place, or waits for it, or the session is in it. */
  hasTaken(place: string): boolean {
    return this.#taken.has(place);
  }

  /**
   * @internal Waits until this place is not being given up any more: what is asked for before that would be given up too. At least for the
   * deadline of a call, so that a handle which waits for nothing is not refused for what is over in a moment.
   */
  async left(place: string, what: string, { waitMs, signal: caller }: Patience): Promise<void> {
    const leaving = this.#leaving.get(place);
    if (leaving === undefined) {
      return;
    }
    const late = deferred<"late">();
    const limit = Math.max(waitMs ?? Number.POSITIVE_INFINITY, this.#caller.settings.timeoutMs);
    const timer = after(limit, () => late.resolve("late"));
    const { signal, release } = anySignal(this.signal, caller);
    try {
      if ((await orAborted(Promise.race([leaving, late.promise]), signal)) === "late") {
        throw refusal("locked", `\`${what}\` was not got in time: this session still gives it up`);
      }
    } finally {
      timer.cancel();
      release();
    }
  }

  /**
   * @internal Gives up this place in the background, again and again until that is decided, or the session is over, which gives it up as
   * well. Never rejects. `work` rejects only with what may pass.
   */
  giveUp(place: string, work: () => Promise<unknown>): Promise<void> {
    const before = this.#leaving.get(place) ?? Promise.resolve();
    const leaving = before.then(() => this.#untilDone(work));
    this.#leaving.set(place, leaving);
    void leaving.then(() => {
      if (this.#leaving.get(place) === leaving) {
        this.#leaving.delete(place);
      }
    });
    return leaving;
  }

  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    for (let pauseMs = AGAIN_MIN_MS; this.loss === undefined; pauseMs = Math.min(2 * pauseMs, AGAIN_MAX_MS)) {
      try {
        await work();
        return;
      } catch (error) {
        // What makes no sense never will: the client is closed, say.
        if (error instanceof InvalidArgumentError) {
          return;
        }
      }
      // Woken by the end of the session, which is what the loop looks at.
      await sleep(pauseMs, this.signal).catch(() => {});
    }
  }

  #over(loss: Loss): void {
    this.#lease.onOver(loss, now());
    this.#onChange();
    this.#renewals.look();
  }

  #onChange(): void {
    const { state } = this;
    if (state === this.#told) {
      return;
    }
    this.#told = state;
    const { loss } = this;
    if (loss !== undefined) {
      this.#lost.resolve(loss);
      this.#controller.abort(new SessionError(this.id, loss));
    }
    for (const listener of [...this.#listeners]) {
      this.#caller.settings.troubles.call(`a listener of session ${this.id}`, listener, state);
    }
  }
}
