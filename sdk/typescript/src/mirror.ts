/**
 * A prefix kept in memory: listed once, then followed by a watch.
 *
 * Owns the following, and what is said of how far it is. What is kept, and how it is found, is `mirror-entries`'.
 */

import type { Caller } from "./caller.js";
import { BehindError, InvalidArgumentError } from "./errors.js";
import { MirrorEntries } from "./mirror-entries.js";
import { checkNarrowing, checkOptions, type NamesOf, patienceOf } from "./options.js";
import { list, type Part } from "./queries.js";
import { after, asyncDispose, deferred, now, onAbort, orAborted, sleep } from "./timing.js";
import { type CallOptions, compareRevisions, type Entry, type Revision } from "./types.js";
import { type ChangeEvent, type WatchEvent, WatchStream } from "./watch.js";

/** How often a silent node says how far it is: so long a sync may take while nothing changes. The shortest that nodes take. */
const HEARTBEAT_DEFAULT_MS = 500;
/** Changes that a slow reader may be behind. */
const CHANGES_KEPT = 1_024;
/** Pauses before a watch that failed is begun anew. */
const AGAIN_MIN_MS = 50;
const AGAIN_MAX_MS = 5_000;

/** What is mirrored, and how. */
export interface MirrorOptions {
  /** The keys that begin so; all keys without it. */
  readonly prefix?: string | undefined;
  /** Only the entries whose keys are in this part. */
  readonly part?: Part | undefined;
  /** Entries are found by these fields too: dotted paths or JSON pointers into the document. */
  readonly indexBy?: readonly string[] | undefined;
  /** How often a node says how far it is while nothing happens: 0.5 to 60 s, default 0.5 s. */
  readonly heartbeatMs?: number | undefined;
  /** Closes it. */
  readonly signal?: AbortSignal | undefined;
}

const NAMES: NamesOf<MirrorOptions> = {
  prefix: true,
  part: true,
  indexBy: true,
  heartbeatMs: true,
  signal: true,
};

/** What happened to a mirror: an entry changed, or anything may have, since it was filled anew or the listener was too slow. */
export type MirrorChange<T = unknown> =
  | {
      readonly type: "entry";
      readonly key: string;
      /** As it is now; `undefined`: it is gone. */
      readonly entry: Entry<T> | undefined;
      /** As the mirror knew it before. */
      readonly before: Entry<T> | undefined;
      readonly revision: Revision;
    }
  | { readonly type: "resynced"; readonly revision: Revision };

/** Changes for one loop over them. */
class Inbox<T> {
  readonly pending: MirrorChange<T>[] = [];
  wake = () => {};

  /** Takes a change; too many become one of `resynced`. */
  put(change: MirrorChange<T>, revision: Revision): void {
    if (this.pending.length >= CHANGES_KEPT) {
      this.pending.length = 0;
      this.pending.push({ type: "resynced", revision });
    } else {
      this.pending.push(change);
    }
    this.wake();
  }
}

/**
 * All entries below a prefix, in memory, kept as they are in the cluster until it is closed.
 *
 * Reads are answered at once, from what this process knows: they may be a moment old ({@link stalenessMs}), but each shows whole
 * transactions only, and never goes back in time. Who needs to see every write that was acknowledged before calls {@link sync} first.
 */
export class Mirror<T = unknown> implements Iterable<Entry<T>> {
  readonly prefix: string;
  readonly #caller: Caller;
  readonly #options: MirrorOptions;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<(change: MirrorChange<T>) => void>();
  /** Of the loops over {@link changes}. Weak: one that nobody goes on with, or has begun, is nobody's. */
  readonly #inboxes = new Set<WeakRef<Inbox<T>>>();
  /** Those of them that are waited at. */
  readonly #awaited = new Set<Inbox<T>>();
  readonly #waiting = new Set<() => void>();
  #stream: WatchStream<T> | undefined;
  #entries: MirrorEntries<T>;
  #revision: Revision = "0";
  #heard = now();
  #trouble: unknown;

  private constructor(caller: Caller, options: MirrorOptions) {
    this.#caller = caller;
    this.#options = options;
    this.prefix = options.prefix ?? "";
    this.#entries = new MirrorEntries(options.indexBy ?? []);
  }

