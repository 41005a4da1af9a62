/**
 * The keys below a prefix, up to the next delimiter.
 *
 * Owns how a level of the tree is read: keys come in order, so a page of them shows which parts there are, and where a page ends within
 * a part, the next one begins behind it. A part of a million keys costs one request, like one of ten.
 */

import type { Entry } from "quorate";
import { endOfPrefix } from "../../api/keys.js";
import { behindPrefix } from "../../text/named.js";
import { duration, grouped } from "../../text/words.js";

/** Something on a level: an entry, or a part that has entries below it. */
export interface Node {
  readonly kind: "entry" | "part";
  /** The whole key, or the prefix of the part, delimiter included. */
  readonly key: string;
  /** What is behind the prefix of the level. */
  readonly name: string;
  /** The entry, without its value. */
  readonly entry?: Listed;
}

/** What a list says of an entry beside its key. */
export type Listed = Pick<Entry, "key" | "version" | "contentType" | "ttlMs" | "locked" | "session">;

/** A page of entries, as it was asked for from `from` on. */
export interface KeyPage {
  readonly entries: readonly Listed[];
  /** Whether there are more behind them. */
  readonly hasMore: boolean;
}

/** What a page adds to a level. */
export interface LevelPage {
  readonly nodes: readonly Node[];
  /** Where to go on; `undefined` at the end of the level. */
  readonly next: string | undefined;
}

/** What is on the level in this page, and where the next one begins. */
export function levelOf(prefix: string, delimiter: string, page: KeyPage): LevelPage {
  const nodes: Node[] = [];
  for (const entry of page.entries) {
    const node = nodeOf(prefix, delimiter, entry);
    // The keys of a part stand together, so it is enough to look at the last one.
    if (nodes.at(-1)?.key !== node.key) {
      nodes.push(node);
    }
  }
  return { nodes, next: page.hasMore ? behind(nodes.at(-1)) : undefined };
}

function nodeOf(prefix: string, delimiter: string, entry: Listed): Node {
  const { key } = entry;
  const rest = behindPrefix(key, prefix) ?? key;
  const at = delimiter === "" ? -1 : rest.indexOf(delimiter);
  if (at < 0) {
    return { kind: "entry", key, name: rest, entry };
  }
  const name = rest.slice(0, at + delimiter.length);
  // What is behind the part is the same text in both, also where the prefix ends within a character.
  return { kind: "part", key: key.slice(0, key.length - (rest.length - name.length)), name };
}

/** What is worth a word of an entry in a list. */
export function aboutOf({ version, contentType, ttlMs, locked, session }: Listed): string {
  const words = [
    contentType === "bytes" ? "bytes" : undefined,
    locked ? "locked" : undefined,
    session === undefined ? undefined : `session ${session}`,
    ttlMs === undefined ? undefined : `${duration(ttlMs)} left`,
    `version ${grouped(version)}`,
  ];
  return words.filter((word) => word !== undefined).join(" · ");
}

/** The first key that can come behind this one and all that is below it. */
function behind(node: Node | undefined): string | undefined {
  return node?.kind === "part" ? endOfPrefix(node.key) : node && `${node.key}\0`;
}
