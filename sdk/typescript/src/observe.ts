/**
 * Observing an election: who leads, each change in order, over whatever happens to nodes and connections.
 *
 * Owns where an observation is. Whatever breaks, it goes on at another node right behind the last change that was handed out.
 */

import { type Call, namePath, readCall } from "./call.js";
import type { Caller } from "./caller.js";
import { isQuorateError } from "./errors.js";
import { EventStream, endError } from "./events.js";
import type { Camel } from "./names.js";
import type { Message } from "./sse.js";
import { anySignal, asyncDispose } from "./timing.js";
import { compareRevisions, type Revision } from "./types.js";
import type { Wire } from "./wire.js";

/** How often a silent node says that it is there. */
const HEARTBEAT_MS = 2_000;

/** What an observer sees: somebody leads, or says something else of itself, or nobody leads. */
export type Leads =
  | ({ readonly type: "leader" } & Readonly<Camel<Wire["LeaderEvent"]>>)
  | { readonly type: "vacant"; readonly election: string; readonly revision: Revision };

/** An observation that goes on by itself, at another node where it has to. Ends with the loop over it, or with {@link close}. */
export class Observation implements AsyncIterableIterator<Leads> {
  readonly #caller: Caller;
  readonly #call: Call;
  readonly #stop = new AbortController();
  readonly #signal: { signal: AbortSignal; release(): void };
  #stream: EventStream | undefined;
  /** Every change up to this revision was handed out. */
  #position: Revision | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(caller: Caller, election: string, signal: AbortSignal | undefined) {
    this.#caller = caller;
    this.#signal = anySignal(signal, this.#stop.signal, caller.closed);
    const [target, query] = [
      namePath("/v1/elections/", election, "/observe"),
      { heartbeat_ms: HEARTBEAT_MS },
    ];
    this.#call = readCall(target, query, { signal: this.#signal.signal }, { about: { election } });
  }

  /** @internal Observations come from `client.election(name).observe()`. */
  static async begin(
    caller: Caller,
    election: string,
    signal: AbortSignal | undefined,
  ): Promise<Observation> {
    const observation = new Observation(caller, election, signal);
    try {
      await observation.#connect(caller.settings.timeoutMs);
    } catch (error) {
      observation.close();
      throw error;
    }
    return observation;
  }

  /**
   * Who leads: at first as it is, then after each change. Breaks are gone over. Rejects with `compacted` where changes were missed that
   * can no longer be read, which takes an absence of many minutes; called again it then begins anew, with who leads by then.
   */
  next(): Promise<IteratorResult<Leads, undefined>> {
    const turn = this.#turn.then(() => this.#next());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #next(): Promise<IteratorResult<Leads, undefined>> {
    try {
      for (;;) {
        this.#signal.signal.throwIfAborted();
        const leads = await this.#step();
        if (leads !== undefined) {
          return { done: false, value: leads };
        }
      }
    } catch (error) {
      if (this.#stop.signal.aborted) {
        return { done: true, value: undefined };
      }
      if (isQuorateError(error, "compacted")) {
        this.#position = undefined;
      }
      throw error;
    }
  }

  async #step(): Promise<Leads | undefined> {
    const stream = this.#stream ?? (await this.#connect(undefined));
    const message = await stream.next();
    if (message === undefined) {
      this.#signal.signal.throwIfAborted();
      this.#leave();
      return undefined;
    }
    const leads = this.#take(stream, message);
    // The state at the begin is that of a later revision than its change.
    this.#reached(message.id);
    return leads;
  }

  #take(stream: EventStream, message: Message): Leads | undefined {
    switch (message.name) {
      case "leader":
      case "vacant":
        return { type: message.name, ...stream.read<object>(message) } as Leads;
      case "progress":
        this.#reached(stream.read<{ revision: Revision }>(message).revision);
        this.#caller.onSignOfLife(stream.node);
        return undefined;
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

  #reached(revision: string | undefined): void {
    const isNumber = revision !== undefined && /^\d+$/.test(revision);
    if (isNumber && (this.#position === undefined || compareRevisions(revision, this.#position) > 0)) {
      this.#position = revision;
    }
  }

  #leave(): void {
    this.#stream?.fail();
    this.#stream = undefined;
  }

  /** Opens a stream that goes on from where this is. */
  async #connect(patienceMs: number | undefined): Promise<EventStream> {
    const headers: Record<string, string> =
      this.#position === undefined ? {} : { "last-event-id": this.#position };
    this.#stream = await EventStream.open(this.#caller, { ...this.#call, headers }, HEARTBEAT_MS, patienceMs);
    return this.#stream;
  }

  /** Ends it. */
  close(): void {
    this.#stop.abort();
    this.#stream?.close();
    this.#signal.release();
  }

  async return(): Promise<IteratorResult<Leads, undefined>> {
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
