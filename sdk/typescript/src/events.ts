/**
 * One stream of events from one node, read message by message.
 *
 * Owns the reading of the body and the time that a stream may be silent. What the messages say, and where to go on after a break, is
 * the matter of `watch` and `observe`.
 */

import type { Call } from "./call.js";
import { type Caller, otherOf } from "./caller.js";
import { type Problem, RejectedError } from "./errors.js";
import { fromWire } from "./names.js";
import { type Message, Messages } from "./sse.js";
import { after } from "./timing.js";
import type { Wire } from "./wire.js";

const EVENT_STREAM = "text/event-stream";
/** A stream that is silent for so many heartbeats is dead. */
const SILENT_HEARTBEATS_MAX = 3;

/** A stream that is open. */
export class EventStream {
  /** Who sends it. */
  readonly node: number;
  /** The revision at which the node was when it began. */
  readonly revision: string | undefined;
  readonly #caller: Caller;
  readonly #call: Call;
  readonly #reader: ReadableStreamDefaultReader<string>;
  readonly #close: () => void;
  readonly #silentMaxMs: number;
  readonly #messages = new Messages();
  #ready: Message[] = [];

  private constructor(
    caller: Caller,
    call: Call,
    node: number,
    revision: string | undefined,
    text: ReadableStream<string>,
    close: () => void,
    heartbeatMs: number,
  ) {
    this.#caller = caller;
    this.#call = call;
    this.node = node;
    this.revision = revision;
    this.#reader = text.getReader();
    this.#close = close;
    this.#silentMaxMs = heartbeatMs * SILENT_HEARTBEATS_MAX;
  }

  /** Opens it at some node, as long as patience lasts; for ever without. */
  static async open(
    caller: Caller,
    call: Call,
    heartbeatMs: number,
    patienceMs: number | undefined,
  ): Promise<EventStream> {
    const stream = await caller.open(call, EVENT_STREAM, patienceMs);
    const text = stream.body.pipeThrough(
      new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>,
    );
    return new EventStream(caller, call, stream.node, stream.revision, text, stream.close, heartbeatMs);
  }

  /** The next message; `undefined` where the stream broke, or was silent for too long. */
  async next(): Promise<Message | undefined> {
    for (;;) {
      const message = this.#ready.shift();
      if (message !== undefined) {
        return message;
      }
      const piece = await this.#read();
      if (piece === undefined) {
        return undefined;
      }
      this.#ready = this.#messages.feed(piece);
    }
  }

  /** The JSON of a message, which is about what was asked for. What cannot be read, or is not, ends the stream. */
  read<T>(message: Message): T {
    let event: unknown;
    try {
      event = fromWire(this.#caller.settings.parse(message.data));
    } catch (cause) {
      this.fail();
      throw this.#caller.strange(this.node, `the event \`${message.name}\` is not what it should be`, cause);
    }
    const other = otherOf(this.#call, event);
    if (other !== undefined) {
      this.fail();
      throw this.#caller.strange(this.node, other.words);
    }
    return event as T;
  }

  /** Ends it, since its node is not well. */
  fail(): void {
    this.close();
    this.#caller.nodeFailed(this.node);
  }

  /** Ends it. */
  close(): void {
    this.#close();
    // The body is torn down by the signal; what its reader says of that is no news.
    this.#reader.cancel().catch(() => {});
  }

  /** The next piece of text; `undefined` at the end, after an error, and after too long a silence. */
  async #read(): Promise<string | undefined> {
    const timer = after(this.#silentMaxMs, () => this.close());
    try {
      const { done, value } = await this.#reader.read();
      return done ? undefined : value;
    } catch {
      // However the stream broke: what follows is the same.
      return undefined;
    } finally {
      timer.cancel();
    }
  }
}

/** Codes of ends after which it makes no sense to go on at another node. */
const FOR_GOOD: readonly string[] = ["compacted", "permission_denied", "unauthenticated", "too_dear"];

/** Their statuses, where that is not 403. */
const STATUSES: Readonly<Record<string, number>> = { compacted: 410, unauthenticated: 401, too_dear: 413 };

/** Why it makes no sense to go on after a node ended a stream so; `undefined` where another node may serve it. */
export function endError(
  end: Pick<Wire["WatchEnd"], "detail"> & { code: string; oldestRevision?: string },
): RejectedError | undefined {
  if (!FOR_GOOD.includes(end.code)) {
    return undefined;
  }
  const problem: Problem = {
    code: end.code,
    status: STATUSES[end.code] ?? 403,
    title: "The stream ended",
    detail: end.detail,
    applied: "no",
    retry: end.code === "compacted" ? "after_reading" : "never",
    requestId: "",
    ...(end.oldestRevision === undefined ? {} : { oldestRevision: end.oldestRevision }),
  };
  return new RejectedError(problem);
}
