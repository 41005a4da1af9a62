/**
 * The keys that there are, for one that is being typed.
 *
 * Owns how many, and when they are asked for. They are no part of the page, so nothing is noted for `Copy as`.
 */

import { useEffect, useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { client } from "../api/connection.js";
import { listKeys } from "../api/keys.js";
import { mayRead, noticeRefusal } from "../state/identity.js";

/** So many are offered. */
const KEYS_MAX = 8;
/** After the last letter. */
const TYPED_PAUSE_MS = 150;

/** The first keys that begin as somebody types. */
export function useKnownKeys(typed: string): readonly string[] {
  const prefix = keyOfShown(typed.trim());
  const [known, setKnown] = useState<readonly string[]>([]);
  useEffect(() => {
    setKnown([]);
    // Each refusal would be a line in the audit log of the node.
    if (prefix === "" || !mayRead(prefix)) {
      return;
    }
    const abort = new AbortController();
    const ask = async () => {
      try {
        const { entries } = await listKeys({ prefix, limit: KEYS_MAX }).run(client, abort.signal);
        setKnown(entries.map(({ key }) => key));
      } catch (error) {
        // What is typed can be opened without them, and the frame of the page says what is wrong.
        noticeRefusal(error);
      }
    };
    const timer = setTimeout(() => void ask(), TYPED_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [prefix]);
  return known;
}
