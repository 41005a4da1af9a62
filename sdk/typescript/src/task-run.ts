/**
 * One task in a worker, from its claim to its end.
 *
 * Owns how long the claim is certain to hold, by this machine's clock: from before a request was sent on, so never longer than the
 * cluster lets it hold. What is not certain any more is neither completed nor failed.
 */

import { LastingId } from "./call.js";
import { isQuorateError, QuorateError } from "./errors.js";
import { duration } from "./options.js";
import type { Task } from "./tasks.js";
import { deferred, now, onAbort, sleep } from "./timing.js";

/** Before the end of a claim nothing is begun any more. */
const MARGIN_MAX_MS = 500;
/** How long after a failed extension or completion it is tried again. */
const AGAIN_AFTER_MS = 100;

/** How a task ended here. */
export type Ended = "completed" | "failed" | "lost" | "released";

/** What a handler knows of its run. */
export interface TaskRun {
  /**
   * Aborted once the claim may be over, or the worker has to stop: nothing more should be done for the task here. In the latter case it is
   * given back as soon as the handler has ended.
   */
  readonly signal: AbortSignal;
}

/** What a handler throws to say what is to become of its task; anything else that it throws is a reason to try again. */
export class TaskFailure extends Error {
  override name = "TaskFailure";
  /** The pause before the next attempt, where it is not the one that the task has. */
  readonly retryInMs: number | undefined;
  /** Whether it is not to be tried again. */
  readonly dead: boolean;
  /** Whether it is given back as if it had not been claimed. */
  readonly release: boolean;

  constructor(reason: string, then: { retryInMs?: number; dead?: boolean; release?: boolean } = {}) {
    super(reason);
    this.retryInMs = duration("retryInMs", then.retryInMs);
    this.dead = then.dead ?? false;
    this.release = then.release ?? false;
  }

  /** Try again after this pause. */
  static retryIn(reason: string, retryInMs: number): TaskFailure {
    return new TaskFailure(reason, { retryInMs });
  }

  /** Do not try again: it would fail again. */
  static dead(reason: string): TaskFailure {
    return new TaskFailure(reason, { dead: true });
  }

  /** Give the task back as if it had not been claimed: it was not tried, or not to its end. */
  static giveBack(): TaskFailure {
    return new TaskFailure("", { release: true });
  }
}

type Trouble = (error: QuorateError) => void;
type Handler<T> = (task: Task<T>, run: TaskRun) => unknown;

/** Runs the handler and settles what came of it. Never rejects. */
export async function runTask<T>(
  task: Task<T>,
  leaseMs: number,
  handler: Handler<T>,
  giveBack: AbortSignal,
  trouble: Trouble,
): Promise<Ended> {
  // Answered again when the claim was over already: there is not even a payload.
  if (task.leaseMs === 0) {
    return "lost";
  }
  const over = new AbortController();
  const claim = new Claim(task as Task, leaseMs, over, trouble);
  const ended = new AbortController();
  const keeping = claim.keep(ended.signal);
  const stopped = deferred<"stopped">();
  const listener = onAbort(giveBack, () => stopped.resolve("stopped"));
  try {
    const running = outcomeOf(() => handler(task, { signal: over.signal }));
    const outcome = await Promise.race([running, stopped.promise]);
    // What is done is not given back: it would be done again. The end of the claim bounds how long that is tried.
    return outcome === "stopped" ? await claim.giveBack(running) : await claim.settle(outcome);
  } finally {
    listener.cancel();
    ended.abort();
    await keeping;
  }
}

/** What the handler came to: a failure, or `undefined`. */
async function outcomeOf(work: () => unknown): Promise<TaskFailure | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return error instanceof TaskFailure
      ? error
      : new TaskFailure(error instanceof Error ? error.message : String(error));
  }
}

class Claim {
  /** Aborted once it may be over. */
  readonly #gone = new AbortController();
  readonly #task: Task;
  readonly #leaseMs: number;
  readonly #over: AbortController;
  readonly #trouble: Trouble;
  /** From then on it is not extended any more. */
  #keptUntil = Number.POSITIVE_INFINITY;

