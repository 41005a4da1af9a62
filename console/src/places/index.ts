/**
 * The list of places.
 *
 * Owns their names, addresses and keys. A place is a folder beside this file; its code is loaded when it is first shown. To add one,
 * add a line here: navigation, palette, keys and help follow from it.
 */

import type { ComponentType } from "preact";
import type { IconName } from "../ui/icon.js";

/** A place. */
export interface Place {
  /** The segment of its address below `/console/`. */
  readonly id: string;
  readonly title: string;
  /** What it is for: a short sentence. */
  readonly what: string;
  readonly icon: IconName;
  /** Goes there: `g` and this. */
  readonly key: string;
  /** A place that is about one key stands not in the navigation; it is reached from that key. */
  readonly isOfKey?: boolean;
  /** Its code; the default export is its component. */
  readonly load: () => Promise<{ readonly default: ComponentType }>;
}

/** All places, in the order of the navigation. The first one is where the console begins. */
export const PLACES: readonly Place[] = [
  {
    id: "cluster",
    title: "Cluster",
    what: "Members, who leads, what needs attention",
    icon: "cluster",
    key: "c",
    load: () => import("./cluster/index.js"),
  },
  {
    id: "keys",
    title: "Keys",
    what: "The tree of keys; search by prefix and field",
    icon: "keys",
    key: "k",
    load: () => import("./keys/index.js"),
  },
  {
    id: "entry",
    title: "Entry",
    what: "One entry: read, edit, save on its cas",
    icon: "entry",
    key: "e",
    isOfKey: true,
    load: () => import("./entry/index.js"),
  },
  {
    id: "history",
    title: "History",
    what: "What an entry was, who changed it, and how to get it back",
    icon: "history",
    key: "h",
    isOfKey: true,
    load: () => import("./history/index.js"),
  },
  {
    id: "watch",
    title: "Live watch",
    what: "Changes of keys as they happen",
    icon: "watch",
    key: "w",
    load: () => import("./watch/index.js"),
  },
  {
    id: "locks",
    title: "Locks & elections",
    what: "Holders, leaders, waiters; break a lock",
    icon: "lock",
    key: "l",
    load: () => import("./locks/index.js"),
  },
  {
    id: "sessions",
    title: "Sessions",
    what: "What is alive, what hangs on it, and its end",
    icon: "session",
    key: "s",
    load: () => import("./sessions/index.js"),
  },
  {
    id: "tasks",
    title: "Tasks",
    what: "Queues of timed tasks; dead letters requeued, tasks cancelled",
    icon: "task",
    key: "t",
    load: () => import("./tasks/index.js"),
  },
  {
    id: "find",
    title: "Find",
    what: "Search entries by field conditions; update or delete all that match",
    icon: "find",
    key: "f",
    load: () => import("./find/index.js"),
  },
  {
    id: "collections",
    title: "Collections",
    what: "Rules of documents, and indexes",
    icon: "collection",
    key: "o",
    load: () => import("./collections/index.js"),
  },
  {
    id: "access",
    title: "Access and audit",
    what: "Users, roles, tokens; who may do what, and who did",
    icon: "access",
    key: "a",
    load: () => import("./access/index.js"),
  },
  {
    id: "callers",
    title: "Callers",
    what: "Who holds the waits, memory and connections of a node",
    icon: "callers",
    key: "n",
    load: () => import("./callers/index.js"),
  },
];

/** The place with this id. */
export function placeOf(id: string): Place | undefined {
  return id === "" ? PLACES[0] : PLACES.find((place) => place.id === id);
}
