/**
 * Watches: the changes of some keys as they happen, over whatever happens to nodes and connections.
 *
 * Owns where a watch is: which revisions were handed out whole. Whatever breaks, it goes on at another node right behind them, so
 * nobody is shown an event twice, out of order, or a part of a transaction.
 */

import { type Call, readCall } from "./call.js";
import type { Caller } from "./caller.js";
import { InvalidArgumentError } from "./errors.js";
import { EventStream, endError } from "./events.js";
import { stringifyJson } from "./json.js";
import { toWire } from "./names.js";
import { checkNarrowing, type NamesOf, patienceOf } from "./options.js";
import { type Part, partQuery } from "./queries.js";
import type { Message } from "./sse.js";
import { anySignal, asyncDispose } from "./timing.js";
import { type Criteria, compareRevisions, criteriaOf, type Entry, type Revision } from "./types.js";
import type { Wire } from "./wire.js";

/** How often a silent node says that it is there, where nothing else is asked for. */
const HEARTBEAT_DEFAULT_MS = 5_000;

/** What is watched, and how. */
export interface WatchOptions {
  /** Only this key. */
  readonly key?: string | undefined;
  /** The keys that begin so; all keys without `key`, `prefix` and `start`. */
  readonly prefix?: string | undefined;
  /** The keys from this one on, … */
  readonly start?: string | undefined;
  /** … and before this one. */
  readonly end?: string | undefined;
  /** First all entries as they are, then what changes. */
  readonly initial?: boolean | undefined;
  /** From this revision on. Fails with `compacted` where that can no longer be read. */
  readonly from?: Revision | undefined;
  /** Only changes of entries of which this holds, after the change, or before it where they are gone. */
  readonly where?: Criteria | undefined;
  /** Only changes of keys of this part. */
  readonly part?: Part | undefined;
  /** Only events of this kind. */
  readonly events?: Wire["WatchEventKind"] | undefined;
  /** With the entry as it was before each change. */
  readonly prev?: boolean | undefined;
  /** Without values. */
  readonly keysOnly?: boolean | undefined;
  /** `local` begins with whatever the asked node has, maybe stale. */
  readonly consistency?: Wire["ReadConsistency"] | undefined;
  /** How often a node says that it is there while nothing happens: 0.5 to 60 s, default 5 s. One that is silent for three times as long is left. */
  readonly heartbeatMs?: number | undefined;
  /** For how long to try to go on after a break; without it for ever. The first stream has the deadline of the client in any case. */
  readonly patienceMs?: number | undefined;
  /** Ends the watch: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** An entry was written. */
export interface PutEvent<T = unknown> {
  /** What happened. */
  readonly type: "put";
  /** Which key. */
  readonly key: string;
  /** The revision of the change. */
  readonly revision: Revision;
  /** The entry after it. */
  readonly entry: Entry<T>;
  /** The entry as it was before, where that was asked for. */
  readonly prev?: Entry<T>;
  /** Whether it was there when the watch began. */
  readonly initial?: boolean;
  /** Which change of its revision it is. */
  readonly index?: number;
}

/** An entry is gone. */
export interface DeleteEvent<T = unknown> {
  /** What happened. */
  readonly type: "delete";
  /** Which key. */
  readonly key: string;
  /** The revision of the change. */
  readonly revision: Revision;
  /** Why it is gone. */
  readonly cause?: Wire["DeleteCause"];
  /** The entry as it was before, where that was asked for. */
  readonly prev?: Entry<T>;
  /** Which change of its revision it is. */
  readonly index?: number;
}

/** A change of an entry. */
export type ChangeEvent<T = unknown> = PutEvent<T> | DeleteEvent<T>;

/** What a watch with `initial` says of its begin. */
export type InitialEvent =
  /** All initial entries were handed out, as of this revision; changes follow. */
  | { readonly type: "synced"; readonly revision: Revision }
  /** The stream broke among the initial entries: those handed out so far count no more, all of them come anew. */
  | { readonly type: "restarted" };

/** What a watch hands out. */
export type WatchEvent<T = unknown> = ChangeEvent<T> | InitialEvent;

const NAMES: NamesOf<WatchOptions> = {
  key: true,
  prefix: true,
  start: true,
  end: true,
  initial: true,
  from: true,
  where: true,
  part: true,
  events: true,
  prev: true,
  keysOnly: true,
  consistency: true,
  heartbeatMs: true,
  patienceMs: true,
  signal: true,
};

/** The parameters of the stream, the same for each try. */
function query(options: WatchOptions) {
  const { key, prefix, start, end, events, consistency, from } = options;
  const named = [key, prefix, start].filter((keys) => keys !== undefined);
  if (named.length > 1 || (end !== undefined && start === undefined)) {
    throw new InvalidArgumentError("a watch is of a `key`, a `prefix`, or a range from `start` to `end`");
  }
  const criteria = criteriaOf(options.where);
  return {
    key,
    prefix: named.length === 0 ? "" : prefix,
    start,
    end,
    events,
    consistency,
    from,
    ...partQuery(options.part),
    where: criteria === undefined ? undefined : stringifyJson(toWire(criteria)),
    initial: options.initial || undefined,
    prev: options.prev || undefined,
    keys_only: options.keysOnly || undefined,
    heartbeat_ms: options.heartbeatMs ?? HEARTBEAT_DEFAULT_MS,
  };
}

/** What came together: the events of whole revisions, and the revision up to which everything was handed out by then. */
export interface Batch<T> {
  readonly events: WatchEvent<T>[];
  readonly revision: Revision | undefined;
}

/** Where a watch is, and the stream that it reads: what a {@link Watch} and a mirror stand on. */
export class WatchStream<T> {
  readonly #caller: Caller;
  readonly #options: WatchOptions;
  readonly #call: Call;
  readonly #heartbeatMs: number;
  readonly #stop = new AbortController();
  readonly #signal: { signal: AbortSignal; release(): void };
  #stream: EventStream | undefined;
  /** Everything up to this revision was handed out. */
  #position: Revision | undefined;
  /** Events of a revision of which more may come. */
  #incomplete: ChangeEvent<T>[] = [];
  #isSynced: boolean;
  /** Whether initial entries were handed out that a new stream would bring again. */
  #hasInitial = false;
  #isRestarted = false;

