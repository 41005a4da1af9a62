/** The request for changes of keys as they happen. */

import type { ChangeEvent, Part, Watch } from "quorate";
import { shownName } from "../text/named.js";
import type { Stored } from "./entries.js";
import { type Condition, clausesCli, clausesJson } from "./keys.js";
import { keyWord, pythonOptions, pythonValue, text, typescriptOptions, typescriptValue } from "./literals.js";
import { type Request, target } from "./request.js";

/** How often a node says that it is there while nothing happens. */
const HEARTBEAT_MS = 5_000;

/** What is watched: a key, or the keys that begin with a prefix. */
export interface Watched {
  readonly key?: string | undefined;
  readonly prefix?: string | undefined;
  /** Only events of this kind. */
  readonly events?: "put" | "delete" | undefined;
  /** What has to hold of the entries, all of it. */
  readonly where: readonly Condition[];
  readonly part?: Part | undefined;
  /** From this revision on, instead of from now on. */
  readonly from?: string | undefined;
}

/** Watches, with each entry as it was before the change. */
export function watchKeys(watched: Watched): Request<Watch<Stored, ChangeEvent<Stored>>> {
  const { key, prefix, events, where, part, from } = watched;
  const conditions = where.length === 0 ? undefined : clausesJson(where);
  return {
    title: titleOf(watched),
    writes: false,
    http: {
      method: "GET",
      isStream: true,
      target: target("/v1/watch", {
        key,
        prefix,
        events,
        from,
        part: part?.index,
        of: part?.of,
        where: conditions,
        prev: true,
        heartbeat_ms: HEARTBEAT_MS,
      }),
    },
    cli: cliOf(watched),
    python: pythonOf(watched, conditions),
    typescript: `const options = ${typescriptOptions({
      key: key === undefined ? undefined : text(key),
      prefix: prefix === undefined ? undefined : text(prefix),
      events: events && text(events),
      from: from && text(from),
      where: conditions === undefined ? undefined : typescriptValue(conditions),
      part: part && `{ index: ${part.index}, of: ${part.of} }`,
      prev: "true",
    })} as const;\nfor await (const event of await client.watch(options)) console.log(event);`,
    run: (client, signal) =>
      client.watch<Stored>({
        key,
        prefix,
        events,
        from,
        where: where.length === 0 ? undefined : where,
        part,
        prev: true,
        heartbeatMs: HEARTBEAT_MS,
        initial: false,
        signal,
      }),
  };
}

function titleOf({ key, prefix }: Watched): string {
  if (key !== undefined) {
    return `Watch \`${shownName(key)}\``;
  }
  return prefix === undefined || prefix === ""
    ? "Watch all keys"
    : `Watch the keys that begin with \`${shownName(prefix)}\``;
}

function cliOf({ key, prefix, events, where, part, from }: Watched): string[] {
  return [
    "watch",
    ...(key === undefined ? ["--prefix", keyWord(prefix ?? "")] : [keyWord(key)]),
    ...clausesCli(where),
    ...(events === undefined ? [] : ["--events", events]),
    ...(part === undefined ? [] : ["--part", `${part.index}/${part.of}`]),
    ...(from === undefined ? [] : ["--from", from]),
    "--prev",
  ];
}

function pythonOf({ key, prefix, events, part, from }: Watched, conditions: string | undefined): string {
  const options = pythonOptions({
    key: key === undefined ? undefined : text(key),
    prefix: prefix === undefined ? undefined : text(prefix),
    from_revision: from,
    where: conditions && pythonValue(conditions),
    events: events && text(events),
    part: part && `(${part.index}, ${part.of})`,
    prev: "True",
  }).slice(2);
  return `with client.watch(${options}) as watch:\n    for event in watch:\n        print(event)`;
}
