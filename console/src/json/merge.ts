/**
 * Merges two changes of one document, three ways.
 *
 * Owns what counts as a conflict: both sides changed the same part, and not to the same. Objects are merged member by member; all else
 * (arrays, scalars) is taken whole, since the place of an item says nothing of what it is.
 */

import { compactJson } from "./format.js";
import type { Json, Member } from "./scan.js";

/** A part that both sides changed, each in its own way. `undefined` where the part is not there. */
export interface Conflict {
  /** Where: names of members, from the outside in. */
  readonly path: readonly string[];
  readonly base: Json | undefined;
  readonly mine: Json | undefined;
  readonly theirs: Json | undefined;
}

/** Which side a conflict is settled for. */
export type Side = "mine" | "theirs";

/** What a merge came to. */
export interface Merged {
  /** The document, with each conflict settled as was said; `undefined` where nothing is left. */
  readonly value: Json | undefined;
  readonly conflicts: readonly Conflict[];
}

/** Whether both are the same document. The order of members does not count, as in the store. */
export function sameJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === undefined || other === undefined || one.kind !== other.kind) {
    return one === other;
  }
  if (one.kind === "object" && other.kind === "object") {
    const names = new Map(other.members.map((member) => [member.name, member.value]));
    return (
      one.members.length === names.size &&
      one.members.every((member) => sameJson(member.value, names.get(member.name)))
    );
  }
  if (one.kind === "array" && other.kind === "array") {
    return (
      one.items.length === other.items.length &&
      one.items.every((item, at) => sameJson(item, other.items[at]))
    );
  }
  return compactJson(one) === compactJson(other);
}

/** The name of a conflict, as a JSON pointer. */
export function pointerOf(path: readonly string[]): string {
  return path.map((name) => `/${name.replace(/~/g, "~0").replace(/\//g, "~1")}`).join("");
}

/**
 * What `mine` and `theirs` make of `base` together. A conflict is settled by `choices`, by its pointer; for theirs, which is stored
 * already, where nothing is said.
 */
export function merge(
  base: Json | undefined,
  mine: Json | undefined,
  theirs: Json | undefined,
  choices: ReadonlyMap<string, Side> = new Map(),
): Merged {
  const conflicts: Conflict[] = [];
  const value = part([], base, mine, theirs);
  return { value, conflicts };

  function part(
    path: readonly string[],
    base: Json | undefined,
    mine: Json | undefined,
    theirs: Json | undefined,
  ): Json | undefined {
    if (sameJson(mine, theirs) || sameJson(base, mine)) {
      return theirs;
    }
    if (sameJson(base, theirs)) {
      return mine;
    }
    // What both sides created has no base: every member that both have, and not alike, is a conflict.
    const before = base === undefined ? [] : base.kind === "object" ? base.members : undefined;
    if (mine?.kind === "object" && theirs?.kind === "object" && before !== undefined) {
      return members(path, before, mine.members, theirs.members);
    }
    conflicts.push({ path, base, mine, theirs });
    return choices.get(pointerOf(path)) === "mine" ? mine : theirs;
  }

  /** Members in the order of theirs; what only mine has comes behind. */
  function members(
    path: readonly string[],
    base: readonly Member[],
    mine: readonly Member[],
    theirs: readonly Member[],
  ): Json {
    const [ofBase, ofMine, ofTheirs] = [base, mine, theirs].map(
      (list) => new Map(list.map((member) => [member.name, member.value])),
    ) as [Map<string, Json>, Map<string, Json>, Map<string, Json>];
    const merged: Member[] = [];
    for (const name of new Set([...ofTheirs.keys(), ...ofMine.keys()])) {
      const value = part([...path, name], ofBase.get(name), ofMine.get(name), ofTheirs.get(name));
      if (value !== undefined) {
        merged.push({ name, value });
      }
    }
    return { kind: "object", members: merged };
  }
}