  /** @internal Mirrors come from `client.mirror()`. Resolves once all is there. */
  static async start<T>(caller: Caller, options: MirrorOptions): Promise<Mirror<T>> {
    checkNarrowing(options, NAMES);
    const mirror = new Mirror<T>(caller, options);
    onAbort(options.signal, () => mirror.close());
    try {
      await orAborted(mirror.#fill(mirror.#watch()), options.signal);
    } catch (error) {
      mirror.close();
      throw error;
    }
    void mirror.#followForGood();
    return mirror;
  }

  /** How many entries there are. */
  get size(): number {
    return this.#entries.size;
  }

  /** The revision up to which it shows every change. */
  get revision(): Revision {
    return this.#revision;
  }

  /** How long ago the cluster last said that this is how things are: mostly less than the heartbeat. */
  get stalenessMs(): number {
    return now() - this.#heard;
  }

  /** Why it does not follow at the moment; `undefined` while it does. It keeps trying in any case, and answers from what it has. */
  get trouble(): unknown {
    return this.#trouble;
  }

  /** An entry. */
  get(key: string): Entry<T> | undefined {
    return this.#entries.get(key);
  }

  /** The entries whose keys begin so, by key, all of one moment. */
  list(prefix = this.prefix): Entry<T>[] {
    return this.#entries.list(prefix);
  }

  [Symbol.iterator](): Iterator<Entry<T>> {
    return this.list()[Symbol.iterator]();
  }

  /**
   * The entries whose field has this value, by key: an array is found by each of its elements, too. Throws where `indexBy` did not name the
   * field.
   */
  findBy(field: string, value: unknown): Entry<T>[] {
    const found = this.#entries.find(field, value);
    if (found === undefined) {
      throw new InvalidArgumentError(`the mirror of \`${this.prefix}\` has no index by \`${field}\``);
    }
    return found;
  }

  /**
   * Asks the cluster which revision it is at, and waits until the mirror is there: what is read after this is as fresh as a linearizable
   * read. Resolves with the revision; rejects with a `BehindError` where that takes longer than the deadline.
   */
  async sync(options: CallOptions = {}): Promise<Revision> {
    checkOptions(options);
    const asked = await list(this.#caller, {
      ...options,
      prefix: this.prefix,
      keysOnly: true,
      limit: 1,
    }).page();
    return this.waitFor(asked.revision, options);
  }

