/**
 * A place in the queue of a lock or an election: asked for, waited in, held, given up.
 *
 * Owns the loop that waits. A place belongs to the session: whichever node a question reaches, it finds the same place. What is asked
 * for, and what it is called, is the matter of `lock` and `election`.
 */

import { type Call, LastingId, namePath, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import {
  isQuorateError,
  OutcomeUnknownError,
  ProtocolError,
  RejectedError,
  refusal,
  UnavailableError,
} from "./errors.js";
import { toWire } from "./names.js";
import { checkOptions, patienceOf } from "./options.js";
import { WAIT_PAUSE_MS } from "./retry.js";
import type { Session } from "./session.js";
import { anySignal, now, sleep } from "./timing.js";
import type { CallOptions, Guard, RequestOptions, Token } from "./types.js";

/** Longest wait that nodes take. */
const WAIT_MAX_MS = 24 * 3_600_000;
/** A node holds a question back for a third of the session's time to live, but never longer: if it dies silently, another is asked. */
const POLL_MAX_MS = 10_000;
/** And never shorter, since each question is an entry in the log. */
const POLL_MIN_MS = 500;
/** A node that is silent for so long is left for another, unless a sixth of the session's time to live is longer. */
const ATTEMPT_MIN_MS = 250;
/** At the end of a wait the node is to say so, not to send us back once more. */
const POLL_BEYOND_MS = 1_000;

/** A lock or an election. */
export interface Queue {
  readonly kind: "lock" | "election";
  readonly name: string;
}

/** How long to wait, and for what that is given up. */
export interface PlaceOptions {
  /** How long to wait, at most; then it rejects with `locked`. 0: not at all. Without it, as long as the session lives. */
  readonly waitMs?: number | undefined;
  /** Gives up the place in the queue. */
  readonly signal?: AbortSignal | undefined;
}

const ROUTES = {
  lock: { base: "/v1/locks/", ask: "/acquire", leave: "/release", token: "token" },
  election: { base: "/v1/elections/", ask: "/campaign", leave: "/resign", token: "term" },
} as const;

function path(queue: Queue, verb = ""): string {
  return namePath(ROUTES[queue.kind].base, queue.name, verb);
}

/** Gives up what this token holds. */
export function releaseCall(queue: Queue, token: Token, options?: RequestOptions): Call {
  return writeCall(
    "POST",
    path(queue, ROUTES[queue.kind].leave),
    { [ROUTES[queue.kind].token]: token },
    options,
    { about: { [queue.kind]: queue.name } },
  );
}

/** Gives up whatever this session has there, a place too. */
export function leaveCall(
  queue: Queue,
  session: string,
  options?: { requestId?: string | undefined; timeoutMs?: number | undefined },
): Call {
  const about = { [queue.kind]: queue.name };
  return writeCall("POST", path(queue, ROUTES[queue.kind].leave), { session }, options, { about });
}

/** Whether an error says that there is no place of this question, or one that is another handle's. */
export function leavesNothing(error: unknown): boolean {
  return isQuorateError(
    error,
    "locked",
    "already_queued",
    "different_settings",
    "session_expired",
    "invalid_argument",
  );
}

/** What was got. Given up by its owner, or with its session. */
export class Held {
  readonly session: Session;
  readonly queue: Queue;
  /** The token, whether it holds or not: for what the cluster checks. */
  readonly uncheckedToken: Token;
  readonly #caller: Caller;
  readonly #free: () => void;
  /** `leaving` from the first try to give it up on, whatever came of that. */
  #state: "held" | "leaving" | "left" = "held";
  /** The id of what gives it up: to repeat that is to learn its outcome. */
  #leaveId = new LastingId();
  /** Whether a try to give it up may have been carried out. */
  #isOpen = false;

  constructor(session: Session, caller: Caller, queue: Queue, token: Token, free: () => void) {
    this.session = session;
    this.queue = queue;
    this.uncheckedToken = token;
    this.#caller = caller;
    this.#free = free;
  }

  /** The token, while it certainly holds. */
  get token(): Token {
    this.session.check();
    if (this.#state !== "held") {
      const how = this.#state === "left" ? "was given up" : "is being given up";
      throw refusal("not_lock_holder", `\`${this.queue.name}\` ${how}`);
    }
    return this.uncheckedToken;
  }

  /** The guard for writes. */
  get guard(): Guard {
    const token = this.uncheckedToken;
    return this.queue.kind === "lock"
      ? { lock: this.queue.name, token }
      : { election: this.queue.name, token };
  }

  /**
   * Gives it up. Rejects with `not_lock_holder` if it was lost before, unless it was an earlier try that gave it up. Goes on in the background
   * where the signal breaks it off: nobody says that it is tried again.
   */
  async giveUp(options?: CallOptions): Promise<void> {
    checkOptions(options);
    const asked = { ...options, requestId: this.#leaveId.current };
    const call = releaseCall(this.queue, this.uncheckedToken, asked);
    if (this.#state === "held") {
      this.#state = "leaving";
    }
    const mayBeOurs = this.#isOpen;
    try {
      await this.#caller.fetch(call);
      this.#end();
    } catch (error) {
      if (isQuorateError(error, "not_lock_holder", "session_expired")) {
        this.#end();
        if (mayBeOurs) {
          return;
        }
      } else {
        // It may still be held: who may not give it up now may be let in later.
        const isBrokenOff = options?.signal?.aborted === true;
        this.#isOpen ||= isBrokenOff || (isQuorateError(error) && error.applied === "unknown");
        if (isBrokenOff) {
          this.#goOnLeaving();
        }
      }
      throw error;
    }
  }

  /**
   * Gives it up if it is still held; that it is not is as good. What could not be confirmed goes on in the background, or it would be held
   * for as long as the session lives; rejects then where a node refused it, and does not where none could be reached.
   */
  async dispose(): Promise<void> {
    if (this.#state === "left" || this.session.loss !== undefined) {
      return;
    }
    try {
      await this.#leave();
    } catch (error) {
      this.#goOnLeaving();
      const { kind, name } = this.queue;
      const what = `the ${kind} \`${name}\` is given up in the background, since that could not be confirmed`;
      this.#caller.settings.troubles.tell(new Error(what, { cause: error }));
      if (!isUnreached(error)) {
        throw error;
      }
    }
  }

  /** Gives it up; rejects only where it may still be held. */
  async #leave(): Promise<void> {
    try {
      await this.giveUp();
    } catch (error) {
      if (!isQuorateError(error, "not_lock_holder", "session_expired")) {
        throw error;
      }
    }
  }

  #goOnLeaving(): void {
    // Who asks for it anew waits until it is given up.
    this.#free();
    void this.session.giveUp(path(this.queue), () => this.#leave());
  }

  #end(): void {
    this.#state = "left";
    this.#isOpen = false;
    this.#leaveId = new LastingId();
    this.#free();
  }
}

