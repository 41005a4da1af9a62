/** Barriers: they open once so many sessions have entered, and close once all have left. Owns the waiting for the others. */

import { type Call, LastingId, namePath, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { OutcomeUnknownError, ProtocolError, UnavailableError } from "./errors.js";
import { decided, leavesNothing } from "./queue-place.js";
import { WAIT_PAUSE_MS } from "./retry.js";
import type { Session } from "./session.js";
import { anySignal, atMost, now, sleep } from "./timing.js";
import type { BarrierInfo } from "./types.js";

/** A node holds a question back for at most this long: if it has died silently, another is asked soon. */
const POLL_MAX_MS = 5_000;
/** A node that is silent for so long after that is left for another. */
const ATTEMPT_MS = 1_000;

/** How long a barrier is waited for. */
export interface BarrierOptions {
  /** How long to wait for the others, at most; without it, as long as the session lives. */
  readonly waitMs?: number | undefined;
  /** Gives the wait up. */
  readonly signal?: AbortSignal | undefined;
}

/** A barrier for one session, from `session.barrier(name, parties)`. */
export class Barrier {
  readonly name: string;
  readonly parties: number;
  readonly #session: Session;
  readonly #caller: Caller;
  readonly #options: BarrierOptions;
  /** The id of the question that is on its way: to repeat it is to learn its outcome. */
  #asked: LastingId | undefined;

  /** Made by the client. */
  constructor(session: Session, caller: Caller, name: string, parties: number, options: BarrierOptions) {
    this.#session = session;
    this.#caller = caller;
    this.name = name;
    this.parties = parties;
    this.#options = options;
  }

  /**
   * Enters, and waits until it is open. When the time is over before, it is left again, and the answer says `waiting`. Rejects with
   * `locked` while those who opened it have not all left.
   */
  async enter(): Promise<BarrierInfo> {
    await this.#session.left(this.#path(), this.name, this.#options);
    try {
      const entered = await this.#rounds("/enter");
      if (entered.state === "open") {
        this.#session.enter(this.#path());
      } else {
        // It goes on for longer in the background where no node can be reached.
        await atMost(this.#giveUp(), this.#caller.settings.timeoutMs);
      }
      return entered;
    } catch (error) {
      const found = error instanceof ProtocolError ? error.about : undefined;
      // What was entered by mistake is left under its own name, unless the session is there by that name.
      const isKept = found !== undefined && this.#session.hasTaken(this.#path("", found));
      if (!leavesNothing(error) && this.#session.loss === undefined && !isKept) {
        void this.#giveUp(found);
      }
      throw error;
    }
  }

  /**
   * Leaves, and waits until the others have left too: then it can be entered anew. When the time is over before, the answer says what
   * it is doing.
   */
  async leave(): Promise<BarrierInfo> {
    const left = await this.#rounds("/leave");
    this.#session.exit(this.#path());
    return left;
  }

  #path(verb = "", name = this.name): string {
    return namePath("/v1/barriers/", name, verb);
  }

  async #rounds(verb: "/enter" | "/leave"): Promise<BarrierInfo> {
    return this.#session.orLost(async (lost) => {
      const { signal, release } = anySignal(lost, this.#options.signal);
      try {
        return await this.#untilDone(verb, signal);
      } finally {
        release();
      }
    });
  }

  /** Asks until all are there, or gone, or the time is over. */
  async #untilDone(verb: "/enter" | "/leave", signal: AbortSignal): Promise<BarrierInfo> {
    // What came before was decided, or is taken back in the background: nodes refuse its id for another question.
    this.#asked = undefined;
    const started = now();
    const left = () => Math.max(0, (this.#options.waitMs ?? Number.POSITIVE_INFINITY) - (now() - started));
    let opened: string | undefined;
    for (;;) {
      const answer = await this.#ask(verb, Math.ceil(Math.min(left(), POLL_MAX_MS)), signal, left);
      if (answer !== undefined) {
        if (isDone(verb, answer, opened) || left() === 0) {
          return answer;
        }
        opened = answer.openedRevision;
      }
    }
  }

  /** One question; `undefined` where no node could tell and there is time to ask again. */
  async #ask(
    verb: string,
    waitMs: number,
    signal: AbortSignal,
    left: () => number,
  ): Promise<BarrierInfo | undefined> {
    this.#asked ??= new LastingId();
    try {
      const answer = await this.#caller.fetch<BarrierInfo>({
        ...this.#call(verb, waitMs, this.#asked.current),
        signal,
      });
      this.#asked = undefined;
      return answer;
    } catch (error) {
      const isOpen = error instanceof UnavailableError || error instanceof OutcomeUnknownError;
      if (!isOpen || left() === 0) {
        throw error;
      }
      await sleep(WAIT_PAUSE_MS, signal);
      return undefined;
    }
  }

  #giveUp(name = this.name): Promise<void> {
    const asked = this.#asked;
    this.#asked = undefined;
    const leaveId = new LastingId();
    return this.#session.giveUp(this.#path("", name), () => this.#takeBack(name, asked, leaveId));
  }

  async #takeBack(name: string, asked: LastingId | undefined, leaveId: LastingId): Promise<void> {
    if (asked !== undefined) {
      await decided(this.#caller.send(this.#call("/enter", 0, asked.current)));
    }
    await decided(this.#caller.send(this.#call("/leave", 0, leaveId.current, name)));
  }

  #call(verb: string, waitMs: number, requestId: string, name = this.name): Call {
    const parties = verb === "/enter" ? this.parties : undefined;
    const body = { session: this.#session.id, parties, waitMs };
    const extras = { holdMs: waitMs, attemptMs: ATTEMPT_MS, about: { barrier: name } };
    return writeCall("POST", this.#path(verb, name), body, { requestId }, extras);
  }
}

/** Whether it is as it was wanted; `opened` is when it opened, by the answer before. */
function isDone(verb: string, answer: BarrierInfo, opened: string | undefined): boolean {
  if (verb === "/enter") {
    return answer.state === "open";
  }
  // One that is not open, or open anew, has been empty in between.
  return answer.state !== "open" || (opened !== undefined && answer.openedRevision !== opened);
}
