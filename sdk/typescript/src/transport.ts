/**
 * One attempt of one call at one node.
 *
 * Owns the way over `fetch`: URLs, headers, the time that a node has, and what kind of failure a broken attempt is. Knows neither
 * retries nor other nodes.
 */

import type { Call } from "./call.js";
import type { LeaderHint } from "./endpoints.js";
import { InvalidArgumentError } from "./errors.js";
import { shownValue } from "./options.js";
import type { Failure } from "./retry.js";
import { after, onAbort } from "./timing.js";

/** What this client asks of a `fetch`: the usual one, or one that knows certificates. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A node that a call can go to. */
export interface Endpoint {
  /** `host:port`, or `unix:/path`. */
  readonly address: string;
  /** Scheme, host, port, and a path before that of the API where there is one. */
  readonly base: string;
  readonly isTls: boolean;
  /** Whether it is a Unix socket of this machine. */
  readonly isSocket: boolean;
}

/** Stands before the escaped path of a Unix socket, and the path of the API, in what is asked of a {@link Fetch}. */
export const SOCKET_SCHEME = "http+unix://";

/** What an attempt came to. */
export type Attempted =
  | { readonly kind: "answer"; readonly status: number; readonly hint: LeaderHint; readonly text: string }
  | { readonly kind: "failure"; readonly failure: Failure };

/** What the attempt to open a stream came to. */
export type OpenedStream =
  | {
      readonly kind: "stream";
      readonly hint: LeaderHint;
      readonly revision: string | undefined;
      readonly body: ReadableStream<Uint8Array>;
      close(): void;
    }
  | Attempted;

/** A node is told a tenth less time than it has, at most so much less: its answer that it was too late should still arrive. */
const GRACE_MAX_MS = 250;

/** Splits a list of endpoints, or takes one that is split. `prefersTls` is for those that name no scheme. */
export function parseEndpoints(given: string | readonly string[], prefersTls: boolean): Endpoint[] {
  const items = typeof given === "string" ? split(given) : given;
  const endpoints = new Map<string, Endpoint>();
  for (const item of items) {
    const endpoint = parseEndpoint(trimmed(item), prefersTls);
    endpoints.set(endpoint.address, endpoints.get(endpoint.address) ?? endpoint);
  }
  if (endpoints.size === 0) {
    throw new InvalidArgumentError("no endpoint is given; expected host:port,host:port,…");
  }
  return [...endpoints.values()];
}

function split(given: string): string[] {
  return given.split(",").filter((item) => item.trim() !== "");
}

/** An item of a list. An empty one is no comma too many, but something that was not set. */
function trimmed(item: unknown): string {
  if (typeof item !== "string" || item.trim() === "") {
    throw new InvalidArgumentError(`${shownValue(item)} is no endpoint; expected host:port`);
  }
  return item.trim();
}

/** Whether members that were not given are reached by TLS; a socket says nothing of that. */
export function othersTls(given: readonly Endpoint[], prefersTls: boolean): boolean {
  const others = given.filter(({ isSocket }) => !isSocket);
  return others.length === 0 ? prefersTls : others.some(({ isTls }) => isTls);
}

/** One endpoint: `host:port`, a URL, or `unix:/path`. */
export function parseEndpoint(item: string, prefersTls: boolean): Endpoint {
  if (item.startsWith("unix:/")) {
    return parseSocket(item);
  }
  const hasScheme = /^https?:\/\//.test(item);
  const url = parseUrl(item, hasScheme, prefersTls);
  const isWhole = hasScheme || /:\d+$/.test(item);
  if (url === undefined || !isWhole || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new InvalidArgumentError(
      `${JSON.stringify(item)} is no endpoint; expected host:port, http(s)://host:port or unix:/path`,
    );
  }
  const isTls = url.protocol === "https:";
  const address = url.port === "" ? `${url.hostname}:${isTls ? 443 : 80}` : url.host;
  return {
    address,
    base: `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`,
    isTls,
    isSocket: false,
  };
}