/** Whether no node could tell: the same may be asked again. */
function isUnreached(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof OutcomeUnknownError;
}

/** Waits for a place until it holds. */
export async function takePlace(
  session: Session,
  caller: Caller,
  queue: Queue,
  wanted: object,
  options: PlaceOptions,
): Promise<Held> {
  options.signal?.throwIfAborted();
  session.checkAlive();
  const waitMs = patienceOf("waitMs", options.waitMs);
  // Now, and not once there is a place to be given up again.
  toWire(wanted);
  const free = await session.take(path(queue), queue.name, options);
  const waiting = new Waiting(session, caller, queue, wanted, waitMs);
  try {
    const token = await session.orLost((lost) => waiting.rounds(lost, options.signal));
    return new Held(session, caller, queue, token, free);
  } catch (error) {
    free();
    waiting.giveUp(error);
    throw error;
  }
}

/** A question: how long it waits at most, and under which id. */
interface Question {
  readonly leftMs: number;
  readonly id: LastingId;
}

class Waiting {
  readonly #session: Session;
  readonly #caller: Caller;
  readonly #queue: Queue;
  readonly #wanted: object;
  readonly #waitMs: number | undefined;
  readonly #started = now();
  /** The question that is on its way: to repeat it is to learn its outcome. */
  #asked: Question | undefined;
  readonly #leaveId = new LastingId();

