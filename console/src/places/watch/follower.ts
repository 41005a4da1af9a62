/**
 * Follows changes for as long as somebody looks.
 *
 * Owns what was seen of them, within bounds, and what is said of breaks: where the stream was taken up again, and what is lost for good
 * since history was compacted meanwhile. That nothing comes twice, and nothing is passed over, is the client's matter.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import type { ChangeEvent, QuorateError } from "quorate";
import type { Stored } from "../../api/entries.js";
import { asError } from "../../api/errors.js";
import { JsonText } from "../../api/json-text.js";
import { duration } from "../../text/words.js";
import { Rate, Ring } from "./ring.js";

/** So many lines are kept, … */
export const LINES_MAX = 2_000;
/** … and together so many characters or bytes of values. */
const WEIGHT_MAX = 24 * 1024 * 1024;
/** What a line weighs beside its values. */
const LINE_WEIGHT = 400;
/** At most so often the page is told of what is new. */
const TELL_EVERY_MS = 200;

/** A change, as it came. */
export interface ChangeLine {
  readonly kind: "change";
  readonly number: number;
  /** When it came, Unix time. */
  readonly at: number;
  readonly event: ChangeEvent<Stored>;
  /** The changes of the same revision, which were made in one step. */
  readonly step: { size: number };
  /** Which of them it is, from 1. */
  readonly place: number;
}

/** Something to know of the stream. */
export interface NoteLine {
  readonly kind: "note";
  readonly number: number;
  readonly at: number;
  readonly isLoss: boolean;
  readonly text: string;
}

/** What is shown as a line. */
export type Line = ChangeLine | NoteLine;

/** How it stands with the stream. */
export type Course =
  | { readonly kind: "opening" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly since: number }
  | { readonly kind: "failed"; readonly error: QuorateError };

/** A stream of changes that is open. */
export type Stream = AsyncIterable<ChangeEvent<Stored>> & { readonly revision: string | undefined };
/** Opens a stream from this revision on, or from where its settings say. */
export type Open = (from: string | undefined, signal: AbortSignal) => Promise<Stream>;

/** Follows changes. */
export class Follower {
  readonly lines = new Ring<Line>(LINES_MAX, WEIGHT_MAX, weightOf);
  readonly #open: Open;
  readonly #course = signal<Course>({ kind: "opening" });
  readonly #version = signal(0);
  readonly #rate = new Rate();
  #abort = new AbortController();
  #stream: Stream | undefined;
  #teller: ReturnType<typeof setTimeout> | undefined;
  #numbers = 0;
  #count = 0;
  #last: ChangeLine | undefined;

  constructor(open: Open) {
    this.#open = open;
  }

  /** How it stands. */
  get course(): ReadonlySignal<Course> {
    return this.#course;
  }

  /** Grows whenever there is something new to show. */
  get version(): ReadonlySignal<number> {
    return this.#version;
  }

  /** How many changes came since the beginning, or since all was cleared. */
  get count(): number {
    return this.#count;
  }

  /** How many come in a second. */
  perSecond(): number {
    return this.#rate.perSecond(Date.now());
  }

  /** Begins. */
  start(): void {
    this.#abort = new AbortController();
    void this.#run(this.#abort.signal);
  }

  /** Ends. */
  stop(): void {
    this.#abort.abort();
    clearTimeout(this.#teller);
    this.#teller = undefined;
  }

  /** Forgets what came so far. */
  clear(): void {
    this.lines.clear();
    this.#count = 0;
    this.#version.value += 1;
  }

  /** A try to take the stream up again came to this. The client makes them by itself. */
  onTry(isOpen: boolean): void {
    const course = this.#course.peek();
    if (course.kind !== "live" && course.kind !== "lost") {
      return;
    }
    if (!isOpen) {
      this.#course.value = course.kind === "lost" ? course : { kind: "lost", since: Date.now() };
      return;
    }
    const after = course.kind === "lost" ? ` after ${duration(Date.now() - course.since)}` : " at once";
    this.#course.value = { kind: "live" };
    this.#note(
      false,
      `The connection broke, and was taken up again${after}, right behind revision ${this.#stream?.revision ?? "?"}: nothing is missing`,
    );
  }

  async #run(signal: AbortSignal): Promise<void> {
    let from: string | undefined;
    let compactedTo: string | undefined;
    /** What is lost begins behind this revision. */
    let gap: { readonly behind: string | undefined } | undefined;
    for (;;) {
      try {
        this.#course.value = { kind: "opening" };
        const stream = await this.#open(from, signal);
        this.#stream = stream;
        this.#course.value = { kind: "live" };
        if (gap !== undefined && from !== undefined) {
          this.#noteGap(gap.behind, from);
          gap = undefined;
        }
        for await (const event of stream) {
          this.#take(event);
        }
        return;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        const { code, problem } = asError(error);
        const oldest = problem?.oldestRevision;
        if (code !== "compacted" || oldest === undefined || oldest === compactedTo) {
          this.#course.value = { kind: "failed", error: asError(error) };
          return;
        }
        // It may go on to be compacted while it is asked for.
        compactedTo = oldest;
        gap ??= { behind: this.#stream?.revision };
        // What was before the first change that is shown has to be readable, too.
        from = String(BigInt(oldest) + 1n);
      }
    }
  }

  #noteGap(behind: string | undefined, from: string): void {
    this.#note(
      true,
      behind === undefined
        ? `History was compacted: what was before revision ${from} is lost to this page. It begins there`
        : `History was compacted while the connection was broken: what came behind revision ${behind} and before ${from} is lost to this page. It goes on from there`,
    );
  }

  #take(event: ChangeEvent<Stored>): void {
    const last = this.#last;
    const isSameStep = last !== undefined && last.event.revision === event.revision;
    const step = isSameStep ? last.step : { size: 0 };
    step.size += 1;
    const line: ChangeLine = {
      kind: "change",
      number: this.#number(),
      at: Date.now(),
      event,
      step,
      place: step.size,
    };
    this.#last = line;
    this.#count += 1;
    this.#rate.note(line.at);
    this.lines.push(line);
    this.#tell();
  }

  #note(isLoss: boolean, text: string): void {
    this.lines.push({ kind: "note", number: this.#number(), at: Date.now(), isLoss, text });
    this.#tell();
  }

  #number(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  #tell(): void {
    this.#teller ??= setTimeout(() => {
      this.#teller = undefined;
      this.#version.value += 1;
    }, TELL_EVERY_MS);
  }
}

/** How heavy a line is: about its size in memory. */
function weightOf(line: Line): number {
  if (line.kind === "note") {
    return LINE_WEIGHT;
  }
  const { event } = line;
  const value = event.type === "put" ? sizeOf(event.entry.value) : 0;
  return LINE_WEIGHT + event.key.length + value + sizeOf(event.prev?.value);
}

function sizeOf(value: Stored | undefined): number {
  return value === undefined ? 0 : value instanceof JsonText ? value.text.length : value.length;
}
