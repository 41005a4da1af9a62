/**
 * Elections.
 *
 * Owns the handle of a leadership, and what others see of it. Standing for it is `queue-place`'s, following it `observe`'s.
 */

import { namePath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import type { Loss } from "./errors.js";
import type { JsonInput, Storable } from "./json.js";
import { Observation } from "./observe.js";
import { checkOptions } from "./options.js";
import { type Held, leaveCall, type PlaceOptions, releaseCall } from "./queue-place.js";
import type { Session } from "./session.js";
import { asyncDispose } from "./timing.js";
import type {
  CallOptions,
  ElectionInfo,
  Guard,
  Leader,
  Proclaimed,
  RequestOptions,
  Resigned,
  SessionSource,
  Token,
} from "./types.js";
import { sessionOf } from "./types.js";

/** How we stand. */
export interface CampaignOptions extends PlaceOptions {
  /** What we say of ourselves once we lead, such as an address. */
  readonly value?: JsonInput | undefined;
  /** How long nobody leads after our session was not renewed in time, at most a minute. */
  readonly delayMs?: number | undefined;
}

/** A leadership, until it is resigned, or its session is lost. As with a lock, what must not be done by two leaders takes a guard. */
export class Leadership {
  readonly #held: Held;
  readonly #caller: Caller;

  /** Leaderships come from `session.campaign(name)`. */
  constructor(held: Held, caller: Caller) {
    this.#held = held;
    this.#caller = caller;
  }

  /** The name of the election. */
  get name(): string {
    return this.#held.queue.name;
  }

  /** The session that leads. */
  get session(): Session {
    return this.#held.session;
  }

  /**
   * The term: a fencing token, greater than that of every leader before. Throws unless we certainly lead: a `SessionError` where our session
   * may be lost, and `not_lock_holder` from when it is resigned on, whatever came of that.
   */
  get term(): Token {
    return this.#held.token;
  }

  /** For writes that are applied only while we lead, which the cluster decides when it applies them. */
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

  /** Says something else of ourselves. Rejects with `not_lock_holder` if we do not lead any more. */
  async proclaim<T>(value: T & Storable<T>, options?: RequestOptions): Promise<Proclaimed> {
    return new Election(this.#caller, this.name).proclaim<T>(this.#held.uncheckedToken, value, options);
  }

  /**
   * Gives it up; the next candidate leads at once. Rejects with `not_lock_holder` if it was lost before. Where the outcome is unknown it can
   * be called again, which asks again. Where the signal breaks it off it goes on in the background.
   */
  async resign(options?: CallOptions): Promise<void> {
    await this.#held.giveUp(options);
  }

  /** Gives it up, if we still lead; in the background where that could not be confirmed. Rejects only where a node refused it. */
  async [asyncDispose](): Promise<void> {
    await this.#held.dispose();
  }
}

/** An election by its name, from `client.election(name)`. */
export class Election {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** Who leads, and who stands. */
  get(options?: CallOptions): Promise<ElectionInfo> {
    return this.#caller.fetch(readCall(this.#path(), undefined, options, { about: { election: this.name } }));
  }

  /** Who leads, if anybody does. */
  async leader(options?: CallOptions): Promise<Leader | undefined> {
    return (await this.get(options)).leader ?? undefined;
  }

  /** Observes it: first who leads now, then each change. */
  async observe(options: { signal?: AbortSignal | undefined } = {}): Promise<Observation> {
    checkOptions(options);
    return Observation.begin(this.#caller, this.name, options.signal);
  }

  /** Lets the leader of this term say something else of itself. Rejects with `not_lock_holder`. */
  async proclaim<T>(term: Token, value: T & Storable<T>, options?: RequestOptions): Promise<Proclaimed> {
    return this.#caller.fetch(
      writeCall("POST", this.#path("/proclaim"), { term, value }, options, {
        about: { election: this.name },
      }),
    );
  }

  /** Takes leadership from the leader of this term, who is not asked and not told. Rejects with `not_lock_holder`. */
  resign(term: Token, options?: RequestOptions): Promise<Resigned> {
    return this.#caller.fetch(releaseCall({ kind: "election", name: this.name }, term, options));
  }

  /** Gives up whatever this session has there. */
  resignSession(session: SessionSource, options?: RequestOptions): Promise<Resigned> {
    return this.#caller.fetch(
      leaveCall({ kind: "election", name: this.name }, sessionOf(session) ?? "", options),
    );
  }

  #path(verb = ""): string {
    return namePath("/v1/elections/", this.name, verb);
  }
}