  /** Waits until the mirror shows this revision, such as that of a write of one's own; resolves with the one that it shows. */
  async waitFor(revision: Revision, options: CallOptions = {}): Promise<Revision> {
    checkOptions(options);
    const until = now() + (patienceOf("timeoutMs", options.timeoutMs) ?? this.#caller.settings.timeoutMs);
    while (compareRevisions(this.#revision, revision) < 0) {
      if (now() >= until || this.#stop.signal.aborted) {
        throw new BehindError(this.prefix, revision, this.#revision, this.#trouble);
      }
      await this.#moved(until - now(), options.signal);
    }
    return this.#revision;
  }

  /** Calls back after each change, which the mirror shows by then; returns what ends that. */
  onChange(listener: (change: MirrorChange<T>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What happens to it from now on, for one loop. Nothing is kept for one that nobody has any more. Who is more than some hundred changes behind is told `resynced` instead of them. */
  changes(
    options: { signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<MirrorChange<T>, void, undefined> {
    checkOptions(options);
    const inbox = new Inbox<T>();
    const entry = new WeakRef(inbox);
    this.#inboxes.add(entry);
    return this.#handOut(inbox, entry, options.signal);
  }

  async *#handOut(
    inbox: Inbox<T>,
    entry: WeakRef<Inbox<T>>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<MirrorChange<T>, void, undefined> {
    try {
      for (;;) {
        const change = inbox.pending.shift();
        if (change !== undefined) {
          yield change;
        } else if (this.#stop.signal.aborted) {
          return;
        } else {
          await this.#delivered(inbox, signal);
        }
      }
    } finally {
      this.#inboxes.delete(entry);
    }
  }

  /** Waits until something is in it, or the mirror is closed. Nothing but this mirror may know of who waits. */
  async #delivered(inbox: Inbox<T>, signal: AbortSignal | undefined): Promise<void> {
    const woken = deferred<void>();
    inbox.wake = woken.resolve;
    this.#awaited.add(inbox);
    try {
      await orAborted(woken.promise, signal);
    } finally {
      this.#awaited.delete(inbox);
    }
  }

  /** Follows no more; reads go on being answered from what it has. */
  close(): void {
    this.#stop.abort();
    this.#stream?.close();
    for (const inbox of [...this.#awaited]) {
      inbox.wake();
    }
    this.#wake();
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }

  /** A new watch in place of the one before. */
  #watch(): WatchStream<T> {
    this.#stream?.close();
    const heartbeatMs = this.#options.heartbeatMs ?? HEARTBEAT_DEFAULT_MS;
    const watched = { prefix: this.prefix, part: this.#options.part, initial: true, heartbeatMs };
    this.#stream = new WatchStream<T>(this.#caller, watched);
    return this.#stream;
  }

  /** Takes the entries with which a watch begins, all at once. */
  async #fill(stream: WatchStream<T>): Promise<void> {
    await stream.start();
    let entries: Entry<T>[] = [];
    for (;;) {
      for (const event of (await stream.next()).events) {
        if (event.type === "put") {
          entries.push(event.entry);
        } else if (event.type === "restarted") {
          entries = [];
        } else if (event.type === "synced") {
          this.#entries = new MirrorEntries(this.#options.indexBy ?? [], entries);
          this.#reached(event.revision);
          return;
        }
      }
    }
  }

  /** Follows until it is closed. What cannot be followed any more is filled anew. Never rejects. */
  async #followForGood(): Promise<void> {
    let pauseMs = AGAIN_MIN_MS;
    let isFilled = true;
    while (!this.#isOver()) {
      try {
        if (isFilled) {
          await this.#follow();
        }
        isFilled = false;
        await this.#fill(this.#watch());
        isFilled = true;
        pauseMs = AGAIN_MIN_MS;
        this.#tell({ type: "resynced", revision: this.#revision });
      } catch (error) {
        this.#trouble = error;
        if (!isFilled) {
          await sleep(pauseMs * (0.5 + Math.random() / 2), this.#stop.signal).catch(() => {});
          pauseMs = Math.min(pauseMs * 2, AGAIN_MAX_MS);
        }
      }
    }
    this.close();
  }

  #isOver(): boolean {
    return this.#stop.signal.aborted || this.#caller.closed.aborted;
  }

  /** Applies what the watch brings, until it cannot go on. */
  async #follow(): Promise<void> {
    const stream = this.#stream;
    try {
      while (stream !== undefined) {
        const { events, revision } = await stream.next();
        this.#apply(events);
        if (revision !== undefined) {
          this.#reached(revision);
        }
      }
    } catch (error) {
      this.#trouble = error;
    }
  }

  /** All events of a revision take effect before anybody hears of one. */
  #apply(events: readonly WatchEvent<T>[]): void {
    const changes = events.filter(
      (event): event is ChangeEvent<T> => event.type === "put" || event.type === "delete",
    );
    const told = changes.map(({ key, revision, ...event }): MirrorChange<T> => {
      const entry = event.type === "put" ? event.entry : undefined;
      return { type: "entry", key, entry, before: this.#entries.set(key, entry), revision };
    });
    for (const change of told) {
      this.#tell(change);
    }
  }

  #tell(change: MirrorChange<T>): void {
    for (const entry of [...this.#inboxes]) {
      const inbox = entry.deref();
      if (inbox === undefined) {
        this.#inboxes.delete(entry);
      }
      inbox?.put(change, this.#revision);
    }
    for (const listener of [...this.#listeners]) {
      this.#caller.settings.troubles.call(`a listener of the mirror of \`${this.prefix}\``, listener, change);
    }
  }

  #reached(revision: Revision): void {
    this.#heard = now();
    this.#trouble = undefined;
    this.#revision = revision;
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) {
      wake();
    }
  }

  /** Waits until the revision has changed, or so long. */
  async #moved(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const moved = deferred<void>();
    const timer = after(ms, moved.resolve);
    this.#waiting.add(moved.resolve);
    try {
      await orAborted(moved.promise, signal);
    } finally {
      timer.cancel();
      this.#waiting.delete(moved.resolve);
    }
  }
}
