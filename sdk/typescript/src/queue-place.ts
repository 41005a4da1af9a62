/**
 * A place in the queue of a lock or an election: asked for, waited in, held, given up.
 *
 * Owns the loop that waits. A place belongs to the session: whichever node a question reaches, it finds the same place. What is asked
 * for, and what it is called, is the matter of `lock` and `election`.
 */

import { type Call, namePath, randomRequestId, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { isQuorateError, OutcomeUnknownError, RejectedError, UnavailableError } from "./errors.js";
import { WAIT_PAUSE_MS } from "./retry.js";
import type { Session } from "./session.js";
import { anySignal, now, sleep } from "./timing.js";
import type { Guard, Token } from "./types.js";

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
export function releaseCall(
  queue: Queue,
  token: Token,
  options?: { requestId?: string | undefined; timeoutMs?: number | undefined },
): Call {
  return writeCall(
    "POST",
    path(queue, ROUTES[queue.kind].leave),
    { [ROUTES[queue.kind].token]: token },
    options,
  );
}

/** Gives up whatever this session has there, a place too. */
export function leaveCall(
  queue: Queue,
  session: string,
  options?: { requestId?: string | undefined; timeoutMs?: number | undefined },
): Call {
  return writeCall("POST", path(queue, ROUTES[queue.kind].leave), { session }, options);
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
  #isGivenUp = false;

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
    return this.uncheckedToken;
  }

  /** The guard for writes. */
  get guard(): Guard {
    const token = this.uncheckedToken;
    return this.queue.kind === "lock"
      ? { lock: this.queue.name, token }
      : { election: this.queue.name, token };
  }

  /** Gives it up. Rejects with `not_lock_holder` if it was lost before. */
  async giveUp(): Promise<void> {
    try {
      await this.#caller.fetch(releaseCall(this.queue, this.uncheckedToken));
      this.#end();
    } catch (error) {
      // After any other refusal it is still held: who may not give it up now may be let in later.
      if (isQuorateError(error, "not_lock_holder", "session_expired")) {
        this.#end();
      }
      throw error;
    }
  }

  /** Gives it up if it is still held; that it is not is as good. */
  async dispose(): Promise<void> {
    if (this.#isGivenUp || this.session.loss !== undefined) {
      return;
    }
    try {
      await this.giveUp();
    } catch (error) {
      if (!isQuorateError(error, "not_lock_holder", "session_expired")) {
        throw error;
      }
    }
  }

  #end(): void {
    this.#isGivenUp = true;
    this.#free();
  }
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
  const free = await session.take(path(queue), queue.name);
  const waiting = new Waiting(session, caller, queue, wanted, options.waitMs);
  try {
    const token = await session.orLost((lost) => waiting.rounds(lost, options.signal));
    return new Held(session, caller, queue, token, free);
  } catch (error) {
    free();
    if (!leavesNothing(error) && session.loss === undefined) {
      void session.giveUp(path(queue), () => waiting.takeBack());
    }
    throw error;
  }
}

/** A question: how long it waits at most, under which id, and whether its outcome is open. */
interface Question {
  readonly leftMs: number;
  readonly id: string;
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
        this.#asked ??= { leftMs: this.#left(), id: randomRequestId() };
        const token = await this.#ask(this.#asked, signal);
        if (token !== undefined) {
          return token;
        }
      }
    } finally {
      release();
    }
  }

  /** Takes back what was asked for: first what is on its way is decided, or it could take effect afterwards. */
  async takeBack(): Promise<void> {
    const asked = this.#asked;
    if (asked !== undefined) {
      try {
        await this.#caller.send(this.#call(asked, 0));
      } catch (error) {
        if (!(error instanceof RejectedError)) {
          throw error;
        }
      }
    }
    await this.#caller.send(leaveCall(this.#queue, this.#session.id));
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Token | undefined> {
    try {
      const call = { ...this.#call(question, this.#poll(question.leftMs)), signal };
      const answer = await this.#caller.fetch<{ token?: Token; term?: Token }>(call);
      const token = answer.token ?? answer.term;
      this.#asked = undefined;
      if (token === undefined && question.leftMs === 0) {
        throw this.#tooLate();
      }
      return token;
    } catch (error) {
      const isOpen = error instanceof UnavailableError || error instanceof OutcomeUnknownError;
      if (!isOpen || this.#left() === 0) {
        throw error;
      }
      // No node could tell. The place is kept, so the same is asked again, wherever somebody answers.
      await sleep(WAIT_PAUSE_MS, signal);
      return undefined;
    }
  }

  #left(): number {
    const left = this.#waitMs === undefined ? WAIT_MAX_MS : this.#waitMs - (now() - this.#started);
    return Math.floor(Math.min(Math.max(left, 0), WAIT_MAX_MS));
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
      { requestId: question.id },
      { holdMs: pollMs, attemptMs },
    );
  }

  /** The node says to wait on, but the time is over. */
  #tooLate(): RejectedError {
    const detail = `\`${this.#queue.name}\` was not got in time`;
    const known = {
      code: "locked",
      status: 423,
      title: "Locked by somebody else",
      applied: "no",
      retry: "after_reading",
    } as const;
    return new RejectedError({ ...known, detail, requestId: "" });
  }
}
