/** Nodes that are not there: a `fetch` whose answers a test decides. */

import { Client, type ClientOptions } from "../src/index.js";

/** A request as it arrived. */
export interface Sent {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
  /** The body as it came. */
  readonly text: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** What a node does with a request: an answer, or an error, or nothing for ever. */
export type Behaviour = (sent: Sent, number: number) => Response | Error | undefined;

/** An answer of a node. */
export function answer(body: object, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "quorate-term": "3", ...headers } });
}

/** A refusal. */
export function problem(
  code: string,
  status: number,
  more: object = {},
  headers: Record<string, string> = {},
): Response {
  const known = {
    type: `/errors/${code}`,
    title: code,
    status,
    detail: code,
    code,
    applied: "no",
    request_id: "r",
  };
  const retry = status === 503 ? "same_request_id" : "after_reading";
  return answer({ ...known, retry, ...more }, status, headers);
}

/** What `fetch` says of a connection that was refused, or reset. */
export function broken(code: "ECONNREFUSED" | "ECONNRESET"): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error(code), { code }) });
}

/** A client of such nodes, and what it sent. */
export function fake(behaviour: Behaviour, options: ClientOptions = {}): { client: Client; sent: Sent[] } {
  const sent: Sent[] = [];
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const { host, pathname, search } = new URL(url);
    const { method = "GET", body, signal } = init;
    const headers = new Headers(init.headers);
    const isJson = headers.get("content-type") === "application/json";
    const parsed: unknown = typeof body === "string" && isJson ? JSON.parse(body) : (body ?? undefined);
    const request = {
      host,
      method,
      path: pathname + search,
      headers,
      body: parsed,
      text: typeof body === "string" ? body : undefined,
      signal: signal ?? undefined,
    };
    sent.push(request);
    const done = behaviour(request, sent.length);
    if (done instanceof Error) {
      throw done;
    }
    return done ?? never(signal);
  };
  const known = { endpoints: ["a:1", "b:1", "c:1"], discoverMembers: false, fetch: send };
  return { client: new Client({ ...known, ...options }), sent };
}

function never(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
    }
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
