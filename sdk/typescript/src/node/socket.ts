/**
 * `fetch` that also reaches nodes by Unix sockets.
 *
 * Owns one on `node:http`, since that of no runtime knows them in the same way. It does what this client asks of one, and no more.
 */

import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import type { RequestOptions } from "node:https";
import { Readable } from "node:stream";
import { type Fetch, SOCKET_SCHEME } from "../transport.js";

/** How long an idle connection is kept: servers close idle ones. */
export const IDLE_MS = 30_000;

/** A `fetch` for `new Client({ fetch })` that takes endpoints as `unix:/path`; whatever else there is goes to `next`. */
export function socketFetch(next: Fetch = (url, init) => fetch(url, init)): Fetch {
  // One for all sockets: it keeps connections apart by their paths.
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  return (url, init) => {
    if (!url.startsWith(SOCKET_SCHEME)) {
      return next(url, init);
    }
    const [authority = "", path] = splitAuthority(url.slice(SOCKET_SCHEME.length));
    return send(request, { agent, socketPath: decodeURIComponent(authority), host: "localhost", path }, init);
  };
}

function splitAuthority(rest: string): [string, string] {
  const slash = rest.indexOf("/");
  return [rest.slice(0, slash), rest.slice(slash)];
}

/** Sends a request by `node:http` or `node:https`; resolves once the head of the answer is there. */
export function send(
  ask: (options: RequestOptions, answered: (message: IncomingMessage) => void) => ClientRequest,
  where: RequestOptions,
  init: RequestInit,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { method = "GET", signal, body } = init;
    const headers = init.headers as Record<string, string>;
    const options = { ...where, method, headers, ...(signal ? { signal } : {}) };
    const sent = ask(options, (message) => resolve(responseOf(message, method)));
    sent.on("error", reject);
    sent.end(body ?? undefined);
  });
}

function responseOf(message: IncomingMessage, method: string): Response {
  const status = message.statusCode ?? 0;
  const headers = new Headers();
  for (let at = 0; at + 1 < message.rawHeaders.length; at += 2) {
    headers.append(message.rawHeaders[at] ?? "", message.rawHeaders[at + 1] ?? "");
  }
  const isEmpty = method === "HEAD" || status === 204 || status === 304;
  if (isEmpty) {
    message.resume();
  }
  return new Response(isEmpty ? null : (Readable.toWeb(message) as ReadableStream<Uint8Array>), {
    status,
    headers,
  });
}
