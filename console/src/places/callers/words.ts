/** The limited resources of a node in words: what each is, how amounts are said, who waits, what accounts are called. Pure. */

import type { NodeCallers } from "quorate";
import { bytes, counted, duration, grouped, percent } from "../../text/words.js";

/** A resource, and who holds most of it. */
export type Resource = NodeCallers["resources"][number];
/** An account, and how much it holds. */
export type Caller = Resource["callers"][number];

/** From here on a resource is worth a look. */
const CLOSE_PERCENT = 80;

interface Words {
  readonly title: string;
  readonly what: string;
  /** One of it; of bytes and of time there is none. */
  readonly one?: string;
  /** Whether it is time, in milliseconds. */
  readonly isTime?: boolean;
  /** What to do where one account holds most of it. */
  readonly step: string;
}

const WORDS: Readonly<Record<string, Words | undefined>> = {
  coordination: {
    title: "Coordination",
    what: "Requests for sessions, locks, elections and barriers in progress",
    one: "request",
    step: "It renews or asks for locks faster than they are decided: give it its own user, and set a rate.",
  },
  point: {
    title: "Point",
    what: "Reads and writes of single entries in progress, by operation",
    one: "operation",
    step: "It sends more than is decided: smaller bulks, and fewer of them at once.",
  },
  scan: {
    title: "Scan",
    what: "Lists and searches in progress, by cost",
    one: "unit",
    step: "Its program should ask for smaller pages, or for the entries themselves.",
  },
  waits: {
    title: "Waits",
    what: "Requests that wait for a change, a lock, a task or their turn",
    one: "request",
    step: "Its program waits for many things: one watch on a common prefix replaces waits for entries.",
  },
  watches: {
    title: "Watches",
    what: "Watches, and observers of elections",
    one: "stream",
    step: "One watch on a common prefix replaces many.",
  },
  arriving: {
    title: "Arriving",
    what: "Requests whose body is on its way",
    one: "request",
    step: "It sends slowly, or less than it announced: block its address, or that of its proxy.",
  },
  bodies: {
    title: "Bodies",
    what: "Bodies of requests in memory",
    step: "Its program should send smaller bulks, and fewer of them at once.",
  },
  answers: {
    title: "Answers",
    what: "Long answers that are not read yet",
    step: "Its program does not read what it asks for: stop it.",
  },
  values: {
    title: "Values",
    what: "Values that commands in progress answer with",
    one: "value",
    step: "Its commands wait for room: they should ask for fewer values.",
  },
  stream_ops: {
    title: "Stream operations",
    what: "Operations of streams whose answer is not sent yet",
    one: "operation",
    step: "Its streams wait, and nothing is refused to others.",
  },
  connections: {
    title: "Connections",
    what: "Connections to the client port, by address",
    one: "connection",
    step: "Limit the connections of an address, or block it. A proxy is one address.",
  },
  processors: {
    title: "Processors",
    what: "Time until an account has paid for what it took beyond its share of the processors",
    isTime: true,
    step: "Its requests wait, and nothing is refused to others: send fewer, or set a rate.",
  },
};

/** Words of a resource. A newer node may have some that are not known here. */
export function wordsOf({ resource }: Resource): Words {
  return WORDS[resource] ?? { title: resource, what: "A resource that this console does not know", step: "" };
}

/** An amount in the unit of its resource: `64.0 MiB`, `3 requests` */
export function amountOf(resource: Resource, amount: number): string {
  const known = WORDS[resource.resource];
  if (known === undefined) {
    return grouped(amount);
  }
  if (known.isTime === true) {
    return duration(amount);
  }
  return known.one === undefined ? bytes(amount) : counted(amount, known.one);
}

/** How many wait for the processors now; nothing of other resources, and where nobody waits and the node is in time. */
export function waitsOf({ heldUp, late }: Resource): string | undefined {
  if (heldUp === undefined || (heldUp === 0 && late !== true)) {
    return undefined;
  }
  const threads = late === true ? "late" : "not late";
  const waiting = counted(heldUp, "connection or request is", "connections and requests are");
  return `The threads of the node are ${threads}, and ${waiting} held up.`;
}

/** What stands before the name of an account. */
export function kindOf({ kind }: Caller): string {
  switch (kind) {
    case "user":
      return "user";
    case "address":
      return "address";
    case "local_user":
      return "user of the machine";
    case "strangers":
      return "all strangers together";
  }
}

/** How full a resource is, and the class of the badge that says so. */
export interface Fill {
  readonly tone: "quiet" | "bad";
  readonly text: string;
}

/** How full this one is. */
export function fillOf({ taken, bound }: Resource): Fill {
  const share = percent(taken, bound);
  return { tone: share >= CLOSE_PERCENT ? "bad" : "quiet", text: `${share} %` };
}

/** The resource whose accounts are shown: the one asked for, or else the fullest that somebody holds. */
export function chosen(resources: readonly Resource[], wanted: string): Resource | undefined {
  const held = resources.filter(({ callers }) => callers.length > 0);
  const fullest = held.sort((one, other) => other.taken / other.bound - one.taken / one.bound)[0];
  return resources.find(({ resource }) => resource === wanted) ?? fullest;
}
