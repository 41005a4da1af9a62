/**
 * Names of fields: `ttl_ms` on the wire is `ttlMs` here.
 *
 * Owns the translation in both directions, for types and for objects. What callers store (values, payloads, labels, patches) is never
 * looked into. Bytes are base64 on the wire, in a field of its own, and so are keys that are no text.
 */

import { fromBase64, toBase64 } from "./base64.js";
import { InvalidArgumentError } from "./errors.js";
import { bytesOfKey, isText, keyOfBytes } from "./keys.js";
import { duration, isPlain } from "./options.js";

type CamelName<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelName<Tail>>}`
  : Name;

/** An object of the wire with the names of its fields as they are here. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? string extends keyof T
      ? { [Name in keyof T]: Camel<T[Name]> }
      : { [Name in keyof T as Name extends string ? CamelName<Name> : Name]: Camel<T[Name]> }
    : T;

/** Fields whose content belongs to the caller. */
const OPAQUE = new Set(["value", "payload", "actual", "labels", "default", "patch"]);
/** Fields with bytes as base64, by the name of the field that has them as they are. */
const BASE64 = "_base64";
/** Fields that hold a key, or what keys begin with. */
const KEYS = new Set(["key", "prefix", "name"]);
/** A field that holds many keys, and those of them that are no text. */
const KEY_LIST = "keys";
/** Fields that are maps by names of the caller's. */
const MAPS = new Set(["fields"]);

const camels = new Map<string, string>();
const snakes = new Map<string, string>();

function remembered(names: Map<string, string>, name: string, translate: (name: string) => string): string {
  let known = names.get(name);
  if (known === undefined) {
    known = translate(name);
    names.set(name, known);
  }
  return known;
}

function camel(name: string): string {
  return remembered(camels, name, (name) =>
    name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
  );
}

function snake(name: string): string {
  return remembered(snakes, name, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function translated(
  value: unknown,
  field: (into: Record<string, unknown>, name: string, content: unknown, of: Record<string, unknown>) => void,
): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => translated(item, field));
  }
  if (!isPlain(value)) {
    return value;
  }
  const into: Record<string, unknown> = {};
  for (const [name, content] of Object.entries(value)) {
    field(into, name, content, value);
  }
  return into;
}

function mapped(map: Record<string, unknown>, each: (value: unknown) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, each(value)]));
}

/** An object of the wire as it is here. */
export function fromWire(wire: unknown): unknown {
  return translated(wire, (into, name, content) => {
    if (OPAQUE.has(name)) {
      into[name] = content;
    } else if (name === KEY_LIST || name === KEY_LIST + BASE64) {
      addKeys(into, name, content as readonly string[]);
    } else if (name.endsWith(BASE64) && typeof content === "string") {
      const plain = name.slice(0, -BASE64.length);
      const bytes = fromBase64(content);
      into[plain] = KEYS.has(plain) ? keyOfBytes(bytes) : bytes;
    } else if (MAPS.has(name) && isPlain(content)) {
      into[name] = mapped(content, fromWire);
    } else {
      into[camel(name)] = fromWire(content);
    }
  });
}

/** Keys that are texts, or those that are none, to the list of both. */
function addKeys(into: Record<string, unknown>, name: string, content: readonly string[]): void {
  const keys = name === KEY_LIST ? content : content.map((key) => keyOfBytes(fromBase64(key)));
  into[KEY_LIST] = [...((into[KEY_LIST] as string[] | undefined) ?? []), ...keys];
}

/** An object as it is here as one of the wire. Fields that are `undefined` are left out, spans of time are whole milliseconds. */
export function toWire(value: unknown): unknown {
  if (typeof value === "string" && !isText(value)) {
    throw new InvalidArgumentError(`${JSON.stringify(value)} is not well-formed Unicode`);
  }
  return translated(value instanceof Date ? value.toJSON() : value, (into, name, content, of) => {
    if (content === undefined) {
      return;
    }
    if (OPAQUE.has(name)) {
      putContent(into, name, content, of);
    } else if (KEYS.has(name) && typeof content === "string" && !isText(content)) {
      into[name + BASE64] = toBase64(bytesOfKey(content));
    } else if (MAPS.has(name) && isPlain(content)) {
      into[name] = mapped(content, toWire);
    } else if (name.endsWith("Ms")) {
      into[snake(name)] = duration(name, content as number);
    } else {
      into[snake(name)] = toWire(content);
    }
  });
}

/** What belongs to the caller, but for bytes, and what a key is compared with. */
function putContent(
  into: Record<string, unknown>,
  name: string,
  content: unknown,
  of: Record<string, unknown>,
): void {
  if (name === "value" && of["field"] === "$key") {
    into[name] = Array.isArray(content) ? content.map(keyValue) : keyValue(content);
  } else if (content instanceof Uint8Array) {
    into[name + BASE64] = toBase64(content);
  } else {
    into[name] = content;
  }
}

/** What `$key` is compared with. */
function keyValue(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return { base64: toBase64(value) };
  }
  return typeof value === "string" && !isText(value) ? { base64: toBase64(bytesOfKey(value)) } : value;
}
