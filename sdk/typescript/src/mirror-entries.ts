/**
 * The entries of a mirror, and how they are found by their fields.
 *
 * Pure: is told what changed, and knows neither where that comes from nor how fresh it is.
 */

import { beginsWith, bytesOfKey, canonicalKey, compareBytes, isText } from "./keys.js";
import type { Entry } from "./types.js";

/** Keys by the text of the value of one field. */
class FieldIndex {
  readonly #path: readonly string[];
  readonly #keys = new Map<string, Set<string>>();

  constructor(field: string) {
    this.#path = pathOf(field);
  }

  put(key: string, document: unknown): void {
    for (const text of this.#texts(document)) {
      const keys = this.#keys.get(text) ?? new Set();
      this.#keys.set(text, keys.add(key));
    }
  }

  take(key: string, document: unknown): void {
    for (const text of this.#texts(document)) {
      const keys = this.#keys.get(text);
      keys?.delete(key);
      if (keys?.size === 0) {
        this.#keys.delete(text);
      }
    }
  }

  find(value: unknown): readonly string[] {
    return [...(this.#keys.get(textOf(value)) ?? [])];
  }

  /** What the field of this document is found by: its value, and if that is an array each element too. */
  #texts(document: unknown): string[] {
    const value = at(document, this.#path);
    if (value === undefined) {
      return [];
    }
    return [value, ...(Array.isArray(value) ? (value as unknown[]) : [])].map(textOf);
  }
}

/** The entries and their indexes. */
export class MirrorEntries<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #indexes: ReadonlyMap<string, FieldIndex>;
  /** All keys in order; `undefined` after a key came or went. */
  #sorted: string[] | undefined;

  constructor(fields: readonly string[], entries: Iterable<Entry<T>> = []) {
    this.#indexes = new Map(fields.map((field) => [field, new FieldIndex(field)]));
    for (const entry of entries) {
      this.set(entry.key, entry);
    }
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Entry<T> | undefined {
    return this.#entries.get(canonicalKey(key));
  }

  /** The entry is so now, or gone; returns it as it was. */
  set(key: string, entry: Entry<T> | undefined): Entry<T> | undefined {
    const before = this.#entries.get(key);
    if ((before === undefined) !== (entry === undefined)) {
      this.#sorted = undefined;
    }
    if (entry === undefined) {
      this.#entries.delete(key);
    } else {
      this.#entries.set(key, entry);
    }
    for (const index of this.#indexes.values()) {
      index.take(key, before?.value);
      index.put(key, entry?.value);
    }
    return before;
  }

  /** Those whose keys begin so, by key. */
  list(prefix: string): Entry<T>[] {
    this.#sorted ??= [...this.#entries.keys()].sort(compareKeys);
    return this.#of(this.#sorted.filter((key) => beginsWith(key, prefix)));
  }

  /** Those whose field has this value, by key; `undefined` where the field has no index. */
  find(field: string, value: unknown): Entry<T>[] | undefined {
    const keys = this.#indexes.get(field)?.find(value);
    return keys && this.#of([...keys].sort(compareKeys));
  }

  #of(keys: readonly string[]): Entry<T>[] {
    return keys.flatMap((key) => this.#entries.get(key) ?? []);
  }
}

/** The order of keys, which is that of their bytes: by code points, where strings compare by halves of them. */
export function compareKeys(one: string, other: string): number {
  if (!isText(one) || !isText(other)) {
    return compareBytes(bytesOfKey(one), bytesOfKey(other));
  }
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    if (one.charCodeAt(at) !== other.charCodeAt(at)) {
      return rank(one.charCodeAt(at)) - rank(other.charCodeAt(at));
    }
  }
  return one.length - other.length;
}

/** Where a code unit stands in the order of bytes: halves of a code point are above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

/** The steps of a dotted path or a JSON pointer. */
function pathOf(field: string): string[] {
  if (!field.startsWith("/")) {
    return field.split(".");
  }
  return field
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** The same for what is equal: objects have no order. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(textOf).join(",")}]`;
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${textOf(field)}`).join(",")}}`;
  }
  return typeof value === "bigint" ? String(value) : (JSON.stringify(value) ?? "");
}