  constructor(caller: Caller, options: WatchOptions) {
    checkNarrowing(options, NAMES);
    patienceOf("patienceMs", options.patienceMs);
    this.#caller = caller;
    this.#options = options;
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_DEFAULT_MS;
    this.#isSynced = !options.initial;
    this.#signal = anySignal(options.signal, this.#stop.signal, caller.closed);
    const about = options.key === undefined ? {} : { about: { key: options.key } };
    this.#call = readCall("/v1/watch", query(options), { signal: this.#signal.signal }, about);
  }

  /** Begins it: from when this returns on, nothing is missed. */
  async start(): Promise<void> {
    try {
      await this.#connect(this.#caller.settings.timeoutMs);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Everything up to this revision was handed out; `undefined` before all initial entries came. */
  get revision(): Revision | undefined {
    return this.#position;
  }

  /** Whether it was ended here. */
  get isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Ends it. */
  close(): void {
    this.#stop.abort();
    this.#stream?.close();
    this.#signal.release();
  }

  /** What comes next, maybe only another revision. Rejects where it makes no sense to go on. */
  async next(): Promise<Batch<T>> {
    for (;;) {
      this.#signal.signal.throwIfAborted();
      if (this.#stream === undefined) {
        await this.#connect(this.#options.patienceMs);
      }
      if (this.#isRestarted) {
        this.#isRestarted = false;
        return { events: [{ type: "restarted" }], revision: this.#position };
      }
      const batch = await this.#step();
      if (batch !== undefined) {
        return batch;
      }
    }
  }

  async #step(): Promise<Batch<T> | undefined> {
    const stream = this.#stream;
    const message = await stream?.next();
    if (stream === undefined || message === undefined) {
      this.#signal.signal.throwIfAborted();
      this.#leave();
      return undefined;
    }
    return this.#take(stream, message);
  }

  /** Leaves a stream that is of no more use. What did not come whole comes again. */
  #leave(): void {
    this.#stream?.fail();
    this.#stream = undefined;
    this.#incomplete = [];
  }

  /** Opens a stream that goes on from where the watch is. */
  async #connect(patienceMs: number | undefined): Promise<void> {
    const goesOn = this.#isSynced && this.#position !== undefined;
    const headers: Record<string, string> = goesOn ? { "last-event-id": String(this.#position) } : {};
    const stream = await EventStream.open(
      this.#caller,
      { ...this.#call, headers },
      this.#heartbeatMs,
      patienceMs,
    );
    this.#stream = stream;
    this.#isRestarted = !this.#isSynced && this.#hasInitial;
    this.#hasInitial &&= this.#isSynced;
    if (this.#isSynced && this.#position === undefined) {
      const { from } = this.#options;
      this.#position = from === undefined ? stream.revision : String(BigInt(from) - 1n);
    }
  }

  #take(stream: EventStream, message: Message): Batch<T> | undefined {
    switch (message.name) {
      case "put":
      case "delete":
        return this.#change(stream.read<ChangeEvent<T>>(message), message.id !== undefined);
      case "synced": {
        const { revision } = stream.read<{ revision: Revision }>(message);
        this.#position = revision;
        this.#isSynced = true;
        return { events: [{ type: "synced", revision }], revision };
      }
      case "progress": {
        const { revision } = stream.read<{ revision: Revision }>(message);
        if (this.#position === undefined || compareRevisions(revision, this.#position) > 0) {
          this.#position = this.#isSynced ? revision : undefined;
        }
        this.#caller.onSignOfLife(stream.node);
        return { events: [], revision: this.#position };
      }
      case "end": {
        const error = endError(stream.read(message));
        this.#leave();
        if (error !== undefined) {
          throw error;
        }
        return undefined;
      }
      default:
        // Of a later version.
        return undefined;
    }
  }

  #change(event: ChangeEvent<T>, isLast: boolean): Batch<T> | undefined {
    if (event.type === "put" && event.initial) {
      this.#hasInitial = true;
      return { events: [event], revision: this.#position };
    }
    this.#incomplete.push(event);
    if (!isLast) {
      return undefined;
    }
    const events = this.#incomplete;
    this.#incomplete = [];
    this.#position = event.revision;
    return { events, revision: event.revision };
  }
}

/** A watch that goes on by itself, at another node where it has to. Ends with the loop over it, with {@link close}, or its signal. */
export class Watch<T = unknown, Event extends WatchEvent<T> = WatchEvent<T>>
  implements AsyncIterableIterator<Event>
{
  readonly #stream: WatchStream<T>;
  #ready: WatchEvent<T>[] = [];
  /** The `next` before, after which the following one is served. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(stream: WatchStream<T>) {
    this.#stream = stream;
  }

  /**
   * The revision up to which everything was handed out, or is about to be. A new watch `from` the one after it goes on where this one
   * is; `undefined` before all initial entries came.
   */
  get revision(): Revision | undefined {
    return this.#stream.revision;
  }

  /**
   * The next event. Breaks are gone over, so this rejects only where it makes no sense to go on: with `compacted` where what follows
   * is lost to this watch, and a new one with `initial` is the way out; or once its patience is at its end.
   */
  next(): Promise<IteratorResult<Event, undefined>> {
    const turn = this.#turn.then(() => this.#next());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #next(): Promise<IteratorResult<Event, undefined>> {
    while (!this.#stream.isClosed) {
      const event = this.#ready.shift();
      if (event !== undefined) {
        return { done: false, value: event as Event };
      }
      try {
        this.#ready = (await this.#stream.next()).events;
      } catch (error) {
        if (!this.#stream.isClosed) {
          this.#stream.close();
          throw error;
        }
      }
    }
    return { done: true, value: undefined };
  }

  /** Ends it: a `next` that waits is done. */
  close(): void {
    this.#stream.close();
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }
}
