/**
 * Timed tasks: queues that give out tasks once they are due.
 *
 * Owns the calls of a queue, and the handle of a claimed task. A worker that runs them is `worker`'s.
 */

import { namePath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { InvalidArgumentError } from "./errors.js";
import type { JsonInput, Storable } from "./json.js";
import type { Camel } from "./names.js";
import { checkOptions, duration } from "./options.js";
import { Pages } from "./pages.js";
import { now } from "./timing.js";
import { type CallOptions, type RequestOptions, type SessionSource, sessionOf, type Token } from "./types.js";
import type { Wire } from "./wire.js";
import { type TaskHandler, type WorkerOptions, type WorkerReport, work } from "./worker.js";

/** When a task is due, and how it is tried. */
export interface TaskOptions {
  /**
   * Makes it safe to schedule the same thing twice: while it is in use, nothing more is scheduled. Where that task is dead, the schedule
   * is refused (`already_exists`).
   */
  readonly id?: string | undefined;
  /** When it is due. */
  readonly executeAt?: Date | string | number | undefined;
  /** In how long it is due. */
  readonly delayMs?: number | undefined;
  /** It recurs so often. */
  readonly everyMs?: number | undefined;
  /** It recurs by this pattern, … */
  readonly cron?: string | undefined;
  /** … in this time zone. Default UTC. */
  readonly zone?: string | undefined;
  /** After so many attempts it is dead. Default 20. */
  readonly maxAttempts?: number | undefined;
  /** Pauses between attempts. */
  readonly backoff?: Camel<Wire["TaskBackoff"]> | undefined;
  /** How long its id stays in use after it was completed. */
  readonly keepMs?: number | undefined;
  /** Takes the place of a task of this id that waits or is dead; refused where that is worked on or was completed. */
  readonly replace?: boolean | undefined;
}

/** A task to be scheduled: what it is about, JSON or bytes, and when. */
export interface TaskSpec extends TaskOptions {
  /** What it is about: JSON or a `Uint8Array`. */
  readonly payload?: JsonInput | Uint8Array | undefined;
}

/** A task that was scheduled, or was there. */
export type TaskScheduled = Camel<Wire["TaskScheduled"]>;
/** Tasks that were scheduled at once. */
export type TasksScheduled = Camel<Wire["TasksScheduled"]>;
/** What became of a task. */
export type TaskAnswer = Camel<Wire["TaskAnswer"]>;
/** Tasks that were put back. */
export type TasksRequeued = Camel<Wire["TasksRequeued"]>;
/** A queue in numbers. */
export type QueueStats = Camel<Wire["QueueStats"]>;
/** In which state a task is. */
export type TaskState = Wire["TaskState"];

/** A task as it is. */
export interface TaskInfo<T = unknown> extends Omit<Camel<Wire["TaskView"]>, "payload" | "payloadBase64"> {
  /** What it is about; a `Uint8Array` where it was scheduled with one. */
  readonly payload?: T;
}

/** A page of tasks. */
export interface TaskPage<T = unknown> extends Omit<Camel<Wire["TaskList"]>, "tasks"> {
  /** The tasks of the page. */
  readonly tasks: TaskInfo<T>[];
}

/** How tasks are claimed. */
export interface ClaimTasksOptions extends RequestOptions {
  /** Most tasks, up to 100. Default 1. */
  readonly limit?: number | undefined;
  /** How long the claim holds, 1 s to 24 h. */
  readonly leaseMs?: number | undefined;
  /** How long to wait for something to be due, up to a minute. */
  readonly waitMs?: number | undefined;
  /** Who works on them, for people. */
  readonly worker?: string | undefined;
  /** The claim is over when this session ends, at the latest. */
  readonly session?: SessionSource | undefined;
}

/** How an attempt ended that did not complete its task. */
export interface TaskFailureOptions extends RequestOptions {
  /** Why. */
  readonly error?: string | undefined;
  /** Try again after this pause instead of the one that the task has. */
  readonly retryInMs?: number | undefined;
  /** Do not try again. */
  readonly dead?: boolean | undefined;
  /** Give it back as if it had not been claimed. */
  readonly release?: boolean | undefined;
}

interface ClaimedTask {
  readonly id: string;
  readonly token: Token;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly executeAt: string;
  readonly plannedAt: string;
  readonly leaseMs: number;
  readonly lastError?: string;
  readonly payload?: unknown;
}

/** Refuses a time that is none: JSON has no form for it but null, which is at once. */
function checkTask<Spec extends TaskOptions>(task: Spec): Spec {
  checkOptions(task);
  if (task.executeAt instanceof Date && Number.isNaN(task.executeAt.getTime())) {
    throw new InvalidArgumentError("`executeAt` is an invalid date");
  }
  return task;
}

/** A queue of tasks, from `client.tasks(queue)`. */
export class TaskQueue {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** Schedules a task: at once, if nothing else is said. */
  async schedule<T>(
    payload: (T & Storable<T>) | undefined,
    options: TaskOptions & RequestOptions & { dryRun?: boolean | undefined } = {},
  ): Promise<TaskScheduled> {
    checkOptions(options);
    const { requestId: _id, timeoutMs: _timeout, signal: _signal, ...task } = options;
    return this.#write("", { ...checkTask(task), payload }, options, task.id);
  }

  /** Schedules up to 1,000 tasks at once. */
  async scheduleAll(
    tasks: readonly TaskSpec[],
    options: RequestOptions & { dryRun?: boolean | undefined } = {},
  ): Promise<TasksScheduled> {
    tasks.forEach(checkTask);
    return this.#write("", { tasks, dryRun: options.dryRun || undefined }, options);
  }

  /** Claims tasks that are due; none where there are none in time. */
  async claim<T = unknown>(options: ClaimTasksOptions = {}): Promise<Task<T>[]> {
    checkOptions(options);
    const { limit, leaseMs, worker } = options;
    const waitMs = duration("waitMs", options.waitMs);
    const body = { limit, leaseMs, waitMs: waitMs || undefined, worker, session: sessionOf(options.session) };
    const began = now();
    const call = writeCall("POST", this.#path("/claim"), body, options, { holdMs: waitMs ?? 0 });
    const answer = await this.#caller.fetch<{ tasks: ClaimedTask[]; waitedMs: number }>(call);
    // The claim was made after the request came and had waited so long.
    const claimedAfter = began + answer.waitedMs;
    return answer.tasks.map((task) => new Task<T>(this, task, claimedAfter + task.leaseMs));
  }

  /** Lets a claim hold for so long from now. Rejects with `not_lock_holder` once it is over. */
  extend(id: string, token: Token, leaseMs?: number, options?: RequestOptions): Promise<TaskAnswer> {
    return this.#write("/extend", { id, token, leaseMs }, options, id);
  }

  /** A claimed task is done. Rejects with `not_lock_holder` once its claim is over. */
  complete(id: string, token: Token, options?: RequestOptions): Promise<TaskAnswer> {
    return this.#write("/complete", { id, token }, options, id);
  }

  /** An attempt failed: the task is tried again, as long as it has attempts left. */
  fail(id: string, token: Token, options: TaskFailureOptions = {}): Promise<TaskAnswer> {
    const { error, retryInMs } = options;
    const [dead, release] = [options.dead || undefined, options.release || undefined];
    return this.#write("/fail", { id, token, error, retryInMs, dead, release }, options, id);
  }

  /** Takes a task out of the queue. Rejects with `not_found`. */
  cancel(id: string, options?: RequestOptions): Promise<TaskAnswer> {
    return this.#write("/cancel", { id }, options, id);
  }

  /** Gives a dead task new attempts. Rejects with `not_found`. */
  requeue(id: string, options?: RequestOptions): Promise<TasksRequeued> {
    return this.#write("/requeue", { id }, options);
  }

  /** Gives the oldest dead tasks new attempts, so many of them. */
  requeueOldest(limit: number, options?: RequestOptions): Promise<TasksRequeued> {
    return this.#write("/requeue", { limit }, options);
  }

  /** The queue in numbers. */
  stats(options?: CallOptions): Promise<QueueStats> {
    return this.#caller.fetch(
      readCall(this.#path("/stats"), undefined, options, { about: { queue: this.name } }),
    );
  }

  /** A task, or `undefined`. */
  get<T = unknown>(id: string, options?: CallOptions): Promise<TaskInfo<T> | undefined> {
    return this.#caller.find(
      readCall(namePath(this.#path("/task/"), id), undefined, options, { about: { id } }),
    );
  }

  /** Tasks in this state, in the order in which they are due. */
  list<T = unknown>(
    state: TaskState,
    options: CallOptions & { limit?: number | undefined } = {},
  ): Pages<TaskInfo<T>, TaskPage<T>> {
    checkOptions(options);
    const { limit } = options;
    return new Pages(
      (cursor) => this.#caller.fetch(readCall(this.#path(), { state, limit, cursor }, options)),
      (page) => page.tasks,
    );
  }

  /**
   * Runs a handler for each task that is due, extends claims meanwhile, and completes or fails the tasks; until the signal is aborted, at
   * which it finishes what it has begun, and tells what it did.
   */
  work<T = unknown>(handler: TaskHandler<T>, options: WorkerOptions = {}): Promise<WorkerReport> {
    return work<T>(this, this.#caller, handler, options);
  }

  #write<Answer>(
    verb: string,
    body: object,
    options: RequestOptions | undefined,
    id?: string,
  ): Promise<Answer> {
    const extras = id === undefined ? {} : { about: { id } };
    return this.#caller.fetch(writeCall("POST", this.#path(verb), body, options, extras));
  }

  #path(verb = ""): string {
    return namePath("/v1/tasks/", this.name, verb);
  }
}

/** A task that is ours. What is done to it is refused with `not_lock_holder` once the claim is over. */
export class Task<T = unknown> {
  /** The queue that it is from. */
  readonly queue: TaskQueue;
  readonly id: string;
  /** The token of the claim. */
  readonly token: Token;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** When it was due. */
  readonly executeAt: string;
  /** The time that names one run of a recurring task. */
  readonly plannedAt: string;
  /** How long the claim held when it was made; 0 where it was over already when it was answered again. */
  readonly leaseMs: number;
  /** Why the last attempt failed. */
  readonly lastError: string | undefined;
  /** What it is about; a `Uint8Array` where it was scheduled with one. */
  readonly payload: T;
  /** Until when the claim holds at least, as it was made, on the clock of `performance.now()`. */
  readonly heldUntil: number;

  /** Tasks come from a queue. */
  constructor(queue: TaskQueue, task: ClaimedTask, heldUntil: number) {
    this.queue = queue;
    this.id = task.id;
    this.token = task.token;
    this.attempt = task.attempt;
    this.maxAttempts = task.maxAttempts;
    this.executeAt = task.executeAt;
    this.plannedAt = task.plannedAt;
    this.leaseMs = task.leaseMs;
    this.lastError = task.lastError;
    this.payload = task.payload as T;
    this.heldUntil = heldUntil;
  }

  /** Lets the claim hold for so long from now. */
  extend(leaseMs?: number, options?: RequestOptions): Promise<TaskAnswer> {
    return this.queue.extend(this.id, this.token, leaseMs, options);
  }

  /** It is done. */
  complete(options?: RequestOptions): Promise<TaskAnswer> {
    return this.queue.complete(this.id, this.token, options);
  }

  /** The attempt failed. */
  fail(options: TaskFailureOptions = {}): Promise<TaskAnswer> {
    return this.queue.fail(this.id, this.token, options);
  }

  /** Gives it back as if it had not been claimed. */
  release(options?: RequestOptions): Promise<TaskAnswer> {
    return this.queue.fail(this.id, this.token, { ...options, release: true });
  }
}
