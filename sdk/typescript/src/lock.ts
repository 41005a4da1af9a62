/**
 * Named locks, exclusive, shared, or with several slots.
 *
 * Owns the handle of a lock that is held, and what others see of a lock. Waiting for one is `queue-place`'s.
 */

import { namePath, readCall } from "./call.js";
import type { Caller } from "./caller.js";
import type { Loss } from "./errors.js";
import { type Held, leaveCall, type PlaceOptions, releaseCall } from "./queue-place.js";
import type { Session } from "./session.js";
import { asyncDispose } from "./timing.js";
import type {
  CallOptions,
  Guard,
  LockCheck,
  LockInfo,
  Released,
  RequestOptions,
  SessionSource,
  Token,
} from "./types.js";
import { sessionOf } from "./types.js";
import type { Wire } from "./wire.js";

/** How a lock is asked for. */
export interface LockOptions extends PlaceOptions {
  /** `shared` with others that share it, or `exclusive`, which is the default. */
  readonly mode?: Wire["LockMode"] | undefined;
  /** How many may hold it at a time: a semaphore. All who ask say the same number. Default 1. */
  readonly slots?: number | undefined;
  /**
   * How many may wait for it with us, at most, 1 to 1,000, which is the default: where so many wait already it rejects with `locked`, and
   * does not wait behind them.
   */
  readonly maxWaiters?: number | undefined;
  /** How long nobody gets it after our session was not renewed in time, at most a minute: for work that takes no guard. */
  readonly delayMs?: number | undefined;
}

/**
 * A lock that is held until it is released, or its session is lost.
 *
 * Locally nobody can be sure of a lock: we may be stopped for a minute after we looked. What must not happen after it is lost has to
 * say the token to whoever does it: to the cluster with `{ guard: lock }`, to others with {@link token}, which is greater than that of
 * every holder before.
 */
export class Lock {
  readonly #held: Held;

  /** Locks come from `session.lock(name)`. */
  constructor(held: Held) {
    this.#held = held;
  }

  /** The name of the lock. */
  get name(): string {
    return this.#held.queue.name;
  }

  /** The session that holds it. */
  get session(): Session {
    return this.#held.session;
  }

  /**
   * The fencing token. Throws unless the lock is certainly held at this moment: a `SessionError` where its session may be lost, and
   * `not_lock_holder` from when it is given up on, whatever came of that.
   */
  get token(): Token {
    return this.#held.token;
  }

  /** For writes that are applied only while the lock is held, which the cluster decides when it applies them. */
  get guard(): Guard {
    return this.#held.guard;
  }

  /** Settles once it is lost with its session. */
  get lost(): Promise<Loss> {
    return this.session.lost;
  }

  /** Aborted once it is lost with its session: for work that is to stop then. */
  get signal(): AbortSignal {
    return this.session.signal;
  }

  /**
   * Gives it up; the next in the queue has it at once. Rejects with `not_lock_holder` if it was lost before. Where the outcome is unknown it
   * can be called again, which asks again: that it is not ours any more is as good as given up then. Where the signal breaks it off it goes on
   * in the background, until it is decided or the session is over.
   */
  async release(options?: CallOptions): Promise<void> {
    await this.#held.giveUp(options);
  }

  /**
   * Gives it up, if it is still held. What could not be confirmed goes on in the background, until it is decided or the session is over;
   * rejects only where a node refused it.
   */
  async [asyncDispose](): Promise<void> {
    await this.#held.dispose();
  }
}

/** A lock by its name, from `client.lock(name)`: looked at, checked, and released for others. */
export class NamedLock {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** Who holds it, and who waits for it. */
  get(options?: CallOptions): Promise<LockInfo> {
    return this.#caller.fetch(readCall(namePath("/v1/locks/", this.name), undefined, options, this.#about));
  }

  /** Whether this token holds it: rejects with `guard_failed` if not. */
  check(token: Token, options?: CallOptions): Promise<LockCheck> {
    return this.#caller.fetch(
      readCall(namePath("/v1/locks/", this.name, "/check"), { token }, options, this.#about),
    );
  }

  get #about() {
    return { about: { lock: this.name } };
  }

  /** Takes it from the holder of this token, who is not asked and not told. Rejects with `not_lock_holder`. */
  release(token: Token, options?: RequestOptions): Promise<Released> {
    return this.#caller.fetch(releaseCall({ kind: "lock", name: this.name }, token, options));
  }

  /** Gives up whatever this session has there, a place in the queue too. */
  releaseSession(session: SessionSource, options?: RequestOptions): Promise<Released> {
    return this.#caller.fetch(
      leaveCall({ kind: "lock", name: this.name }, sessionOf(session) ?? "", options),
    );
  }
}
