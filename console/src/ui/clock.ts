/** Time that goes on while something is shown: ages and times left, counted on between two answers. Owns how often it is looked at. */

import { useEffect, useMemo, useState } from "preact/hooks";

const LOOK_EVERY_MS = 500;

/** How long ago this answer came, in milliseconds, from then on. */
export function useAge(answer: unknown): number {
  const cameAt = useMemo(() => performance.now(), [answer]);
  const [now, setNow] = useState(cameAt);
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, now - cameAt);
}
