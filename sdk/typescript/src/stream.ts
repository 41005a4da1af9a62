/**
 * Operations by the stream: many in one request, each a line, each decided by itself.
 *
 * Owns which operations are not decided yet, and what a line of an answer means for its operation. Each write keeps one request id over all
 * requests that it goes in, so it is applied at most once.
 */

import { type Call, randomRequestId } from "./call.js";
import { type Caller, otherOf, type Stream } from "./caller.js";
import {
  InvalidArgumentError,
  OutcomeUnknownError,
  type Problem,
  ProtocolError,
  QuorateError,
  RejectedError,
  UnavailableError,
} from "./errors.js";
import { stringifyJson } from "./json.js";
import { fromWire, toWire } from "./names.js";
import { checkOp, type Op } from "./ops.js";
import { checkOptions, patienceOf } from "./options.js";
import { Attempts, type Failure, isFinal, patienceLeft } from "./retry.js";
import { after, anySignal, now, sleep } from "./timing.js";
import { told } from "./transport.js";
import type { CallOptions, Entry, WriteResult } from "./types.js";

const NDJSON = "application/x-ndjson";
/** Operations of one request: about as many as a node has under way of one. */
const OPS_MAX = 1_000;
/** Characters of its lines; one that is longer goes alone. */
const LENGTH_MAX = 1_000_000;
/** The longest line of an answer: an entry of the largest size, and what is around it. Protects the memory of the caller. */
const LINE_MAX = 32 * 1024 * 1024;
const READS: readonly string[] = ["get", "get_and_lock", "get_and_touch"];

/** What became of one operation of a stream. */
export interface Streamed<T = unknown> {
  /** Which one, from 0. */
  readonly n: number;
  /** The operation. */
  readonly op: Op;
  /** The answer to a write. */
  readonly written?: WriteResult<T>;
  /** The entry of one that reads. */
  readonly entry?: Entry<T>;
  /** Why it failed. */
  readonly error?: QuorateError;
}

/** A line of an answer, with names as they are here. */
interface AnswerLine {
  readonly n: number | null;
  readonly status: number;
  readonly answer: object;
}

/** An operation that is not decided yet. */
class Pending<T> {
  readonly n: number;
  readonly op: Op;
  /** The operation as it goes out. */
  readonly text: string;
  /** `undefined` where it reads and changes nothing. */
  readonly requestId: string | undefined;
  readonly attempts = new Attempts();
  readonly started = now();
  /** How it failed last, where it did, at which node, and when to try again; without a pause never. */
  failed: { failure: Failure; endpoint: string; pauseMs: number | undefined } | undefined;

  constructor(n: number, op: Op) {
    if (op.waitMs !== undefined) {
      throw new InvalidArgumentError(`operation ${n}: one in a stream does not wait for a lock`);
    }
    checkOp(op);
    this.n = n;
    this.op = op;
    this.requestId = op.op === "get" ? undefined : randomRequestId();
    this.text = stringifyJson(toWire({ ...op, requestId: this.requestId }));
  }

  line(timeoutMs: number): string {
    return `{"n":${this.n},"timeout_ms":${timeoutMs},"op":${this.text}}\n`;
  }

  answered(answer: object): Streamed<T> {
    const { n, op } = this;
    return READS.includes(op.op)
      ? { n, op, entry: answer as Entry<T> }
      : { n, op, written: answer as WriteResult<T> };
  }

  /** Its end by this error, which says nothing of attempts before. */
  refused(error: QuorateError): Streamed<T> {
    const { n, op, requestId } = this;
    const isOpen = this.attempts.fateOpen || (requestId !== undefined && error.applied === "unknown");
    const isVain = error instanceof UnavailableError || error instanceof OutcomeUnknownError;
    return isOpen || isVain
      ? this.#gaveUp(isOpen, "the stream", error.message, error.problem, error)
      : { n, op, error };
  }

  /** Its end after the last failure. */
  gaveUp(): Streamed<T> {
    const { failure, endpoint } = this.failed ?? { failure: undefined, endpoint: "" };
    const { reason = "", problem, cause } = failure ?? {};
    return this.#gaveUp(this.attempts.fateOpen, endpoint, reason, problem, cause);
  }

