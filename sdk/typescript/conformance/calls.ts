/**
 * The calls of the suite on this client.
 *
 * Owns the way from the names of the HTTP API to those of the client and back. Arguments come in, answers go out as on the wire.
 */

import {
  type Claimed,
  type Client,
  type Entry,
  isQuorateError,
  type Leadership,
  type Lock,
  type Mirror,
  type Op,
  type QuorateError,
  type Session,
  type Task,
  type Watch,
  type WatchEvent,
} from "../src/index.js";
import { fromWire, toWire } from "../src/names.js";
import { closeStderr, wallAhead } from "./process.js";

/** What steps made, by the names that they gave it. */
export class Made {
  readonly sessions = new Map<string, Session>();
  readonly holds = new Map<string, Lock | Leadership>();
  readonly watches = new Map<string, Watch<unknown, WatchEvent>>();
  readonly mirrors = new Map<string, Mirror>();
}

/** A call with its arguments as they are here. */
// biome-ignore lint/suspicious/noExplicitAny: arguments are what a file of the suite says
type Args = any;

/** What a call works on. */
export interface Context {
  readonly client: Client;
  readonly made: Made;
  /** What the step is made on. */
  readonly of: string | undefined;
  /** The name of what the step makes. */
  readonly as: string | undefined;
  readonly signal: AbortSignal;
}

/** An error that this runner makes of an answer, since the client says it otherwise. */
class NotFound extends Error {
  readonly shown = { code: "not_found", applied: "no", retry: "after_reading" };
}

/** What a failed call shows to the suite; `undefined` where it is no error of the client's. */
export function shownError(error: unknown): Record<string, unknown> | undefined {
  if (error instanceof NotFound) {
    return error.shown;
  }
  if (!isQuorateError(error)) {
    return undefined;
  }
  const { code, applied, retry, current, oldestRevision, failed, errors }: QuorateError = error;
  return toWire({ code, applied, retry, current, oldestRevision, failed, errors }) as Record<string, unknown>;
}

function named<T>(map: ReadonlyMap<string, T>, name: string | undefined, what: string): T {
  const found = name === undefined ? undefined : map.get(name);
  if (found === undefined) {
    throw new Error(`there is no ${what} ${name}`);
  }
  return found;
}

function found<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new NotFound("there is none");
  }
  return value;
}

/** Keys alone, which are compared as they are: a list has no fields for those that are no text. */
class Keys {
  readonly keys: string[];

  constructor(entries: Iterable<Entry>) {
    this.keys = [...entries].map((entry) => entry.key);
  }
}

const session = ({ made, of }: Context) => named(made.sessions, of, "session");
const held = ({ made, of }: Context) => named(made.holds, of, "lock or leadership");
const mirror = ({ made, of }: Context) => named(made.mirrors, of, "mirror");

async function acquire(context: Context, { name, ...options }: Args): Promise<object> {
  const lock = await session(context).lock(name, { ...options, signal: context.signal });
  context.made.holds.set(context.as ?? "", lock);
  return { token: lock.guard.token };
}

async function history(context: Context, key: string): Promise<object> {
  const versions: object[] = [];
  for await (const { type, revision, entry } of context.client.history(key)) {
    versions.push({ type, revision, value: entry?.value });
  }
  return { versions };
}

function shownTask({
  id,
  token,
  attempt,
  maxAttempts,
  leaseMs,
  payload,
  lastError,
  executeAt,
  plannedAt,
}: Task): object {
  return { id, token, attempt, maxAttempts, leaseMs, payload, lastError, executeAt, plannedAt };
}

async function synced(context: Context, sync: boolean | undefined): Promise<Mirror> {
  const found = mirror(context);
  if (sync) {
    await found.sync();
  }
  return found;
}

