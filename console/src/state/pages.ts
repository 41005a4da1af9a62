/**
 * Lists that come in pages, read on by hand.
 *
 * Owns what was read so far. While only the first page was, it can be read again every so often; once somebody has read on, what is
 * there stays as it is until it is asked for anew.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isQuorateError, type QuorateError } from "quorate";
import { asError } from "../api/errors.js";
import type { Request } from "../api/request.js";
import { perform } from "./page.js";

/** A page of something. */
interface CursorPage {
  readonly cursor?: string | undefined;
}

/** What was read so far. */
export interface Read<Item> {
  readonly items: readonly Item[];
  /** Whether any page came yet. */
  readonly isThere: boolean;
  /** Whether there are more pages. */
  readonly hasMore: boolean;
  readonly isReading: boolean;
  readonly error: QuorateError | undefined;
}

/** A list and how to go on with it. */
export interface PagesSource<Item> extends Read<Item> {
  /** Reads the next page. */
  readOn(): void;
  /** Begins anew; what is there stays until the first page comes. */
  reload(): void;
}

/** Which list it is, and how it is read. */
export interface PagesOptions<Item, Page extends CursorPage> {
  readonly request: (cursor: string | undefined) => Request<Page>;
  readonly items: (page: Page) => readonly Item[];
  /** Reads the first page again after so long, while the page is looked at. */
  readonly everyMs?: number;
}

/** Reads a list for as long as the component is there, and another one whenever `key` changes. */
export function usePages<Item, Page extends CursorPage>(
  key: string,
  options: PagesOptions<Item, Page>,
): PagesSource<Item> {
  const reader = useMemo(() => new Reader(options), [key]);
  useEffect(() => {
    reader.reload();
    return () => reader.stop();
  }, [reader]);
  return { ...reader.state.value, readOn: () => reader.readOn(), reload: () => reader.reload() };
}

class Reader<Item, Page extends CursorPage> {
  readonly #options: PagesOptions<Item, Page>;
  readonly #state = signal<Read<Item>>({
    items: [],
    isThere: false,
    hasMore: false,
    isReading: true,
    error: undefined,
  });
  #cursor: string | undefined;
  #pages = 0;
  #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: PagesOptions<Item, Page>) {
    this.#options = options;
  }

  get state(): ReadonlySignal<Read<Item>> {
    return this.#state;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  reload(): void {
    this.stop();
    this.#abort = new AbortController();
    void this.#first(this.#abort.signal);
  }

  readOn(): void {
    if (this.#state.peek().isReading || this.#cursor === undefined) {
      return;
    }
    clearTimeout(this.#timer);
    void this.#read(this.#cursor, this.#abort.signal);
  }

  async #first(signal: AbortSignal): Promise<void> {
    await this.#read(undefined, signal);
    const { everyMs } = this.#options;
    // What is not allowed is not asked for all the time: each refusal is a line in the audit log of the node.
    const isRefused = isQuorateError(this.#state.peek().error, "permission_denied", "unauthenticated");
    if (everyMs !== undefined && !isRefused && !signal.aborted) {
      this.#timer = setTimeout(() => this.#again(signal), everyMs);
    }
  }

  #again(signal: AbortSignal): void {
    const { everyMs } = this.#options;
    if (document.hidden) {
      this.#timer = setTimeout(() => this.#again(signal), everyMs);
    } else if (this.#pages <= 1) {
      void this.#first(signal);
    }
  }

  async #read(cursor: string | undefined, signal: AbortSignal): Promise<void> {
    this.#state.value = { ...this.#state.peek(), isReading: true };
    try {
      const page = await perform(this.#options.request(cursor), signal);
      if (signal.aborted) {
        return;
      }
      const before = cursor === undefined ? [] : this.#state.peek().items;
      this.#pages = cursor === undefined ? 1 : this.#pages + 1;
      this.#cursor = page.cursor;
      this.#state.value = {
        items: [...before, ...this.#options.items(page)],
        isThere: true,
        hasMore: page.cursor !== undefined,
        isReading: false,
        error: undefined,
      };
    } catch (error) {
      if (!signal.aborted) {
        this.#state.value = { ...this.#state.peek(), isReading: false, error: asError(error) };
      }
    }
  }
}
