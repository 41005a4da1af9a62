/** Requests about locks, elections, barriers and latches. Those that can be listed are: nodes list no barriers and no latches. */

import type { BarrierInfo, ElectionInfo, ElectionPage, LatchInfo, LockInfo, LockPage } from "quorate";
import { shownName } from "../text/named.js";
import { pythonOptions, text } from "./literals.js";
import { type Request, target } from "./request.js";

/** So many are asked for at once: as many as a node gives. */
const PAGE_LIMIT = 1_000;

/** A page of the locks that somebody holds or waits for, by name. */
export function listLocks(cursor?: string): Request<LockPage> {
  return {
    ...listed("locks", cursor),
    title: "List the locks that somebody holds or waits for",
    cli: ["lock", "list"],
    run: (client, signal) => client.locks({ limit: PAGE_LIMIT, signal }).page(cursor),
  };
}

/** A page of the elections in which somebody leads or stands, by name. */
export function listElections(cursor?: string): Request<ElectionPage> {
  return {
    ...listed("elections", cursor),
    title: "List the elections in which somebody leads or stands",
    cli: ["election", "list"],
    run: (client, signal) => client.elections({ limit: PAGE_LIMIT, signal }).page(cursor),
  };
}

function listed(what: "locks" | "elections", cursor: string | undefined) {
  const python = pythonOptions({ limit: String(PAGE_LIMIT), cursor: cursor && text(cursor) }).slice(2);
  return {
    writes: false,
    http: { method: "GET", target: target(`/v1/${what}`, { limit: PAGE_LIMIT, cursor }) },
    python: `print(client.${what}(${python}))`,
    typescript: `console.log(await client.${what}({ limit: ${PAGE_LIMIT} }).page(${cursor === undefined ? "" : text(cursor)}));`,
  } as const;
}

/** Who holds a lock, and who waits for it. */
export function readLock(name: string): Request<LockInfo> {
  return {
    title: `Look who holds the lock \`${shownName(name)}\`, and who waits for it`,
    writes: false,
    http: { method: "GET", target: nameTarget("locks", name) },
    cli: ["lock", "show", name],
    python: `print(client.lock(${text(name)}).get())`,
    typescript: `console.log(await client.lock(${text(name)}).get());`,
    run: (client, signal) => client.lock(name).get({ signal }),
  };
}

/** Who leads in an election, and who stands. */
export function readElection(name: string): Request<ElectionInfo> {
  return {
    title: `Look who leads in the election \`${shownName(name)}\`, and who stands`,
    writes: false,
    http: { method: "GET", target: nameTarget("elections", name) },
    cli: ["election", "show", name],
    python: `print(client.election(${text(name)}).get())`,
    typescript: `console.log(await client.election(${text(name)}).get());`,
    run: (client, signal) => client.election(name).get({ signal }),
  };
}

/** How many are at a barrier. One that nobody is in is empty. */
export function readBarrier(name: string): Request<BarrierInfo> {
  return {
    title: `Look how many are at the barrier \`${shownName(name)}\``,
    writes: false,
    http: { method: "GET", target: nameTarget("barriers", name) },
    cli: ["barrier", "show", name],
    python: `print(client.barrier(${text(name)}))`,
    typescript: `console.log(await client.barrier(${text(name)}));`,
    run: (client, signal) => client.barrier(name, { signal }),
  };
}

/** How far a latch is counted down. */
export function readLatch(name: string): Request<LatchInfo> {
  return {
    title: `Look how far the latch \`${shownName(name)}\` is counted down`,
    writes: false,
    http: { method: "GET", target: nameTarget("latches", name) },
    cli: ["latch", "show", name],
    python: `print(client.latch(${text(name)}).get())`,
    typescript: `console.log(await client.latch(${text(name)}).get());`,
    run: (client, signal) => client.latch(name).get({ signal }),
  };
}

function nameTarget(area: string, name: string): string {
  return `/v1/${area}/${encodeURIComponent(name)}`;
}
