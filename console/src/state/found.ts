/**
 * The entries of which something holds, read page by page.
 *
 * Owns what was found so far. A node looks at a bounded number of entries at a time, so a page may be empty: it is asked on until one
 * has something, the end is reached, or somebody stops it.
 */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import type { StoredEntry } from "../api/entries.js";
import { asError } from "../api/errors.js";
import { findEntries, type Search } from "../api/keys.js";
import { perform } from "./page.js";

/** What was found so far. */
export interface Sofar {
  readonly entries: readonly StoredEntry[];
  readonly examined: number;
  readonly indexUsed: readonly string[];
  /** How long the answers took, and how many there were. */
  readonly ms: number;
  readonly answers: number;
  /** Where to go on; `null` before the first page, `undefined` at the end. */
  readonly cursor: string | null | undefined;
  readonly isReading: boolean;
  /** Somebody stopped it: it goes on only when told to. */
  readonly isStopped: boolean;
  readonly error: QuorateError | undefined;
}

const NOTHING: Sofar = {
  entries: [],
  examined: 0,
  indexUsed: [],
  ms: 0,
  answers: 0,
  cursor: null,
  isReading: false,
  isStopped: false,
  error: undefined,
};

/** A search under way. */
export interface Finding extends Sofar {
  /** There is more, and nobody reads it at the moment. */
  readonly isPaused: boolean;
  readOn(): void;
  stop(): void;
}

/** Looks for entries as long as the component is there. Another search wants another component: give it a key. */
export function useFound(search: Omit<Search, "cursor">): Finding {
  const [sofar, setSofar] = useState(NOTHING);
  const abort = useRef(new AbortController());
  const isBusy = useRef(false);
  const read = useCallback(async (before: Sofar) => {
    if (isBusy.current || before.cursor === undefined) {
      return;
    }
    isBusy.current = true;
    setSofar({ ...before, isReading: true, isStopped: false, error: undefined });
    setSofar(await next(before, search, abort.current.signal, setSofar));
    isBusy.current = false;
  }, []);
  const stop = () => {
    abort.current.abort();
    abort.current = new AbortController();
  };
  useEffect(() => {
    void read(NOTHING);
    return () => abort.current.abort();
  }, []);
  const isPaused = !sofar.isReading && sofar.error === undefined && sofar.cursor !== undefined;
  return { ...sofar, isPaused, readOn: () => void read(sofar), stop };
}

/** Asks until a page has something. Tells how far it is meanwhile. */
async function next(
  before: Sofar,
  search: Omit<Search, "cursor">,
  signal: AbortSignal,
  tell: (sofar: Sofar) => void,
): Promise<Sofar> {
  let sofar = before;
  try {
    do {
      const started = performance.now();
      const cursor = sofar.cursor ?? undefined;
      const page = await perform(findEntries({ ...search, cursor }), signal);
      sofar = {
        entries: [...sofar.entries, ...page.entries],
        examined: sofar.examined + page.examined,
        indexUsed: page.indexUsed ?? [],
        ms: sofar.ms + performance.now() - started,
        answers: sofar.answers + 1,
        cursor: page.cursor,
        isReading: true,
        isStopped: false,
        error: undefined,
      };
      tell(sofar);
    } while (sofar.cursor !== undefined && sofar.entries.length === before.entries.length);
    return { ...sofar, isReading: false };
  } catch (error) {
    const isStopped = signal.aborted;
    return { ...sofar, isReading: false, isStopped, error: isStopped ? undefined : asError(error) };
  }
}