/** `unix:/path` or `unix:///path`. Never by TLS: the mode of the file says who may speak there. */
function parseSocket(item: string): Endpoint {
  const path = item.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
  if (!/^\/(?!\/)[^\0]*[^/\0]$/.test(path)) {
    throw new InvalidArgumentError(`${JSON.stringify(item)} is no endpoint; expected unix:/path/to/socket`);
  }
  const base = SOCKET_SCHEME + encodeURIComponent(path);
  return { address: `unix:${path}`, base, isTls: false, isSocket: true };
}

function parseUrl(item: string, hasScheme: boolean, prefersTls: boolean): URL | undefined {
  try {
    return new URL(hasScheme ? item : `${prefersTls ? "https" : "http"}://${item}`);
  } catch {
    return undefined;
  }
}

/**
 * Sends the call to the node, and reads all of the answer. Rejects only with the reason of a signal: the caller's, or that of the client.
 *
 * `closes` is for a node of another cluster: no `fetch` shows its connections, so each that is used is closed after, and the next may lead to
 * another node behind the same address. Browsers ignore that.
 */
export async function attempt(
  fetch: Fetch,
  endpoint: Endpoint,
  call: Call,
  budgetMs: number,
  token: string | undefined,
  closed: AbortSignal,
  closes = false,
): Promise<Attempted> {
  const limit = limited(budgetMs, call.signal, closed);
  try {
    const response = await fetch(
      endpoint.base + call.target,
      request(call, told(budgetMs), token, limit.signal, closes),
    );
    return await answered(response);
  } catch (error) {
    call.signal?.throwIfAborted();
    closed.throwIfAborted();
    return { kind: "failure", failure: failed(error, limit.isOver(), budgetMs) };
  } finally {
    limit.end();
  }
}

/** Opens an answer of this content type that is taken as it comes: the node has so long for its headers. */
export async function openStream(
  fetch: Fetch,
  endpoint: Endpoint,
  call: Call,
  accept: string,
  budgetMs: number,
  token: string | undefined,
  closed: AbortSignal,
  closes = false,
): Promise<OpenedStream> {
  const limit = limited(budgetMs, call.signal, closed);
  try {
    const init = request(call, undefined, token, limit.signal, closes);
    // Whoever takes events alone is taken for an `EventSource`, to whom a node says in a stream what others are told by a status.
    const response = await fetch(endpoint.base + call.target, {
      ...init,
      headers: { ...init.headers, accept: `${accept}, application/problem+json` },
    });
    if (response.ok && response.body !== null && response.headers.get("content-type")?.startsWith(accept)) {
      limit.rest();
      const revision = digits(response.headers, "quorate-revision");
      return {
        kind: "stream",
        hint: hintOf(response.headers),
        revision,
        body: response.body,
        close: () => limit.abort(),
      };
    }
    const answer = await answered(response);
    limit.end();
    return answer;
  } catch (error) {
    limit.end();
    call.signal?.throwIfAborted();
    closed.throwIfAborted();
    return { kind: "failure", failure: failed(error, limit.isOver(), budgetMs) };
  }
}

function request(
  call: Call,
  timeoutMs: number | undefined,
  token: string | undefined,
  signal: AbortSignal,
  closes: boolean,
): RequestInit {
  const who: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const headers: Record<string, string> = { ...call.headers, ...who };
  if (timeoutMs !== undefined) {
    headers["request-timeout"] = String(timeoutMs);
  }
  if (closes) {
    headers["connection"] = "close";
  }
  if (call.intent.kind === "write") {
    headers["idempotency-key"] = call.intent.id;
  }
  const init: RequestInit = {
    method: call.method,
    headers,
    signal,
    cache: "no-store",
    redirect: "error",
  };
  if (call.body !== undefined) {
    init.body = call.body;
  }
  return init;
}

