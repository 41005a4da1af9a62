/** How long a session has to live, counted down. Owns from when on that is close. */

import { duration } from "../../text/words.js";

/** Below this share of its time a session was not renewed as it should be. */
const CLOSE_SHARE = 1 / 3;

/** What it takes. */
export interface TimeLeftProps {
  readonly ttlMs: number;
  /** When this was said. */
  readonly expiresInMs: number;
  /** How long ago. */
  readonly ageMs: number;
}

/** The time left, as a bar and in words. */
export function TimeLeft({ ttlMs, expiresInMs, ageMs }: TimeLeftProps) {
  const left = Math.max(0, expiresInMs - ageMs);
  const isClose = left < ttlMs * CLOSE_SHARE;
  const words = left === 0 ? "ends" : duration(left);
  return (
    <span class={isClose ? "time-left close" : "time-left"} title={`${words} left of ${duration(ttlMs)}`}>
      <progress value={left} max={ttlMs} aria-label="Time left" />
      <span>{words}</span>
    </span>
  );
}