  constructor(task: Task, leaseMs: number, over: AbortController, trouble: Trouble) {
    this.#task = task;
    this.#leaseMs = leaseMs;
    this.#over = over;
    this.#trouble = trouble;
  }

  /**
   * Extends the claim at a third of its time, again and again, until the task has ended; tells when the claim may be over. After
   * {@link giveBack} for one or two more leases at most: a handler that does not end would keep it for ever.
   */
  async keep(ended: AbortSignal): Promise<void> {
    const margin = Math.min(this.#leaseMs / 10, MARGIN_MAX_MS);
    let held = this.#task.heldUntil - margin;
    let next = now() + Math.min(Math.max(held - now(), 0), this.#leaseMs) / 3;
    while (await this.#slept(Math.min(next, held), ended)) {
      const sent = now();
      if (sent >= held) {
        break;
      }
      if (sent >= this.#keptUntil) {
        next = held;
        continue;
      }
      const extended = await this.#extend(held - sent, ended);
      if (extended === "over") {
        break;
      }
      if (extended === "extended") {
        held = sent + this.#leaseMs - margin;
      }
      next = extended === "extended" ? sent + this.#leaseMs / 3 : now() + AGAIN_AFTER_MS;
    }
    this.#gone.abort();
    this.#over.abort();
  }

  /** Whether it slept until then, and was not woken by the end. */
  async #slept(until: number, ended: AbortSignal): Promise<boolean> {
    try {
      await sleep(until - now(), ended);
      return true;
    } catch {
      return false;
    }
  }

  async #extend(timeoutMs: number, signal: AbortSignal): Promise<"extended" | "over" | "again"> {
    try {
      await this.#task.extend(this.#leaseMs, { timeoutMs, signal });
      return "extended";
    } catch (error) {
      if (isOver(error)) {
        return "over";
      }
      this.#tell(error);
      return "again";
    }
  }

  /** Completes or fails the task, under one request id until that is decided or the claim may be over. */
  async settle(failure: TaskFailure | undefined): Promise<Ended> {
    const id = new LastingId();
    while (!this.#gone.signal.aborted) {
      try {
        return await this.#settleOnce(failure, id.current);
      } catch (error) {
        this.#tell(error);
        if (isOver(error) || !isQuorateError(error) || !error.isRetryable) {
          return "lost";
        }
      }
      await this.#slept(now() + AGAIN_AFTER_MS, this.#gone.signal);
    }
    return "lost";
  }

  async #settleOnce(failure: TaskFailure | undefined, requestId: string): Promise<Ended> {
    if (failure === undefined) {
      await this.#task.complete({ requestId });
      return "completed";
    }
    if (failure.release) {
      await this.#task.release({ requestId });
      return "released";
    }
    const { message: error, retryInMs, dead } = failure;
    await this.#task.fail({ error, retryInMs, dead, requestId });
    return "failed";
  }

  /**
   * Tells the handler to stop, and gives the task back once it has: others begin with it then, so that two would be at work. Whatever the
   * handler came to: it was told that nothing more should be done. One that does not end keeps the task until the claim is over.
   */
  async giveBack(running: Promise<unknown>): Promise<Ended> {
    this.#keptUntil = now() + (this.#leaseMs * 2) / 3;
    this.#over.abort();
    const isGone = await isAborted(this.#gone.signal, running);
    return isGone ? "lost" : this.settle(TaskFailure.giveBack());
  }

  #tell(error: unknown): void {
    if (error instanceof QuorateError && !isOver(error)) {
      this.#trouble(error);
    }
  }
}

/** Waits for the work, which never rejects; whether the signal was aborted before. */
async function isAborted(signal: AbortSignal, work: Promise<unknown>): Promise<boolean> {
  const aborted = deferred<true>();
  const listener = onAbort(signal, () => aborted.resolve(true));
  return Promise.race([work.then(() => false), aborted.promise]).finally(() => listener.cancel());
}

function isOver(error: unknown): boolean {
  return isQuorateError(error, "not_lock_holder");
}
