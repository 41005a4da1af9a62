/** What hangs on a session, in words and as lists. Pure. */

import type { SessionInfo } from "quorate";
import { JsonText } from "../../api/json-text.js";
import { isShownIn } from "../../text/named.js";
import { counted } from "../../text/words.js";

/** What hangs on a session. */
export type Holds = NonNullable<SessionInfo["holds"]>;

/** What hangs on it, counted: `1 lock, 2 entries`. */
export function summaryOf(holds: Holds): string {
  const held = (list: Holds["locks"]) => list.filter(({ state }) => state === "held").length;
  const waiting = [...holds.locks, ...holds.elections].filter(({ state }) => state === "waiting").length;
  const parts: readonly [number, string, string?][] = [
    [held(holds.locks), "lock"],
    [held(holds.elections), "leadership"],
    [waiting, "place in a queue", "places in queues"],
    [holds.keys.length, "entry", "entries"],
    [holds.tasks?.length ?? 0, "task"],
    [holds.barriers.length, "barrier"],
  ];
  const said = parts.filter(([count]) => count > 0).map(([count, one, many]) => counted(count, one, many));
  return said.length === 0 ? "nothing" : said.join(", ");
}

/** How many of what hangs on it the node did not name. */
export function unnamed(holds: Holds): number {
  const { locks, elections, keys, tasks, barriers } = holds;
  const named = [locks, elections, keys, tasks ?? [], barriers].reduce((sum, list) => sum + list.length, 0);
  return Math.max(0, holds.count - named);
}

/** Its labels: `zone=a`. */
export function labelsOf({ labels }: Pick<SessionInfo, "labels">): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}=${wordOf(value)}`);
}

function wordOf(value: unknown): string {
  // A label of the name `value` comes as JSON text, as stored values do.
  return value instanceof JsonText ? (JSON.parse(value.text) as string) : String(value);
}

/** Whether the text is in the id, the owner or a label. */
export function isNamed(session: Pick<SessionInfo, "session" | "owner" | "labels">, text: string): boolean {
  const words = [session.session, session.owner, ...labelsOf(session)];
  return words.some((word) => isShownIn(word, text));
}
