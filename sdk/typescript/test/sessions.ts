/** A cluster that is not there, with sessions and one lock: what becomes of its calls is a test's to say. */

import type { Client, ClientOptions } from "../src/index.js";
import { answer, fake, problem, type Sent } from "./fake.js";

/** What a node does with a call of some kind instead of what is usual. */
export type Instead = (sent: Sent, number: number) => Response | Error | undefined | "usual";

/** Such a cluster: its client, what was sent, and the trouble that the client told. */
export interface SessionCluster {
  readonly client: Client;
  readonly sent: Sent[];
  readonly troubles: Error[];
  /** The calls to paths that end so. */
  to(verb: string): Sent[];
}

/** The lock that a call is about, unless a proxy has cleaned its path. */
export function lockOf({ path }: Sent): string {
  return decodeURIComponent(path.split("/")[3] ?? "");
}

function usual(sent: Sent, sessions: () => string): Response {
  const body = sent.body as { session?: string; sessions?: string[] };
  const times = { ttl_ms: 60_000, renew_in_ms: 20_000, expires_in_ms: 60_000 };
  if (sent.path === "/v1/sessions") {
    return answer({ session: sessions(), ...times, owner: "", labels: {}, revision: "1", index: 1 }, 201);
  }
  if (sent.path === "/v1/sessions/renew") {
    return answer({ sessions: body.sessions?.map((session) => ({ session, ...times })) });
  }
  if (sent.path.endsWith("/acquire")) {
    return answer({ lock: lockOf(sent), session: body.session, state: "held", token: "5" });
  }
  if (sent.path.endsWith("/release")) {
    return answer({ lock: lockOf(sent), released: true, revision: "2", index: 2 });
  }
  if (sent.method === "DELETE") {
    return answer({ session: lockOf(sent), ended: true, count: 0, revision: "3", index: 3 });
  }
  return problem("not_found", 404);
}

/** A client whose calls end as `instead` says, and in the usual way where it says so. */
export function sessionCluster(instead: Instead, options: ClientOptions = {}): SessionCluster {
  const troubles: Error[] = [];
  const made: string[] = [];
  const { client, sent } = fake(
    (request, number) => {
      const done = instead(request, number);
      return done === "usual" ? usual(request, () => String(made.push(""))) : done;
    },
    { timeoutMs: 60, onTrouble: (trouble) => troubles.push(trouble), ...options },
  );
  return { client, sent, troubles, to: (verb) => sent.filter(({ path }) => path.endsWith(verb)) };
}
