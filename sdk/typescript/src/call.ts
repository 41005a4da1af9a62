/**
 * A call before it is sent: method, path, headers, body, and what may be done with it when it fails.
 *
 * Owns request ids and the escaping of keys and names.
 */

import type { Preference } from "./endpoints.js";
import { InvalidArgumentError } from "./errors.js";
import { stringifyJson } from "./json.js";
import { encodedKey, isText } from "./keys.js";
import { toWire } from "./names.js";
import { checkOptions, duration, patienceOf, shownValue } from "./options.js";
import { type Intent, patienceLeft } from "./retry.js";
import type { CallOptions, RequestOptions } from "./types.js";

/** A call, ready to be attempted. */
export interface Call {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Path and query. */
  readonly target: string;
  readonly intent: Intent;
  readonly preference: Preference;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number | undefined;
  /** How long one node may take before another is asked; the client's own where there is none. */
  readonly attemptMs?: number;
  /** How long the server is asked to hold its answer back, on top of the deadline. */
  readonly holdMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** What the answer is about, by the fields of it that say so. An answer that names something else is none to this call. */
  readonly about?: Readonly<Record<string, string>>;
}

/** What is said of a call on top of method, target and body. */
export type CallExtras = Pick<Call, "headers" | "attemptMs" | "holdMs" | "about"> & {
  preference?: Preference;
};

/** Characters of request ids: no two look alike in a log. */
const ID_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const ID_LENGTH = 20;
const ID_PATTERN = /^[\x21-\x7e]{1,128}$/;

/** A new request id: 100 random bits. */
export function randomRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_LENGTH));
  return Array.from(bytes, (byte) => ID_CHARACTERS[byte % ID_CHARACTERS.length]).join("");
}

/**
 * The id of what is asked for as long as it takes: the same one while all nodes certainly remember it, so that it is decided once, then
 * another.
 */
export class LastingId {
  #id = randomRequestId();
  #left = patienceLeft();

  /** The id for the next call. */
  get current(): string {
    if (this.#left() <= 0) {
      [this.#id, this.#left] = [randomRequestId(), patienceLeft()];
    }
    return this.#id;
  }
}

/** The id given, if it is one, else a new one. */
export function requestIdOf(options: RequestOptions | undefined): string {
  const id = options?.requestId;
  if (id === undefined) {
    return randomRequestId();
  }
  if (!ID_PATTERN.test(id)) {
    throw new InvalidArgumentError(
      `a request id is 1 to 128 printable ASCII characters without spaces, not ${JSON.stringify(id)}`,
    );
  }
  return id;
}

/** Query parameters; those that are `undefined` are left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Parameters that name entries. */
const NAMES = new Set(["key", "prefix", "start", "end"]);

function withQuery(path: string, query: Query | undefined): string {
  const parts = Object.entries(query ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${parameter(name, value)}`);
  return parts.length === 0 ? path : `${path}?${parts.join("&")}`;
}

function parameter(name: string, value: unknown): string {
  if (NAMES.has(name)) {
    if (typeof value !== "string") {
      throw new InvalidArgumentError(`\`${name}\` is ${shownValue(value)}: expected a string`);
    }
    return encodedKey(value);
  }
  const isSpan = name.endsWith("_ms");
  return encode(String(isSpan ? duration(`${name.slice(0, -"_ms".length)}Ms`, value as number) : value));
}

/** A call that reads. */
export function readCall(path: string, query?: Query, options?: CallOptions, extras: CallExtras = {}): Call {
  checkOptions(options);
  return {
    method: "GET",
    target: withQuery(path, query),
    intent: { kind: "read" },
    preference: "any",
    timeoutMs: patienceOf("timeoutMs", options?.timeoutMs),
    signal: options?.signal,
    ...extras,
  };
}

/** A call that reads by what its body says. */
export function queryCall(path: string, body: object, options?: CallOptions): Call {
  return { ...readCall(path, undefined, options), method: "POST", ...json(body) };
}

/** A call that changes something, has no body, and is as good done twice as once. */
export function repeatableCall(
  path: string,
  options?: CallOptions,
  extras: Pick<CallExtras, "about"> = {},
): Call {
  const call = readCall(path, undefined, options, extras);
  return { ...call, method: "POST", preference: "leader", headers: OF_JSON };
}

/** A call that writes, under a request id. */
export function writeCall(
  method: Call["method"],
  path: string,
  body: object | undefined,
  options?: RequestOptions,
  extras: CallExtras & { query?: Query } = {},
): Call {
  checkOptions(options);
  const { query, ...more } = extras;
  const content = body === undefined ? undefined : json(body);
  return {
    method,
    target: withQuery(path, query),
    intent: { kind: "write", id: requestIdOf(options) },
    preference: "leader",
    timeoutMs: patienceOf("timeoutMs", options?.timeoutMs),
    signal: options?.signal,
    ...content,
    ...more,
    headers: { ...content?.headers, ...more.headers },
  };
}

/** A call that changes something and takes no request id: it is not repeated once it may have happened. */
export function onceCall(
  method: Call["method"],
  path: string,
  query?: Query,
  body?: object,
  options?: CallOptions,
): Call {
  return {
    ...readCall(path, query, options),
    method,
    intent: { kind: "once" },
    preference: "leader",
    ...(body && json(body)),
  };
}

/** A `POST` says so without a body too: nodes take none of a web page that could come of a form, which cannot say this. */
const OF_JSON = { "content-type": "application/json" };

function json(body: object): { body: string; headers: Record<string, string> } {
  let text: string;
  try {
    text = stringifyJson(toWire(body));
  } catch (cause) {
    if (cause instanceof InvalidArgumentError) {
      throw cause;
    }
    throw new InvalidArgumentError(`the request has no JSON form: ${String(cause)}`, cause);
  }
  return { body: text, headers: OF_JSON };
}

/** Segments that mean something else in a URL, and that no escape protects. */
function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

/** Characters that servers on the way refuse, or take for slashes. */
const NOT_FOR_PATHS = /[\p{Control}\\]/u;

/** Refuses what is no key: also what JavaScript would make one of, such as a variable that is not set. */
export function checkKey(key: unknown): void {
  if (typeof key !== "string" || key === "") {
    throw new InvalidArgumentError(`a key is a string of at least one character, not ${shownValue(key)}`);
  }
}

/**
 * `/v1/kv/` and the key, escaped; `undefined` for one that no path holds, or that proxies like to clean: with segments that are empty or
 * dots, say. Such a key is asked for in a body.
 */
export function keyPath(key: string): string | undefined {
  checkKey(key);
  const segments = key.split("/");
  const isPlain = !segments.some((segment) => segment === "" || isDots(segment));
  return isPlain && isText(key) && !NOT_FOR_PATHS.test(key)
    ? `/v1/kv/${segments.map(encodedKey).join("/")}`
    : undefined;
}

/** A route that ends with a slash, a name that is one segment, escaped, and what comes after it. */
export function namePath(route: string, name: string, rest = ""): string {
  if (typeof name !== "string" || name === "" || isDots(name)) {
    throw new InvalidArgumentError(
      `a name is a string of at least one character, and not dots alone: ${shownValue(name)}`,
    );
  }
  return `${route}${encode(name)}${rest}`;
}

function encode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    throw new InvalidArgumentError(`${JSON.stringify(text)} is not well-formed Unicode`, cause);
  }
}

/** A token as an entity tag. */
export function etag(cas: string): string {
  return `"${cas}"`;
}
