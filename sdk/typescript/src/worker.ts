/**
 * A worker: claims tasks, runs a handler for each, extends their claims meanwhile, and completes or fails them.
 *
 * Owns that no task is completed whose claim may be over, and that a stop gives back what it does not finish. Knows nothing of what a
 * task is about. How long one claim is certain to hold is `task-run`'s.
 */

import { LastingId } from "./call.js";
import type { Caller } from "./caller.js";
import { InvalidArgumentError, isQuorateError, type QuorateError } from "./errors.js";
import { checkOptions, duration, patienceOf, shownValue } from "./options.js";
import { type Ended, runTask, type TaskRun } from "./task-run.js";
import type { ClaimTasksOptions, Task, TaskQueue } from "./tasks.js";
import { after, anySignal, deferred, onAbort, sleep } from "./timing.js";

/** How long a claim waits for something to be due. */
const POLL_MS = 30_000;
/** How long after a failed claim the next one is made. */
const AFTER_TROUBLE_MS = 500;
/** Tasks of one claim. */
const CLAIM_MAX = 100;
const LEASE_DEFAULT_MS = 30_000;
const STOP_WITHIN_DEFAULT_MS = 30_000;

/** Does a task. When it is done the task is completed; what it throws is the reason to try again, see `TaskFailure`. */
export type TaskHandler<T> = (task: Task<T>, run: TaskRun) => unknown;

/** How a worker works. */
export interface WorkerOptions {
  /** Tasks at a time. Default 1. No more are claimed than there are free places. */
  readonly concurrency?: number | undefined;
  /** How long a claim holds before it is extended again, at least 1 s, default 30 s: so long it takes until others get what a dead worker had. */
  readonly leaseMs?: number | undefined;
  /** Who works, for people who look at the queue. */
  readonly name?: string | undefined;
  /**
   * How long tasks may go on after the stop before their handlers are told to stop, by `run.signal`, and they are given back. Default 30 s.
   * A task is given back once its handler has ended; one whose handler goes on for more than a lease after that is left to the end of its claim.
   */
  readonly stopWithinMs?: number | undefined;
  /** Stops the worker. */
  readonly signal?: AbortSignal | undefined;
  /** Is told of errors that the worker lives with: no node could be reached for a while, say. */
  readonly onTrouble?: ((error: QuorateError) => void) | undefined;
}

/** What a worker did until it was stopped. */
export interface WorkerReport {
  /** Tasks completed. */
  readonly completed: number;
  /** Attempts that failed. */
  readonly failed: number;
  /** Tasks whose claim was over before they were done, or may have been. */
  readonly lost: number;
  /** Tasks given back at the stop. */
  readonly released: number;
}

/** Runs until the signal is aborted; rejects with an error that does not go away, such as a wrong setting. */
export async function work<T>(
  queue: TaskQueue,
  caller: Caller,
  handler: TaskHandler<T>,
  options: WorkerOptions,
): Promise<WorkerReport> {
  checkOptions(options);
  return new Worker<T>(queue, caller, handler, options).run();
}

class Worker<T> {
  readonly #queue: TaskQueue;
  readonly #caller: Caller;
  readonly #handler: TaskHandler<T>;
  readonly #options: WorkerOptions;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #stopWithinMs: number;
  readonly #stop: { signal: AbortSignal; release(): void };
  readonly #giveBack = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #report: Record<Ended, number> = { completed: 0, failed: 0, lost: 0, released: 0 };
  /** Resolved when a place becomes free. */
  #freed = deferred<void>();

  constructor(queue: TaskQueue, caller: Caller, handler: TaskHandler<T>, options: WorkerOptions) {
    this.#queue = queue;
    this.#caller = caller;
    this.#handler = handler;
    this.#options = options;
    const { concurrency = 1 } = options;
    if (!(concurrency >= 1)) {
      throw new InvalidArgumentError(`\`concurrency\` is ${shownValue(concurrency)}: expected 1 or more`);
    }
    this.#concurrency = Math.floor(concurrency);
    this.#leaseMs = duration("leaseMs", options.leaseMs) ?? LEASE_DEFAULT_MS;
    this.#stopWithinMs = patienceOf("stopWithinMs", options.stopWithinMs) ?? STOP_WITHIN_DEFAULT_MS;
    this.#stop = anySignal(options.signal, caller.closed);
  }

