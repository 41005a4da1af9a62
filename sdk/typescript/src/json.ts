/**
 * JSON whose whole numbers keep all their digits: one that no float holds is a `bigint` here.
 *
 * Owns the reading and the writing of such numbers, text that is written as it is, and that what is written is what was given: all that `JSON`
 * would change or leave out is refused. All else is left to `JSON`, and so is a text without a long number.
 */

import { InvalidArgumentError } from "./errors.js";
import { isText } from "./keys.js";
import { isPlain, shownValue } from "./options.js";

/**
 * A value, or a part of one, that is given as JSON text and sent as that text, digit by digit: `1.50` stays `1.50`, and a fraction has as many
 * digits as it was written with. Text that is no JSON is refused when it is sent.
 */
export class RawJson {
  /** The text. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Tells it from every object that has a text, for types and for people. */
  get [Symbol.toStringTag](): "RawJson" {
    return "RawJson";
  }
}

/**
 * A value of JSON. A whole number that no float holds is a `bigint`; any other number goes through a double. A `Map`, a `Set`, a `Date` or an
 * object of a class is none, nor is one with `undefined`, `NaN` or `Infinity` in it.
 */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

/** What is written as JSON: a value, in which any part may be {@link RawJson}. All else is refused, with the path to it. */
export type JsonInput = JsonValue | RawJson | readonly JsonInput[] | { readonly [name: string]: JsonInput };

/**
 * A type all of whose values are stored as they are: JSON, or a `Uint8Array` as a whole. An interface is one where its fields are. For any
 * other type this is `never`.
 */
export type Storable<T> = T extends Uint8Array ? T : AsJson<T>;

type AsJson<T> = T extends JsonInput
  ? T
  : // An interface has no index signature, so it is looked into, and so is a list of them.
    T extends readonly unknown[]
    ? { readonly [At in keyof T]: AsJson<T[At]> }
    : T extends object
      ? T extends { [Symbol.iterator](): unknown } | ((...args: never[]) => unknown) | { toJSON(): unknown }
        ? never
        : { readonly [Name in keyof T]: AsJson<T[Name]> }
      : never;

/** Whole numbers with fewer digits are floats without loss. */
const LONG_DIGITS = 16;
const LONG = new RegExp(`\\d{${LONG_DIGITS}}`);
const WHOLE = /^-?\d+$/;
/** Stands before what `JSON` is to take for a string, since it has no form for it. Random, so that no text of the caller's begins so. */
const MARK = `as-it-is:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
const MARKED = new RegExp(`"${MARK}(\\d+)"`, "g");
const MADE_OF =
  "a value is made of plain objects, arrays, strings, booleans, null, bigints, finite numbers and RawJson";
/** What is deeper is in a circle, or as good as that. */
const DEPTH_MAX = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

/** The value of this text. */
export function parseJson(text: string): unknown {
  if (!LONG.test(text)) {
    return JSON.parse(text) as unknown;
  }
  const marked = markLong(text);
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  ) as unknown;
}

/** The text of this value. Refuses one that would not come back as it is. */
export function stringifyJson(value: unknown): string {
  const scanned = scan(value, 0);
  if (typeof scanned === "object") {
    const path = scanned.path.reverse().join("").replace(/^\./, "");
    throw new InvalidArgumentError(`${path || "the value"} ${scanned.why}`);
  }
  if (!scanned) {
    return JSON.stringify(value);
  }
  const texts: string[] = [];
  const text = JSON.stringify(value, (_, part: unknown) => {
    const asItIs = textOf(part);
    return asItIs === undefined ? part : `${MARK}${texts.push(asItIs) - 1}`;
  });
  return text.replace(MARKED, (_, at: string) => texts[Number(at)] as string);
}

/** The text of what `JSON` would not write as it is; `undefined` for all else. */
function textOf(part: unknown): string | undefined {
  if (part instanceof RawJson) {
    return part.text;
  }
  if (Object.is(part, -0)) {
    return "-0";
  }
  return typeof part === "bigint" ? String(part) : undefined;
}

/** Where a value is none of JSON: the steps to it, the last one first, and why. */
interface Refused {
  readonly why: string;
  readonly path: string[];
}

/** Whether something is in a value that `JSON` would not write as it is; or what is in it that has no form there at all. */
function scan(value: unknown, depth: number): boolean | Refused {
  switch (typeof value) {
    case "string":
    case "boolean":
      return false;
    case "number":
      return Number.isFinite(value) ? Object.is(value, -0) : refused(value);
    case "bigint":
      return true;
    case "object":
      return value === null ? false : scanParts(value, depth);
    default:
      return refused(value);
  }
}

function scanParts(value: object, depth: number): boolean | Refused {
  if (depth >= DEPTH_MAX) {
    return because(`is more than ${DEPTH_MAX} levels deep, or in a circle`);
  }
  if (value instanceof RawJson) {
    return scanRaw(value);
  }
  return Array.isArray(value) ? scanArray(value, depth) : scanObject(value, depth);
}

function scanArray(values: readonly unknown[], depth: number): boolean | Refused {
  if ("toJSON" in values) {
    return refused(values);
  }
  let isSpecial = false;
  // By number: a hole is `undefined`, which is refused.
  for (let at = 0; at < values.length; at += 1) {
    const part = scan(values[at], depth + 1);
    if (typeof part === "object") {
      part.path.push(`[${at}]`);
      return part;
    }
    isSpecial ||= part;
  }
  return isSpecial;
}

function scanObject(value: object, depth: number): boolean | Refused {
  if (!isPlain(value)) {
    return refused(value);
  }
  if (Object.getOwnPropertySymbols(value).length > 0) {
    return because("has a field that a symbol names");
  }
  let isSpecial = false;
  for (const name of Object.keys(value)) {
    const part = scan(value[name], depth + 1);
    if (typeof part === "object") {
      part.path.push(/^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
      return part;
    }
    isSpecial ||= part;
  }
  return isSpecial;
}

/** Text that is JSON, and that UTF-8 can hold; or why it is not. */
function scanRaw({ text }: RawJson): true | Refused {
  if (typeof text !== "string" || !isText(text)) {
    return { why: "is a RawJson of no text: expected a string of well-formed Unicode", path: [] };
  }
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    return { why: `is a RawJson whose text is no JSON: ${(error as SyntaxError).message}`, path: [] };
  }
}

function refused(value: unknown): Refused {
  return because(`is ${shownValue(value)}`);
}

function because(why: string): Refused {
  return { why: `${why}: ${MADE_OF}`, path: [] };
}

/** The text with each whole number that no float holds as a marked string. */
function markLong(text: string): string {
  const parts: string[] = [];
  let taken = 0;
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = endOfString(text, at);
    } else if (unit === MINUS || isDigit(unit)) {
      const end = endOfNumber(text, at);
      const number = text.slice(at, end);
      if (number.length >= LONG_DIGITS && WHOLE.test(number) && !Number.isSafeInteger(Number(number))) {
        parts.push(text.slice(taken, at), `"${MARK}${number}"`);
        taken = end;
      }
      at = end;
    } else {
      at += 1;
    }
  }
  return parts.join("") + text.slice(taken);
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= NINE;
}

/** Behind the quote that ends the string which begins here. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) {
      backslashes += 1;
    }
    if (backslashes % 2 === 0) {
      return at + 1;
    }
  }
  return text.length;
}

/** Behind the number that begins here. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && /[\d.eE+-]/.test(text[at] ?? "")) {
    at += 1;
  }
  return at;
}
