/** Requests about sessions: listed, looked at, ended. */

import type { SessionEnded, SessionInfo, SessionPage } from "quorate";
import { pythonOptions, text } from "./literals.js";
import { type Request, target } from "./request.js";

/** So many are asked for at once: as many as a node gives. */
export const PAGE_LIMIT = 1_000;

/** A page of all sessions, the oldest first. What hangs on each is not in it. */
export function listSessions(cursor?: string): Request<SessionPage> {
  return {
    title: "List the sessions, the oldest first",
    writes: false,
    http: { method: "GET", target: target("/v1/sessions", { limit: PAGE_LIMIT, cursor }) },
    cli: ["session", "list"],
    python: `print(client.sessions(${pythonOptions({ limit: String(PAGE_LIMIT), cursor: cursor && text(cursor) }).slice(2)}))`,
    typescript: `console.log(await client.sessions({ limit: ${PAGE_LIMIT} }).page(${cursor === undefined ? "" : text(cursor)}));`,
    run: (client, signal) => client.sessions({ limit: PAGE_LIMIT, signal }).page(cursor),
  };
}

/** A session and what hangs on it; `undefined` where it has ended. */
export function readSession(id: string): Request<SessionInfo | undefined> {
  return {
    title: `Look at session ${id} and what hangs on it`,
    writes: false,
    http: { method: "GET", target: `/v1/sessions/${id}` },
    cli: ["session", "show", id],
    python: `print(client.session_by_id(${text(id)}).get())`,
    typescript: `console.log(await client.sessionById(${text(id)}).get());`,
    run: (client, signal) => client.sessionById(id).get({ signal }),
  };
}

/** Ends a session, with all that hangs on it. */
export function endSession(id: string): Request<SessionEnded> {
  return {
    title: `End session ${id}, with all that hangs on it`,
    writes: true,
    http: { method: "DELETE", target: `/v1/sessions/${id}` },
    cli: ["session", "end", id],
    python: `client.session_by_id(${text(id)}).end()`,
    typescript: `await client.sessionById(${text(id)}).end();`,
    run: (client, signal) => client.sessionById(id).end({ signal }),
  };
}
