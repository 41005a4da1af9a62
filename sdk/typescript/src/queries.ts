/** Many entries read: listed, found, counted, and what one was before. Owns their options and pages. */

import { queryCall, readCall } from "./call.js";
import type { Caller } from "./caller.js";
import { get } from "./entries.js";
import { InvalidArgumentError } from "./errors.js";
import type { Camel } from "./names.js";
import { CALL_NAMES, checkNarrowing, checkOptions, type NamesOf } from "./options.js";
import { Pages } from "./pages.js";
import {
  type AuditLine,
  type CallOptions,
  type Criteria,
  criteriaOf,
  type Entry,
  type ReadOptions,
  type Revision,
} from "./types.js";
import type { Wire } from "./wire.js";

/**
 * One of several parts of all keys: what workers that share a prefix list and watch, each its own. Nodes choose by a hash of the key: which
 * part a key is in never changes, and is the same for listings, watches and mirrors.
 */
export interface Part {
  /** Which part, from 0. */
  readonly index: number;
  /** Of so many parts, up to 1,024. */
  readonly of: number;
}

/** Which entries are listed, and how. */
export interface ListOptions extends ReadOptions {
  /** The keys that begin so. */
  readonly prefix?: string | undefined;
  /** The keys from this one on, … */
  readonly start?: string | undefined;
  /** … and before this one. */
  readonly end?: string | undefined;
  /** Most entries of a page, up to 1,000. Default 100. */
  readonly limit?: number | undefined;
  /** Without values. */
  readonly keysOnly?: boolean | undefined;
  /** With the number of bytes of each value, as `valueBytes` of the entry, also where {@link keysOnly} leaves the values out. */
  readonly sizes?: boolean | undefined;
  /** From the last key to the first. */
  readonly reverse?: boolean | undefined;
  /** Only the keys of this part. A page looks at as many entries as without, and shows those of the part. */
  readonly part?: Part | undefined;
}

/** A page of a listing. */
export interface ListPage<T = unknown> extends Omit<Camel<Wire["ListAnswer"]>, "entries"> {
  /** The entries of the page. */
  readonly entries: Entry<T>[];
}

/** Which entries are found, and how. */
export interface FindOptions extends ReadOptions {
  /** The keys that begin so. */
  readonly prefix?: string | undefined;
  /** What has to hold of the entries. */
  readonly where?: Criteria | undefined;
  /** By which fields they are ordered; `-` before a path for the greatest first. Without it, by key. */
  readonly orderBy?: string | readonly string[] | undefined;
  /** Most entries of a page. */
  readonly limit?: number | undefined;
  /** Only these fields of each document. */
  readonly fields?: readonly string[] | undefined;
  /** Without values. */
  readonly keysOnly?: boolean | undefined;
}

/** A page of what was found. */
export interface FindPage<T = unknown> extends Omit<Camel<Wire["FindAnswer"]>, "entries"> {
  /** The entries of the page. */
  readonly entries: Entry<T>[];
}

/** How many there are. */
export type Counted = Camel<Wire["CountAnswer"]>;

/** What is counted. */
export type CountOptions = Omit<FindOptions, "orderBy" | "limit" | "fields" | "keysOnly">;

/** A version of an entry: a decision that changed it, and what the entry was after it. */
export interface VersionOf<T = unknown> extends AuditLine {
  /** `delete` where the entry was gone after it. */
  readonly type: "put" | "delete";
  /** The entry after it; `undefined` where it was gone. */
  readonly entry: Entry<T> | undefined;
}

/** A field or several, as a list. */
export function fieldsOf(fields: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof fields === "string" ? [fields] : fields;
}

/** The parameters of a part. */
export function partQuery(part: Part | undefined) {
  return { part: part?.index, of: part?.of };
}

const READ_NAMES: NamesOf<ReadOptions> = {
  ...CALL_NAMES,
  consistency: true,
  minRevision: true,
  revision: true,
};
const LIST_NAMES: NamesOf<ListOptions> = {
  ...READ_NAMES,
  prefix: true,
  start: true,
  end: true,
  limit: true,
  keysOnly: true,
  sizes: true,
  reverse: true,
  part: true,
};
const COUNT_NAMES: NamesOf<CountOptions> = { ...READ_NAMES, prefix: true, where: true };
const FIND_NAMES: NamesOf<FindOptions> = {
  ...COUNT_NAMES,
  orderBy: true,
  limit: true,
  fields: true,
  keysOnly: true,
};