async function answered(response: Response): Promise<Attempted> {
  const text = await response.text();
  return { kind: "answer", status: response.status, hint: hintOf(response.headers), text };
}

/** Milliseconds that the node is told it has. */
export function told(budgetMs: number): number {
  return Math.max(1, Math.floor(budgetMs - Math.min(GRACE_MAX_MS, budgetMs / 10)));
}

/** A header that is a whole number, as it is written. */
function digits(headers: Headers, name: string): string | undefined {
  return headers.get(name)?.match(/^\d+$/)?.[0];
}

/** What the headers say of the cluster. Headers that make no sense say nothing. */
function hintOf(headers: Headers): LeaderHint {
  const leader = digits(headers, "quorate-leader");
  return {
    term: BigInt(digits(headers, "quorate-term") ?? 0),
    leaderId: leader === undefined ? undefined : Number(leader),
    cluster: headers.get("quorate-cluster") || undefined,
  };
}

/** A signal that is aborted when the time is over, the caller gives up, or the client is closed. */
function limited(budgetMs: number, ...signals: (AbortSignal | undefined)[]) {
  const controller = new AbortController();
  let isOver = false;
  const timer = after(budgetMs, () => {
    isOver = true;
    controller.abort();
  });
  const listeners = signals.map((signal) => onAbort(signal, () => controller.abort(signal?.reason)));
  const end = () => {
    timer.cancel();
    for (const listener of listeners) {
      listener.cancel();
    }
  };
  return {
    signal: controller.signal,
    isOver: () => isOver,
    /** The time does not count any more; the caller's signal does. */
    rest: () => timer.cancel(),
    end,
    abort: () => {
      end();
      controller.abort();
    },
  };
}

/** Codes of runtimes (Node and Deno, Bun) for a connection that never came about, so that nothing was sent. */
const NOT_CONNECTED = new Set([
  "ECONNREFUSED",
  // A socket that is not there, or not for us.
  "ENOENT",
  "EACCES",
  "ConnectionRefused",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectTimeout",
]);

/** Codes of a handshake that failed: one side does not believe the other's certificate, or does not speak TLS. */
const TLS_CODES =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO$|HOSTNAME_MISMATCH$|INVALID_CA$)/;

/** What Deno says of either, which has no codes, and what all say of a port that `fetch` does not take. */
const TLS_WORDS = /invalid peer certificate|received fatal alert/;
const NOT_CONNECTED_WORDS = /client error \(Connect\)|^bad port$|Requests to port \d+ are blocked/;

function failed(error: unknown, isOver: boolean, budgetMs: number): Failure {
  if (isOver) {
    return { kind: "timed_out", reason: `no answer in ${Math.round(budgetMs)} ms`, cause: error };
  }
  const chain = causes(error);
  const codes = chain
    .map((cause) => String((cause as { code?: unknown }).code ?? ""))
    .filter((code) => code !== "");
  const last = chain.at(-1);
  const words = last instanceof Error ? last.message : String(last);
  const reason = [...codes.filter((code) => !words.includes(code)).slice(0, 1), words].join(": ");
  if (codes.some((code) => TLS_CODES.test(code)) || TLS_WORDS.test(words)) {
    return { kind: "tls", reason: `no secure connection: ${reason}`, cause: error };
  }
  if (codes.some((code) => NOT_CONNECTED.has(code)) || NOT_CONNECTED_WORDS.test(words)) {
    return { kind: "connect", reason: `cannot connect: ${reason}`, cause: error };
  }
  return { kind: "broken", reason: `the connection broke: ${reason}`, cause: error };
}

/** The error and what lies behind it, the nearest first. */
function causes(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let next = error; next !== undefined && next !== null && !chain.includes(next); ) {
    chain.push(next);
    next = (next as { cause?: unknown }).cause ?? (next as { errors?: unknown[] }).errors?.[0];
  }
  return chain;
}
