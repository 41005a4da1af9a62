/** Latches: counted down to 0, where they open for good. They hang on no session. Owns the waiting for one. */

import { namePath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { UnavailableError } from "./errors.js";
import { patienceOf } from "./options.js";
import { WAIT_PAUSE_MS } from "./retry.js";
import { now, sleep } from "./timing.js";
import type { CallOptions, LatchInfo, LatchRemoved, RequestOptions } from "./types.js";

/** A node holds a question back for at most this long: if it has died silently, another is asked soon. */
const POLL_MAX_MS = 5_000;
/** A node that is silent for so long after that is left for another. */
const ATTEMPT_MS = 1_000;

/** A latch by its name, from `client.latch(name)`. */
export class Latch {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** Makes it: it opens after so many counts. The same again changes nothing; another count rejects with `different_settings`. */
  create(count: number, options?: RequestOptions): Promise<LatchInfo> {
    return this.#caller.fetch(writeCall("PUT", this.#path(), { count }, options, this.#about));
  }

  /** Counts it down; more than is left is as good as what is left. Rejects with `not_found`. */
  countDown(by = 1, options?: RequestOptions): Promise<LatchInfo> {
    return this.#caller.fetch(writeCall("POST", this.#path("/count_down"), { by }, options, this.#about));
  }

  /** Removes it. Rejects with `not_found`. */
  remove(options?: RequestOptions): Promise<LatchRemoved> {
    return this.#caller.fetch(writeCall("DELETE", this.#path(), undefined, options, this.#about));
  }

  /** What it is now. Rejects with `not_found`. */
  get(options: CallOptions = {}): Promise<LatchInfo> {
    return this.#look(0, options);
  }

  /** Waits until it is open, at most so long; tells what it is then. Rejects with `not_found`. */
  async wait(waitMs: number, options: CallOptions = {}): Promise<LatchInfo> {
    const wanted = patienceOf("waitMs", waitMs) ?? 0;
    const started = now();
    for (;;) {
      const left = Math.max(0, Math.ceil(wanted - (now() - started)));
      try {
        const answer = await this.#look(Math.min(left, POLL_MAX_MS), options);
        if (answer.open || left === 0) {
          return answer;
        }
      } catch (error) {
        if (!(error instanceof UnavailableError) || left === 0) {
          throw error;
        }
        await sleep(WAIT_PAUSE_MS, options.signal);
      }
    }
  }

  #look(waitMs: number, options: CallOptions): Promise<LatchInfo> {
    const query = { wait_ms: waitMs === 0 ? undefined : waitMs };
    return this.#caller.fetch(
      readCall(this.#path(), query, options, { ...this.#about, holdMs: waitMs, attemptMs: ATTEMPT_MS }),
    );
  }

  get #about() {
    return { about: { latch: this.name } };
  }

  #path(verb = ""): string {
    return namePath("/v1/latches/", this.name, verb);
  }
}