  async run(): Promise<WorkerReport> {
    try {
      await this.#serve();
    } finally {
      await this.#drain();
      this.#stop.release();
    }
    return { ...this.#report };
  }

  /** Claims and starts tasks until the stop. */
  async #serve(): Promise<void> {
    const stop = this.#stop.signal;
    while (!stop.aborted) {
      const places = await this.#freePlaces();
      if (stop.aborted) {
        return;
      }
      this.#start(await this.#claim(places));
    }
  }

  /**
   * One claim, under one request id until its outcome is known: under another the tasks that it may have got would wait for the end of
   * their leases, each with an attempt less. At the stop it is asked once more, without a wait.
   */
  async #claim(places: number): Promise<Task<T>[]> {
    const stop = this.#stop.signal;
    const { name } = this.#options;
    const claim = { limit: Math.min(places, CLAIM_MAX), leaseMs: this.#leaseMs, worker: name };
    const id = new LastingId();
    let isOpen = false;
    while (!stop.aborted) {
      const asked = { ...claim, requestId: id.current, waitMs: POLL_MS, signal: stop };
      const claimed = await this.#tryClaim(asked);
      if (Array.isArray(claimed)) {
        return claimed;
      }
      // A claim that the stop broke off may have got something, and so may one whose outcome nobody could tell.
      isOpen ||= claimed === undefined || claimed.applied === "unknown";
      if (!isOpen) {
        await sleep(AFTER_TROUBLE_MS, stop).catch(() => {});
        return [];
      }
      await sleep(AFTER_TROUBLE_MS, stop).catch(() => {});
    }
    const last = isOpen ? await this.#tryClaim({ ...claim, requestId: id.current }) : [];
    return Array.isArray(last) ? last : [];
  }

  /** The tasks, or an error that may pass, which is told; `undefined` where the stop broke it off. */
  async #tryClaim(claim: ClaimTasksOptions): Promise<Task<T>[] | QuorateError | undefined> {
    try {
      return await this.#queue.claim<T>(claim);
    } catch (error) {
      if (isQuorateError(error) && error.isRetryable) {
        this.#tell(error);
        return error;
      }
      if (this.#stop.signal.aborted) {
        return undefined;
      }
      throw error;
    }
  }

  #start(tasks: readonly Task<T>[]): void {
    for (const task of tasks) {
      const running = this.#runOne(task).finally(() => {
        this.#running.delete(running);
        this.#freed.resolve();
      });
      this.#running.add(running);
    }
  }

  async #runOne(task: Task<T>): Promise<void> {
    const trouble = (error: QuorateError) => this.#tell(error);
    const ended = await runTask(task, this.#leaseMs, this.#handler, this.#giveBack.signal, trouble);
    this.#report[ended] += 1;
  }

  #tell(error: QuorateError): void {
    const { onTrouble } = this.#options;
    if (onTrouble !== undefined) {
      this.#caller.settings.troubles.call("`onTrouble` of a worker", onTrouble, error);
    }
  }

  /** How many places are free, once there is one, or the stop has come. */
  async #freePlaces(): Promise<number> {
    const stopped = onAbort(this.#stop.signal, () => this.#freed.resolve());
    try {
      while (this.#running.size >= this.#concurrency && !this.#stop.signal.aborted) {
        this.#freed = deferred();
        await this.#freed.promise;
      }
    } finally {
      stopped.cancel();
    }
    return this.#concurrency - this.#running.size;
  }

  /** Lets what runs go on for a while, and gives back what is not done by then. */
  async #drain(): Promise<void> {
    const timer = after(this.#stopWithinMs, () => this.#giveBack.abort());
    try {
      while (this.#running.size > 0) {
        await Promise.all([...this.#running]);
      }
    } finally {
      timer.cancel();
    }
  }
}