  #gaveUp(
    isOpen: boolean,
    endpoint: string,
    reason: string,
    problem: Problem | undefined,
    cause: unknown,
  ): Streamed<T> {
    const { n, op, requestId } = this;
    const attempts = Math.max(1, this.attempts.failures);
    const about = {
      attempts,
      elapsedMs: now() - this.started,
      requestId,
      endpoint,
      reason,
      problem,
      cause,
    };
    return { n, op, error: isOpen ? new OutcomeUnknownError(about) : new UnavailableError(about) };
  }
}

/** The operations of one request, until all are answered, and those to be tried again. */
class Exchange<T> {
  readonly #caller: Caller;
  readonly #node: number;
  readonly #endpoint: string;
  readonly waiting: Map<number, Pending<T>>;
  readonly again: Pending<T>[] = [];
  #begun = "";

  constructor(caller: Caller, node: number, batch: readonly Pending<T>[]) {
    this.#caller = caller;
    this.#node = node;
    this.#endpoint = caller.addresses[node] ?? "";
    this.waiting = new Map(batch.map((one) => [one.n, one]));
  }

  /** Takes what came; what it decides. */
  *feed(piece: string): Generator<Streamed<T>> {
    const lines = (this.#begun + piece).split("\n");
    this.#begun = lines.pop() ?? "";
    if (this.#begun.length > LINE_MAX) {
      throw this.#caller.strange(this.#node, `a line of more than ${LINE_MAX} characters`);
    }
    for (const line of lines.filter((line) => line.trim() !== "")) {
      yield* this.#take(fromWire(this.#caller.settings.parse(line)) as AnswerLine);
    }
  }

  *#take({ n, status, answer }: AnswerLine): Generator<Streamed<T>> {
    const problem = status < 300 ? undefined : problemOf(answer);
    if (n === null) {
      yield* this.#refusedRest(problem);
      return;
    }
    const one = this.waiting.get(n);
    if (one === undefined) {
      throw this.#caller.strange(this.#node, `an answer to operation ${n}, which was not asked for`);
    }
    this.waiting.delete(n);
    const other = otherOf({ about: { key: one.op.key } }, problem === undefined ? answer : {});
    if (other !== undefined) {
      yield this.#strange(one, other.words);
    } else if (status >= 200 && status < 300) {
      yield one.answered(answer);
    } else if (problem === undefined) {
      yield this.#strange(one, `status ${status} without a problem document`);
    } else if (!isFinal(problem)) {
      this.#fail(one, failureOf(problem));
    } else {
      const error = new RejectedError(problem);
      yield one.attempts.settledBy(problem) ? { n, op: one.op, error } : one.refused(error);
    }
  }

  /** The node takes none of the lines that it has not begun with, and does not say which those are. */
  *#refusedRest(problem: Problem | undefined): Generator<Streamed<T>> {
    const rest = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of rest) {
      if (problem !== undefined && !isFinal(problem)) {
        this.#fail(one, failureOf(problem));
      } else if (problem !== undefined && rest.length === 1) {
        yield one.refused(new RejectedError(problem));
      } else {
        yield this.#strange(one, `the rest of a stream is refused: ${problem?.detail}`);
      }
    }
  }

  #strange(one: Pending<T>, what: string): Streamed<T> {
    const { n, op, requestId } = one;
    const applied = requestId === undefined ? "no" : "unknown";
    return { n, op, error: new ProtocolError(this.#endpoint, what, { applied, requestId }) };
  }

  /** Whether what was not answered was done is open. */
  broke(reason: string, cause?: unknown): void {
    for (const one of this.waiting.values()) {
      this.#fail(one, { kind: "broken", reason, cause });
    }
    this.waiting.clear();
  }

  #fail(one: Pending<T>, failure: Failure): void {
    const { settings, addresses } = this.#caller;
    const intent =
      one.requestId === undefined
        ? ({ kind: "read" } as const)
        : { kind: "write" as const, id: one.requestId };
    const pauseMs = one.attempts.onFailure(failure, intent, settings.retry, addresses.length, Math.random());
    one.failed = { failure, endpoint: this.#endpoint, pauseMs };
    this.again.push(one);
  }
}

function failureOf(problem: Problem): Failure {
  return { kind: "problem", reason: `${problem.title}: ${problem.detail}`, problem };
}

function problemOf(answer: object): Problem | undefined {
  const problem = answer as Partial<Problem>;
  return typeof problem.code === "string" && typeof problem.applied === "string"
    ? (problem as Problem)
    : undefined;
}