  constructor(session: Session, caller: Caller, queue: Queue, wanted: object, waitMs: number | undefined) {
    this.#session = session;
    this.#caller = caller;
    this.#queue = queue;
    this.#wanted = wanted;
    this.#waitMs = waitMs;
  }

  /** Asks until the answer is final: the token. */
  async rounds(lost: AbortSignal, caller: AbortSignal | undefined): Promise<Token> {
    const { signal, release } = anySignal(lost, caller);
    try {
      for (;;) {
        // What nobody could tell the outcome of is asked again as it was: under another id it might be decided twice.
        this.#asked ??= { leftMs: this.#left(), id: new LastingId() };
        const token = await this.#ask(this.#asked, signal);
        if (token !== undefined) {
          return token;
        }
      }
    } finally {
      release();
    }
  }

  /** After this error, gives up in the background what there may be. */
  giveUp(error: unknown): void {
    if (leavesNothing(error) || this.#session.loss !== undefined) {
      return;
    }
    const other = error instanceof ProtocolError ? error.about : undefined;
    if (other !== undefined) {
      const queue = { ...this.#queue, name: other };
      if (this.#session.hasTaken(path(queue))) {
        // What was found is what another handle has. To give up anything by a way that leads there would take it from that one.
        return;
      }
      const leaveId = new LastingId();
      void this.#session.giveUp(path(queue), () => this.#takeBack(queue, leaveId));
    }
    void this.#session.giveUp(path(this.#queue), () => this.#takeBack(this.#queue, this.#leaveId));
  }

  /** Takes back what was asked for: first what is on its way is decided, or it could take effect afterwards. */
  async #takeBack(queue: Queue, leaveId: LastingId): Promise<void> {
    const asked = this.#asked;
    if (asked !== undefined) {
      await decided(this.#caller.send(this.#call(asked, 0)));
    }
    await decided(this.#caller.send(leaveCall(queue, this.#session.id, { requestId: leaveId.current })));
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Token | undefined> {
    try {
      const call = { ...this.#call(question, this.#poll(question.leftMs)), signal };
      const answer = await this.#caller.fetch<{ token?: Token; term?: Token }>(call);
      const token = answer.token ?? answer.term;
      this.#asked = undefined;
      if (token === undefined && question.leftMs === 0) {
        // The node says to wait on, but the time is over.
        throw refusal("locked", `\`${this.#queue.name}\` was not got in time`);
      }
      return token;
    } catch (error) {
      if (!isUnreached(error) || this.#left() === 0) {
        throw error;
      }
      // No node could tell. The place is kept, so the same is asked again, wherever somebody answers.
      await sleep(WAIT_PAUSE_MS, signal);
      return undefined;
    }
  }

  #left(): number {
    const left = this.#waitMs === undefined ? WAIT_MAX_MS : this.#waitMs - (now() - this.#started);
    return Math.ceil(Math.min(Math.max(left, 0), WAIT_MAX_MS));
  }

  /** How long the node is to hold its answer back. */
  #poll(leftMs: number): number {
    const poll = Math.floor(Math.min(Math.max(this.#session.ttlMs / 3, POLL_MIN_MS), POLL_MAX_MS));
    if (leftMs === 0) {
      return 0;
    }
    return leftMs <= poll ? leftMs + POLL_BEYOND_MS : poll;
  }

  #call(question: Question, pollMs: number): Call {
    const body = { ...this.#wanted, session: this.#session.id, waitMs: question.leftMs, pollMs };
    const attemptMs = Math.min(Math.max(this.#session.ttlMs / 6, ATTEMPT_MIN_MS), 3_000);
    const verb = ROUTES[this.#queue.kind].ask;
    return writeCall(
      "POST",
      path(this.#queue, verb),
      body,
      { requestId: question.id.current },
      {
        holdMs: pollMs,
        attemptMs,
        about: { [this.#queue.kind]: this.#queue.name, session: this.#session.id },
      },
    );
  }
}

/** Waits until a call is decided: a refusal is a decision, and so is an answer that no repetition would change. */
export async function decided(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof RejectedError || error instanceof ProtocolError)) {
      throw error;
    }
  }
}