/** Lists entries by key. */
export function list<T>(caller: Caller, options: ListOptions): Pages<Entry<T>, ListPage<T>> {
  checkNarrowing(options, LIST_NAMES);
  const { prefix, start, end, limit, consistency, minRevision, revision } = options;
  if (prefix !== undefined && (start !== undefined || end !== undefined)) {
    throw new InvalidArgumentError("a list is of a `prefix`, or of a range from `start` to `end`");
  }
  const range = start === undefined && end === undefined ? { prefix: prefix ?? "" } : { start, end };
  const { keysOnly, sizes } = options;
  const shown = { limit, keys_only: keysOnly || undefined, sizes: sizes || undefined, consistency };
  const order = { reverse: options.reverse || undefined, ...partQuery(options.part) };
  const first = { ...range, ...order, revision, min_revision: minRevision };
  return new Pages(
    (cursor) => {
      const query = cursor === undefined ? { ...first, ...shown } : { cursor, ...shown };
      return caller.fetch(readCall("/v1/kv", query, options, { preference: caller.settings.reads }));
    },
    (page) => page.entries,
  );
}

/** Finds entries of which something holds. */
export function find<T>(caller: Caller, options: FindOptions): Pages<Entry<T>, FindPage<T>> {
  checkNarrowing(options, FIND_NAMES);
  const { prefix, limit, fields, consistency, minRevision, revision } = options;
  const keysOnly = options.keysOnly || undefined;
  const where = criteriaOf(options.where);
  const orderBy = fieldsOf(options.orderBy);
  const body = { prefix, where, orderBy, limit, fields, keysOnly, consistency, minRevision, revision };
  return new Pages(
    (cursor) => caller.fetch(queryCall("/v1/find", { ...body, cursor }, options)),
    (page) => page.entries,
  );
}

/** How many entries there are of which something holds: asks again until everything was counted. */
export async function count(caller: Caller, options: CountOptions): Promise<Counted> {
  checkNarrowing(options, COUNT_NAMES);
  const { prefix, consistency, minRevision, revision } = options;
  const body = { prefix, where: criteriaOf(options.where), consistency, minRevision, revision };
  const sum = { count: 0, examined: 0 };
  let cursor: string | undefined;
  for (;;) {
    const part: Counted = await caller.fetch(queryCall("/v1/count", { ...body, cursor }, options));
    sum.count += part.count;
    sum.examined += part.examined;
    if (part.cursor === undefined) {
      return { ...part, ...sum };
    }
    cursor = part.cursor;
  }
}

/** Where a history begins. */
export interface HistoryOptions extends CallOptions {
  /** The first revision that is of interest. */
  readonly from?: Revision | undefined;
}

/** The decisions about an entry, refused ones too, oldest first, as far back as history was not compacted. */
export function audit(
  caller: Caller,
  key: string,
  options: HistoryOptions,
): Pages<AuditLine, Camel<Wire["AuditAnswer"]>> {
  checkOptions(options);
  const { from } = options;
  return new Pages(
    (cursor) =>
      caller.fetch(
        readCall("/v1/audit", { key, from: cursor === undefined ? from : undefined, cursor }, options),
      ),
    (page) => page.lines,
  );
}

/** What the entry was after each change, oldest first, as far back as history was not compacted. */
export async function* history<T>(
  caller: Caller,
  key: string,
  options: HistoryOptions,
): AsyncGenerator<VersionOf<T>, void, undefined> {
  for await (const line of audit(caller, key, options)) {
    if (line.effect === "changed" || line.effect === "removed") {
      const isGone = line.effect === "removed";
      const entry = isGone ? undefined : await get<T>(caller, key, { ...options, revision: line.revision });
      yield { ...line, type: isGone ? "delete" : "put", entry };
    }
  }
}