/** The operations as many at a time as go in one request. */
function* batches<T>(ops: Iterable<Op>): Generator<Pending<T>[]> {
  let batch: Pending<T>[] = [];
  let length = 0;
  let n = 0;
  for (const op of ops) {
    const one = new Pending<T>(n, op);
    n += 1;
    if (batch.length === OPS_MAX || (batch.length > 0 && length + one.text.length > LENGTH_MAX)) {
      yield batch;
      [batch, length] = [[], 0];
    }
    batch.push(one);
    length += one.text.length;
  }
  if (batch.length > 0) {
    yield batch;
  }
}

/** Does any number of operations, each by itself; what became of each as soon as it is known. */
export async function* stream<T>(
  caller: Caller,
  ops: Iterable<Op>,
  options: CallOptions,
): AsyncGenerator<Streamed<T>, void, undefined> {
  checkOptions(options);
  const timeoutMs = patienceOf("timeoutMs", options.timeoutMs) ?? caller.settings.timeoutMs;
  const { signal, release } = anySignal(options.signal, caller.closed);
  try {
    for (const batch of batches<T>(ops)) {
      const timeLeft = patienceLeft(timeoutMs);
      let left: Pending<T>[] = batch;
      while (left.length > 0) {
        left = yield* round(caller, left, timeLeft, signal);
      }
    }
  } finally {
    release();
  }
}

/** Sends operations once; returns those to be sent again, after a pause. */
async function* round<T>(
  caller: Caller,
  batch: Pending<T>[],
  timeLeft: () => number,
  signal: AbortSignal,
): AsyncGenerator<Streamed<T>, Pending<T>[], undefined> {
  const timeoutMs = told(Math.min(timeLeft(), caller.settings.attemptMs));
  let opened: Stream;
  try {
    opened = await caller.open(call(batch, timeoutMs, signal), NDJSON, timeLeft);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof QuorateError)) {
      throw error;
    }
    yield* batch.map((one) => one.refused(error));
    return [];
  }
  const exchange = new Exchange<T>(caller, opened.node, batch);
  yield* listen(opened, exchange, caller.settings.attemptMs, signal);
  if (exchange.again.length > 0) {
    caller.nodeFailed(opened.node);
  }
  const pauseMs = Math.max(0, ...exchange.again.map(({ failed }) => failed?.pauseMs ?? 0));
  const isLate = pauseMs >= timeLeft();
  const isOver = (one: Pending<T>) => isLate || one.failed?.pauseMs === undefined;
  yield* exchange.again.filter(isOver).map((one) => one.gaveUp());
  const left = exchange.again.filter((one) => !isOver(one));
  if (left.length > 0 && pauseMs > 0) {
    await sleep(pauseMs, signal);
  }
  // Whoever takes the answers, or the machine, may have slept meanwhile.
  if (timeLeft() <= 0) {
    yield* left.map((one) => one.gaveUp());
    return [];
  }
  return left;
}

/** Takes answers until all are there, or the stream ends; one that is silent for too long does. */
async function* listen<T>(
  opened: Stream,
  exchange: Exchange<T>,
  silentMaxMs: number,
  signal: AbortSignal,
): AsyncGenerator<Streamed<T>, void, undefined> {
  const reader = opened.body.getReader();
  const decoder = new TextDecoder();
  try {
    while (exchange.waiting.size > 0) {
      const timer = after(silentMaxMs, () => opened.close());
      const { done, value } = await reader.read().finally(() => timer.cancel());
      if (done) {
        exchange.broke("the stream ended");
        return;
      }
      yield* exchange.feed(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    signal.throwIfAborted();
    exchange.broke(`the stream broke: ${error instanceof Error ? error.message : String(error)}`, error);
  } finally {
    opened.close();
    // The body is torn down by the signal; what its reader says of that is no news.
    reader.cancel().catch(() => {});
  }
}

function call<T>(batch: readonly Pending<T>[], timeoutMs: number, signal: AbortSignal): Call {
  return {
    method: "POST",
    target: "/v1/ops",
    intent: { kind: "writes" },
    preference: "leader",
    headers: { "content-type": NDJSON },
    body: batch.map((one) => one.line(timeoutMs)).join(""),
    signal,
  };
}
