/** Requests about timed tasks: queues, their tasks, and what an operator does to one. */

import type {
  QueuePage,
  QueueStats,
  TaskAnswer,
  TaskInfo,
  TaskPage,
  TaskScheduled,
  TaskState,
  TasksRequeued,
} from "quorate";
import { shownName } from "../text/named.js";
import type { Stored } from "./entries.js";
import type { JsonText } from "./json-text.js";
import { pythonOptions, pythonValue, text, typescriptOptions, typescriptValue } from "./literals.js";
import { type Request, target } from "./request.js";

/** A task with what it is about. */
export type StoredTask = TaskInfo<Stored>;

function queueTarget(queue: string, rest = ""): string {
  return `/v1/tasks/${encodeURIComponent(queue)}${rest}`;
}

/** A page of all queues, by name. */
export function listQueues(limit: number, cursor?: string): Request<QueuePage> {
  return {
    title: "List the queues of tasks",
    writes: false,
    http: { method: "GET", target: target("/v1/tasks", { limit, cursor }) },
    cli: ["task", "list", "--limit", String(limit), ...(cursor === undefined ? [] : ["--cursor", cursor])],
    python: `print(client.task_queues(limit=${limit}${pythonOptions({ cursor: cursor && text(cursor) })}))`,
    typescript: `console.log(await client.taskQueues({ limit: ${limit} }).page(${cursor === undefined ? "" : text(cursor)}));`,
    run: (client, signal) => client.taskQueues({ limit, signal }).page(cursor),
  };
}

/** A queue in numbers. */
export function readQueue(queue: string): Request<QueueStats> {
  return {
    title: `Read what the queue \`${shownName(queue)}\` counts`,
    writes: false,
    http: { method: "GET", target: queueTarget(queue, "/stats") },
    cli: ["task", "show", queue],
    python: `print(client.tasks(${text(queue)}).stats())`,
    typescript: `console.log(await client.tasks(${text(queue)}).stats());`,
    run: (client, signal) => client.tasks(queue).stats({ signal }),
  };
}

