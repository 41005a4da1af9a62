/** The decisions about a key, read page by page. Owns how far that has come, and that it can be stopped. */

import { useEffect, useState } from "preact/hooks";
import type { AuditLine, QuorateError } from "quorate";
import { readAudit } from "../api/entries.js";
import { asError } from "../api/errors.js";
import { perform } from "./page.js";

/** The lines so far, oldest first. */
export interface Trail {
  readonly lines: readonly AuditLine[];
  readonly oldestRevision: string | undefined;
  readonly isReading: boolean;
  /** Whether somebody stopped it before the end. */
  readonly isStopped: boolean;
  readonly error: QuorateError | undefined;
}

const NOTHING: Trail = {
  lines: [],
  oldestRevision: undefined,
  isReading: true,
  isStopped: false,
  error: undefined,
};

/** Reads the trail of a key. */
export function useTrail(key: string): Trail & { stop(): void; reload(): void } {
  const [trail, setTrail] = useState(NOTHING);
  const [turn, setTurn] = useState(0);
  const [abort, setAbort] = useState(() => new AbortController());
  useEffect(() => {
    const abort = new AbortController();
    setAbort(abort);
    let isShown = true;
    const tell = (trail: Trail) => {
      if (isShown) {
        setTrail(trail);
      }
    };
    void readAll(key, abort.signal, tell);
    return () => {
      isShown = false;
      abort.abort();
    };
  }, [key, turn]);
  return { ...trail, stop: () => abort.abort(), reload: () => setTurn(turn + 1) };
}

async function readAll(key: string, signal: AbortSignal, tell: (trail: Trail) => void): Promise<void> {
  let trail = NOTHING;
  let cursor: string | undefined;
  try {
    do {
      const page = await perform(readAudit(key, cursor), signal);
      cursor = page.cursor;
      trail = {
        ...trail,
        lines: [...trail.lines, ...page.lines],
        oldestRevision: page.oldestRevision,
        isReading: cursor !== undefined,
      };
      tell(trail);
    } while (cursor !== undefined);
  } catch (error) {
    const isStopped = signal.aborted;
    tell({ ...trail, isReading: false, isStopped, error: isStopped ? undefined : asError(error) });
  }
}

/** Whether the decision left the entry something else than it was. */
export function isChange(line: AuditLine): boolean {
  return line.effect === "changed" || line.effect === "removed";
}
