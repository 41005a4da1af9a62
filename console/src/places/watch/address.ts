/** What is watched, as the address has it. Pure. */

import type { Part } from "quorate";
import { type Condition, parseCondition } from "../../api/keys.js";
import type { Watched } from "../../api/watch.js";
import type { Query } from "../../state/route.js";
import { nameIn } from "../../text/named.js";

/** What is watched, in words as they are typed. */
export interface Wish {
  /** Whether `text` is a key; else it is a prefix. */
  readonly isKey: boolean;
  readonly text: string;
  readonly events: "" | "put" | "delete";
  readonly where: readonly string[];
  /** `0/4` */
  readonly part: string;
  readonly from: string;
}

/** What the address says. */
export function wishOf(query: URLSearchParams): Wish {
  const key = nameIn(query, "key");
  const events = query.get("events");
  return {
    isKey: key !== null,
    text: key ?? nameIn(query, "prefix") ?? "",
    events: events === "put" || events === "delete" ? events : "",
    where: query.getAll("where"),
    part: query.get("part") ?? "",
    from: query.get("from") ?? "",
  };
}

/** The address that says it. */
export function queryOf({ isKey, text, events, where, part, from }: Wish): Query {
  return { [isKey ? "key" : "prefix"]: text, events, where, part, from };
}

/** What is asked of the cluster; in words what is wrong with the wish. */
export function watchedOf(wish: Wish): Watched | string {
  const where = wish.where.map(parseCondition);
  const fault = where.find((condition) => typeof condition === "string");
  const part = partOf(wish.part);
  if (fault !== undefined) {
    return fault as string;
  }
  if (typeof part === "string") {
    return part;
  }
  if (!/^\d{0,19}$/.test(wish.from)) {
    return `a revision is a number, not \`${wish.from}\``;
  }
  return {
    ...(wish.isKey ? { key: wish.text } : { prefix: wish.text }),
    where: where as readonly Condition[],
    events: wish.events === "" ? undefined : wish.events,
    part,
    from: wish.from === "" ? undefined : wish.from,
  };
}

function partOf(text: string): Part | undefined | string {
  if (text === "") {
    return undefined;
  }
  const [, index, of] = /^(\d{1,4})\/(\d{1,4})$/.exec(text) ?? [];
  return index === undefined || of === undefined || Number(index) >= Number(of)
    ? `a part is like 0/4: one of four, the first is 0; \`${text}\` is none`
    : { index: Number(index), of: Number(of) };
}
