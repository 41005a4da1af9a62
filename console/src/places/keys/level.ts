/**
 * The keys below a prefix, up to the next delimiter.
 *
 * Owns how a level of the tree is read: keys come in order, so a page of them shows which parts there are, and where a page ends within
 * a part, the next one begins behind it. A part of a million keys costs one request, like one of ten.
 */

import { endOfPrefix } from "../../api/keys.js";
import { behindPrefix } from "../../text/named.js";

/** Something on a level: an entry, or a part that has entries below it. */
export interface Node {
  readonly kind: "entry" | "part";
  /** The whole key, or the prefix of the part, delimiter included. */
  readonly key: string;
  /** What is behind the prefix of the level. */
  readonly name: string;
}

/** A page of keys, as it was asked for from `from` on. */
export interface KeyPage {
  readonly keys: readonly string[];
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
  for (const key of page.keys) {
    const node = nodeOf(prefix, delimiter, key);
    // The keys of a part stand together, so it is enough to look at the last one.
    if (nodes.at(-1)?.key !== node.key) {
      nodes.push(node);
    }
  }
  return { nodes, next: page.hasMore ? behind(nodes.at(-1)) : undefined };
}

function nodeOf(prefix: string, delimiter: string, key: string): Node {
  const rest = behindPrefix(key, prefix) ?? key;
  const at = delimiter === "" ? -1 : rest.indexOf(delimiter);
  if (at < 0) {
    return { kind: "entry", key, name: rest };
  }
  const name = rest.slice(0, at + delimiter.length);
  // What is behind the part is the same text in both, also where the prefix ends within a character.
  return { kind: "part", key: key.slice(0, key.length - (rest.length - name.length)), name };
}

/** The first key that can come behind this one and all that is below it. */
function behind(node: Node | undefined): string | undefined {
  return node?.kind === "part" ? endOfPrefix(node.key) : node && `${node.key}\0`;
}
