/**
 * A request as data: what it asks of the cluster, in each language that a person may want it in, and how it is made here.
 *
 * Owns the shape; the files beside this one have the requests themselves. A place makes no call in any other way, so that whatever a
 * page shows can be copied and repeated elsewhere.
 */

import { type Client, encodedKey } from "quorate";

/** What is sent. */
export interface Http {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path and query. */
  readonly target: string;
  /** JSON text. */
  readonly body?: string;
  /** Whether the answer goes on until somebody ends it. */
  readonly isStream?: boolean;
}

/** A request. */
export interface Request<T> {
  /** What it does, in words: a sentence without its full stop. */
  readonly title: string;
  /** Whether it changes something: not made while the console only reads. */
  readonly writes: boolean;
  readonly http: Http;
  /** Arguments of the command line; absent where that has no command for it. */
  readonly cli?: readonly string[];
  /** Lines of Python with a blocking `client`. */
  readonly python: string;
  /** Lines of TypeScript with a `client`. */
  readonly typescript: string;
  /** Makes it. */
  run(client: Client, signal: AbortSignal): Promise<T>;
}

/** Parameters that name entries. */
const NAMES = new Set(["key", "prefix", "start", "end"]);

/** Path and query; parameters that are `undefined` are left out. */
export function target(
  path: string,
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
) {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        `${name}=${NAMES.has(name) ? encodedKey(String(value)) : encodeURIComponent(String(value))}`,
    );
  return parts.length === 0 ? path : `${path}?${parts.join("&")}`;
}