/** Which tasks are listed. */
export interface TaskRange {
  readonly queue: string;
  readonly state: TaskState;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** A page of the tasks in a state, in the order in which they are due. */
export function listTasks({ queue, state, limit, cursor }: TaskRange): Request<TaskPage<Stored>> {
  const list = `client.tasks(${text(queue)}).list(${text(state)}`;
  return {
    title: `List the tasks of \`${shownName(queue)}\` that are ${state}`,
    writes: false,
    http: { method: "GET", target: target(queueTarget(queue), { state, limit, cursor }) },
    cli: [
      "task",
      "list",
      queue,
      "--state",
      state,
      "--limit",
      String(limit),
      ...(cursor === undefined ? [] : ["--cursor", cursor]),
    ],
    python: `print(${list}, limit=${limit}${pythonOptions({ cursor: cursor && text(cursor) })}))`,
    typescript: `console.log(await ${list}, { limit: ${limit} }).page(${cursor === undefined ? "" : text(cursor)}));`,
    run: (client, signal) => client.tasks(queue).list<Stored>(state, { limit, signal }).page(cursor),
  };
}

/** One task; `undefined` where there is none. */
export function readTask(queue: string, id: string): Request<StoredTask | undefined> {
  return {
    title: `Read the task \`${shownName(id)}\` of \`${shownName(queue)}\``,
    writes: false,
    http: { method: "GET", target: queueTarget(queue, `/task/${encodeURIComponent(id)}`) },
    cli: ["task", "show", queue, id],
    python: `print(client.tasks(${text(queue)}).get(${text(id)}))`,
    typescript: `console.log(await client.tasks(${text(queue)}).get(${text(id)}));`,
    run: (client, signal) => client.tasks(queue).get<Stored>(id, { signal }),
  };
}

/** Gives a dead task new attempts. */
export function requeueTask(queue: string, id: string): Request<TasksRequeued> {
  return {
    title: `Give the dead task \`${shownName(id)}\` of \`${shownName(queue)}\` new attempts`,
    writes: true,
    http: { method: "POST", target: queueTarget(queue, "/requeue"), body: JSON.stringify({ id }) },
    cli: ["task", "requeue", queue, id],
    python: `client.tasks(${text(queue)}).requeue(${text(id)})`,
    typescript: `await client.tasks(${text(queue)}).requeue(${text(id)});`,
    run: (client, signal) => client.tasks(queue).requeue(id, { signal }),
  };
}

/** Gives those that died first new attempts. */
export function requeueOldest(queue: string, limit: number): Request<TasksRequeued> {
  return {
    title: `Give the ${limit} tasks of \`${shownName(queue)}\` that died first new attempts`,
    writes: true,
    http: { method: "POST", target: queueTarget(queue, "/requeue"), body: JSON.stringify({ limit }) },
    cli: ["task", "requeue", queue, "--limit", String(limit)],
    python: `client.tasks(${text(queue)}).requeue(oldest=${limit})`,
    typescript: `await client.tasks(${text(queue)}).requeueOldest(${limit});`,
    run: (client, signal) => client.tasks(queue).requeueOldest(limit, { signal }),
  };
}

/** Takes a task out of its queue. */
export function cancelTask(queue: string, id: string): Request<TaskAnswer> {
  return {
    title: `Take the task \`${shownName(id)}\` out of \`${shownName(queue)}\``,
    writes: true,
    http: { method: "POST", target: queueTarget(queue, "/cancel"), body: JSON.stringify({ id }) },
    cli: ["task", "cancel", queue, id],
    python: `client.tasks(${text(queue)}).cancel(${text(id)})`,
    typescript: `await client.tasks(${text(queue)}).cancel(${text(id)});`,
    run: (client, signal) => client.tasks(queue).cancel(id, { signal }),
  };
}

/** Says that a claimed task is done, by the token of its claim. */
export function completeTask(queue: string, id: string, token: string): Request<TaskAnswer> {
  return {
    title: `Say that the task \`${shownName(id)}\` of \`${shownName(queue)}\` is done`,
    writes: true,
    http: { method: "POST", target: queueTarget(queue, "/complete"), body: JSON.stringify({ id, token }) },
    cli: ["task", "complete", queue, id, token],
    python: `client.tasks(${text(queue)}).complete(${text(id)}, ${token})`,
    typescript: `await client.tasks(${text(queue)}).complete(${text(id)}, ${text(token)});`,
    run: (client, signal) => client.tasks(queue).complete(id, token, { signal }),
  };
}

/** When a task is due: at once, in so long, at a moment, or again and again. */
export type TaskTiming =
  | { readonly kind: "now" }
  | { readonly kind: "delay"; readonly delayMs: number }
  | { readonly kind: "at"; readonly executeAt: string }
  | { readonly kind: "every"; readonly everyMs: number }
  | { readonly kind: "cron"; readonly cron: string; readonly zone: string };

/** A task to be scheduled. */
export interface NewTask {
  readonly queue: string;
  readonly payload: JsonText;
  /** Empty for one that the cluster makes. */
  readonly id: string;
  readonly timing: TaskTiming;
  readonly maxAttempts: number | undefined;
}

/** Schedules a task. */
export function scheduleTask({ queue, payload, id, timing, maxAttempts }: NewTask): Request<TaskScheduled> {
  const options = {
    id: id === "" ? undefined : id,
    executeAt: timing.kind === "at" ? timing.executeAt : undefined,
    delayMs: timing.kind === "delay" ? timing.delayMs : undefined,
    everyMs: timing.kind === "every" ? timing.everyMs : undefined,
    cron: timing.kind === "cron" ? timing.cron : undefined,
    zone: timing.kind === "cron" && timing.zone !== "" ? timing.zone : undefined,
    maxAttempts,
  };
  const wire = {
    id: options.id,
    execute_at: options.executeAt,
    delay_ms: options.delayMs,
    every_ms: options.everyMs,
    cron: options.cron,
    zone: options.zone,
    max_attempts: maxAttempts,
  };
  const said = JSON.stringify(wire).slice(1, -1);
  const typescript = typescriptOptions(literalsOf(options));
  return {
    title: `Schedule a task in \`${shownName(queue)}\``,
    writes: true,
    http: {
      method: "POST",
      target: queueTarget(queue),
      body: `{${said}${said && ","}"payload":${payload.text}}`,
    },
    cli: ["task", "schedule", queue, payload.text, ...cliOf(options)],
    python: `client.tasks(${text(queue)}).schedule(${pythonValue(payload.text)}${pythonOptions(
      literalsOf({
        id: options.id,
        at: options.executeAt,
        delay: seconds(options.delayMs),
        every: seconds(options.everyMs),
        cron: options.cron,
        zone: options.zone,
        max_attempts: maxAttempts,
      }),
    )})`,
    typescript: `await client.tasks(${text(queue)}).schedule(${typescriptValue(payload.text)}${typescript && `, ${typescript}`});`,
    run: (client, signal) => client.tasks(queue).schedule(payload, { ...options, signal }),
  };
}

type Scalars = Readonly<Record<string, string | number | undefined>>;

function literalsOf(options: Scalars): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      typeof value === "string" ? text(value) : value === undefined ? undefined : String(value),
    ]),
  );
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

function cliOf(options: Scalars): string[] {
  const words: Readonly<Record<string, (value: string) => string[]>> = {
    id: (value) => ["--id", value],
    executeAt: (value) => ["--at", value],
    delayMs: (value) => ["--delay", `${value}ms`],
    everyMs: (value) => ["--every", `${value}ms`],
    cron: (value) => ["--cron", value],
    zone: (value) => ["--zone", value],
    maxAttempts: (value) => ["--max-attempts", value],
  };
  return Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : (words[name]?.(String(value)) ?? []),
  );
}
