/**
 * The requests behind what is shown.
 *
 * Owns the two ways in which a place asks the cluster: `useRequest` reads for as long as the place is shown, `perform` does something
 * once. Both note the request, so that the drawer `Copy as` has it, and both treat errors alike. `details.ts` has a third, for the rows
 * of a list, which notes nothing.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isQuorateError, QuorateError } from "quorate";
import { client } from "../api/connection.js";
import { asError } from "../api/errors.js";
import type { Request } from "../api/request.js";
import { noticeRefusal } from "./identity.js";
import { isReadOnly } from "./settings.js";

/** What a request has come to. */
export interface Loaded<T> {
  /** The last good answer, also while it is asked again. */
  readonly data: T | undefined;
  readonly error: QuorateError | undefined;
  readonly isLoading: boolean;
}

/** A request that a place makes, and what it came to. */
export interface Source<T> extends Loaded<T> {
  /** Asks again. */
  reload(): void;
}

/** The requests of the page, in the order in which they were first made. */
export const requests = signal<readonly Request<unknown>[]>([]);

/** Begins a new page. */
export function clearRequests(): void {
  requests.value = [];
}

/** Notes a request as one of the page. The same one again replaces the one before. */
export function noteRequest(request: Request<unknown>): void {
  const known = requests.peek();
  const at = known.findIndex((other) => other.title === request.title);
  requests.value = at < 0 ? [...known, request] : known.with(at, request);
}

/** Makes a request once. Throws a `QuorateError`. */
export async function perform<T>(request: Request<T>, abort?: AbortSignal): Promise<T> {
  if (request.writes && isReadOnly.peek()) {
    throw new QuorateError({
      code: "read_only",
      detail: "the console is switched to reading only",
      applied: "no",
      retry: "never",
    });
  }
  noteRequest(request);
  try {
    return await request.run(client, abort ?? new AbortController().signal);
  } catch (error) {
    if (abort?.aborted) {
      throw error;
    }
    noticeRefusal(error);
    throw asError(error);
  }
}

/** Settings of {@link useRequest}. */
export interface UseRequestOptions {
  /** Asks again after so long, while the page is looked at. */
  readonly everyMs?: number;
}

/**
 * Makes a request for as long as the component is there, again whenever `key` changes. `undefined` for `request` asks nothing.
 * What it came to is kept while it is asked again.
 */
export function useRequest<T>(
  request: Request<T> | undefined,
  key: string | undefined = request?.http.target,
  { everyMs }: UseRequestOptions = {},
): Source<T> {
  const loader = useMemo(() => (request === undefined ? undefined : new Loader(request, everyMs)), [key]);
  useEffect(() => {
    loader?.start();
    return () => loader?.stop();
  }, [loader]);
  const loaded: Loaded<T> = loader?.state.value ?? { data: undefined, error: undefined, isLoading: false };
  return { ...loaded, reload: () => loader?.reload() };
}

class Loader<T> {
  readonly #request: Request<T>;
  readonly #everyMs: number | undefined;
  readonly #state = signal<Loaded<T>>({ data: undefined, error: undefined, isLoading: true });
  #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(request: Request<T>, everyMs: number | undefined) {
    this.#request = request;
    this.#everyMs = everyMs;
  }

  get state(): ReadonlySignal<Loaded<T>> {
    return this.#state;
  }

  start(): void {
    this.#abort = new AbortController();
    void this.#load(this.#abort);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  reload(): void {
    this.stop();
    this.start();
  }

  async #load(abort: AbortController): Promise<void> {
    this.#state.value = { ...this.#state.peek(), isLoading: true };
    let mayAskAgain = this.#everyMs !== undefined;
    try {
      const data = await perform(this.#request, abort.signal);
      if (!abort.signal.aborted) {
        this.#state.value = { data, error: undefined, isLoading: false };
      }
    } catch (error) {
      // What is not allowed is not asked for all the time: each refusal is a line in the audit log of the node.
      mayAskAgain &&= !isQuorateError(error, "permission_denied", "unauthenticated");
      if (!abort.signal.aborted) {
        this.#state.value = { data: this.#state.peek().data, error: asError(error), isLoading: false };
      }
    }
    if (!abort.signal.aborted && mayAskAgain) {
      this.#timer = setTimeout(() => void this.#again(abort), this.#everyMs);
    }
  }

  async #again(abort: AbortController): Promise<void> {
    if (document.hidden) {
      // Whoever comes back to the page should not look at what is old.
      const { signal } = abort;
      document.addEventListener("visibilitychange", () => void this.#again(abort), { once: true, signal });
      return;
    }
    await this.#load(abort);
  }
}
