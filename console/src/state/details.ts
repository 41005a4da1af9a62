/**
 * What a list does not say of its rows, asked for one by one.
 *
 * Owns how many are asked for at a time, and that only the rows that are seen are. These requests are not noted for `Copy as`: a page
 * has that of its list, and that of the one thing that is open.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import { client } from "../api/connection.js";
import type { Request } from "../api/request.js";
import { noticeRefusal } from "./identity.js";

/** So many are under way at a time. */
const AT_A_TIME = 4;
/** Other rows than the first have to stay for so long before they are asked for: a quick hand passes many. */
const SETTLED_MS = 120;

/** Asks for each of these by its id, again and again. What has no answer, or none yet, is not in the map. */
export function useDetails<T>(
  ids: readonly string[],
  requestOf: (id: string) => Request<T>,
  everyMs: number,
): ReadonlyMap<string, T> {
  const [details, setDetails] = useState<ReadonlyMap<string, T>>(new Map());
  const ask = useRef(requestOf);
  ask.current = requestOf;
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const round = async () => {
      if (!document.hidden && ids.length > 0) {
        const found = await askAll(ids, ask.current, abort.signal);
        if (!abort.signal.aborted) {
          setDetails(found);
        }
      }
      if (!abort.signal.aborted) {
        timer = setTimeout(() => void round(), everyMs);
      }
    };
    timer = setTimeout(() => void round(), details.size === 0 ? 0 : SETTLED_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [ids.join("\n"), everyMs]);
  return details;
}

async function askAll<T>(
  ids: readonly string[],
  requestOf: (id: string) => Request<T>,
  signal: AbortSignal,
): Promise<Map<string, T>> {
  const found = new Map<string, T>();
  const left = [...ids];
  const askOn = async () => {
    for (let id = left.shift(); id !== undefined && !signal.aborted; id = left.shift()) {
      try {
        found.set(id, await requestOf(id).run(client, signal));
      } catch (error) {
        // The list itself is asked for all the time and says what is wrong; a row without details shows none.
        noticeRefusal(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, askOn));
  return found;
}
