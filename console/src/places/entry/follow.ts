/** Waits for changes of an entry while it is shown. Owns the one long call that is open for it. */

import { useEffect, useState } from "preact/hooks";
import { client } from "../../api/connection.js";
import type { Stored, StoredEntry } from "../../api/entries.js";

/** What the entry is by now, where that is something else than what is shown; `null` where it is gone. */
export type Newer = StoredEntry | null | undefined;

/** How long a node holds the call. */
const WAIT_MS = 30_000;
/** After a call that failed. The frame of the page says what is wrong. */
const PAUSE_MS = 2_000;

/** Follows the entry from the version with this token on. `undefined` follows nothing. */
export function useNewer(key: string, cas: string | null | undefined): Newer {
  const [newer, setNewer] = useState<Newer>(undefined);
  useEffect(() => {
    setNewer(undefined);
    if (cas === undefined || cas === null) {
      return;
    }
    const abort = new AbortController();
    void wait(key, cas, abort.signal).then((found) => {
      if (!abort.signal.aborted) {
        setNewer(found);
      }
    });
    return () => abort.abort();
  }, [key, cas]);
  return newer;
}

async function wait(key: string, cas: string, signal: AbortSignal): Promise<Newer> {
  while (!signal.aborted) {
    try {
      const change = await client.waitForChange<Stored>(key, { cas, waitMs: WAIT_MS, signal });
      if (change.type !== "none") {
        return change.type === "gone" ? null : change.entry;
      }
    } catch {
      // Told by the frame, which asks the cluster all the time; here it is only asked again.
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
  return undefined;
}