/** Runs a worker until so many tasks are completed. */
async function work(context: Context, { queue, count, counter, fail = [] }: Args): Promise<object> {
  const stop = new AbortController();
  const failed = new Set<string>();
  let done = 0;
  const handler = async (task: Task) => {
    if (counter !== undefined) {
      const add = (value: { n: number } | undefined) => ({ n: (value?.n ?? 0) + 1 });
      await context.client.update<{ n: number }>(`${counter}/${task.id}`, add);
    }
    if (fail.includes(task.id) && !failed.has(task.id)) {
      failed.add(task.id);
      throw new Error("it fails the first time");
    }
    done += 1;
    if (done === count) {
      stop.abort();
    }
  };
  const signal = AbortSignal.any([stop.signal, context.signal]);
  const { completed, failed: failures } = await context.client
    .tasks(queue)
    .work(handler, { signal, leaseMs: 5_000 });
  return { completed, failed: failures };
}

/** With `part` and `of` as the client takes them. */
function parted({ part, of, ...options }: Args): object {
  return part === undefined ? options : { ...options, part: { index: part, of } };
}

/** All calls, by name. */
const CALLS: Record<string, (context: Context, args: Args) => Promise<unknown>> = {
  get: async ({ client }, { key, ...options }) => found(await client.get(key, options)),
  put: ({ client, signal }, { key, value, ...options }) => client.put(key, value, { ...options, signal }),
  insert: ({ client, signal }, { key, value, ...options }) =>
    client.insert(key, value, { ...options, signal }),
  replace: ({ client, signal }, { key, value, ...options }) =>
    client.replace(key, value, { ...options, signal }),
  remove: ({ client, signal }, { key, ...options }) => client.remove(key, { ...options, signal }),
  patch: ({ client, signal }, { key, patch, ...options }) => client.patch(key, patch, { ...options, signal }),
  touch: ({ client }, { key, ttlMs, ...options }) => client.touch(key, ttlMs, options),
  increment: ({ client, signal }, { key, path, by, ...options }) =>
    client.increment(key, path, by, { ...options, signal }),
  update: async ({ client, signal }, { key, by, ...options }) => {
    const add = (value: { n: number } | undefined) => ({ ...value, n: (value?.n ?? 0) + by });
    return { value: (await client.update<{ n: number }>(key, add, { ...options, signal })).value };
  },
  list: ({ client }, options) => client.list(parted(options)).page(),
  list_all: async ({ client }, options) =>
    new Keys(await client.list({ ...parted(options), keysOnly: true }).all()),
  find: ({ client }, options) => client.find(options).page(),
  count: ({ client }, options) => client.count(options),
  history: (context, { key }) => history(context, key),
  claim: async ({ client }, options) => {
    const answer = await client.claim(options);
    return { ...answer, entries: answer.entries.map((claimed: Claimed) => claimed.entry) };
  },
  update_where: ({ client }, options) => client.updateWhere(options),
  delete_where: ({ client }, options) => client.deleteWhere(options),
  bulk: ({ client }, { ops, ...options }) => client.bulk(ops, options),
  stream: async ({ client }, { ops, times = 1 }) => {
    const all: Op[] = Array.from({ length: times }, () => ops).flat();
    const [answers, codes] = [all.map(() => null as unknown), all.map(() => null as string | null)];
    for await (const { n, written, entry, error } of client.stream(all)) {
      answers[n] = written ?? entry ?? null;
      codes[n] = error?.code ?? null;
    }
    return { answers, codes, failed: codes.filter((code) => code !== null).length };
  },
  txn: ({ client, signal }, { dryRun, requestId, ...txn }) => client.txn(txn, { dryRun, requestId, signal }),
  get_and_lock: ({ client }, { key, ...options }) => client.getAndLock(key, options),
  unlock: ({ client }, { key, cas }) => client.unlockEntry(key, cas),
  request: async ({ client }, { requestId }) => found(await client.requestOutcome(requestId)),
  sequence_next: ({ client }, { name, count }) => client.sequence(name).next(count),
  session_open: ({ client }, options) => client.createSession(options),
  session_end: async (context, { session: id }) => {
    if (id !== undefined) {
      return context.client.sessionById(id).end();
    }
    await session(context).end();
    return { session: session(context).id, ended: true };
  },
  session_keep: async ({ client, made, as }, options) => {
    const kept = await client.session(options);
    made.sessions.set(as ?? "", kept);
    return { session: kept.id };
  },
  close_stderr: async () => {
    closeStderr();
    return {};
  },
  wall_ahead: async (_, { ms }) => {
    wallAhead(ms);
    return {};
  },
  session_state: async (context) => ({ state: session(context).state }),
  lock: (context, options) => acquire(context, { waitMs: 10_000, ...options }),
  lock_try: (context, options) => acquire(context, { ...options, waitMs: 0 }),
  unlock_named: async (context) => {
    await (held(context) as Lock).release({ signal: context.signal });
    return { released: true };
  },
  guarded_put: (context, { key, value, ...options }) =>
    context.client.put(key, value, { ...options, guard: held(context) }),
  campaign: async (context, { election, ...options }) => {
    const campaign = { waitMs: 10_000, ...options, signal: context.signal };
    const leadership = await session(context).campaign(election, campaign);
    context.made.holds.set(context.as ?? "", leadership);
    return { term: leadership.guard.token };
  },
  resign: async (context) => {
    await (held(context) as Leadership).resign({ signal: context.signal });
    return { resigned: true };
  },
  leader: async ({ client }, { election }) => ({
    leader: (await client.election(election).leader()) ?? null,
  }),
  barrier_enter: (context, { barrier, parties, waitMs }) =>
    session(context).barrier(barrier, parties, { waitMs, signal: context.signal }).enter(),
  latch_create: ({ client }, { latch, count }) => client.latch(latch).create(count),
  latch_count_down: ({ client }, { latch, by }) => client.latch(latch).countDown(by),
  latch_wait: ({ client, signal }, { latch, waitMs }) => client.latch(latch).wait(waitMs, { signal }),
  schedule: ({ client }, { queue, payload, ...options }) => client.tasks(queue).schedule(payload, options),
  task_claim: async ({ client, signal }, { queue, ...options }) => {
    const tasks = (await client.tasks(queue).claim({ ...options, signal })).map(shownTask);
    return { tasks, count: tasks.length };
  },
  task_complete: ({ client, signal }, { queue, id, token }) =>
    client.tasks(queue).complete(id, token, { signal }),
  task_fail: ({ client }, { queue, id, token, ...options }) => client.tasks(queue).fail(id, token, options),
  task: async ({ client }, { queue, id }) => found(await client.tasks(queue).get(id)),
  worker: work,
  mirror_get: async (context, { key, sync }) => found((await synced(context, sync)).get(key)),
  mirror_keys: async (context, { sync }) => new Keys(await synced(context, sync)),
  members: ({ client }) => client.cluster.members(),
  collection_put: ({ client }, { name, rules, cas }) =>
    client.collection(name).put(rules, cas === undefined ? {} : { cas }),
  collection_get: async ({ client }, { name }) => found(await client.collection(name).get()),
  collection_delete: ({ client }, { name }) => client.collection(name).remove(),
};

/** Makes a call; its answer as on the wire. */
export async function call(name: string, context: Context, args: object): Promise<unknown> {
  const made = CALLS[name];
  if (made === undefined) {
    throw new Error(`there is no call ${name}`);
  }
  const answer = await made(context, fromWire(args));
  return answer instanceof Keys ? answer : toWire(answer);
}

/** Begins a watch or a mirror. */
export async function start(what: string, { client, made, as = "" }: Context, args: object): Promise<void> {
  const options = fromWire(args) as object;
  if (what === "watch") {
    made.watches.set(as, await client.watch(parted(options)));
  } else if (what === "mirror") {
    made.mirrors.set(as, await client.mirror(options));
  } else {
    throw new Error(`there is no ${what} to start`);
  }
}

/** The next event of a watch, as on the wire. */
export async function next(name: string, { made }: Context): Promise<unknown> {
  const watch = named(made.watches, name, "watch");
  for (;;) {
    const { done, value } = await watch.next();
    if (done) {
      throw new Error(`the watch ${name} is at its end`);
    }
    // The suite counts initial entries by their keys: that they come anew is no event of its own.
    if (value.type !== "restarted") {
      return toWire(value);
    }
  }
}

/** Ends a watch or a mirror. */
export function stop(name: string, { made }: Context): void {
  const found = made.watches.get(name) ?? made.mirrors.get(name);
  if (found === undefined) {
    throw new Error(`there is no watch or mirror ${name}`);
  }
  found.close();
}
