/**
 * Keys that are no text: bytes, as clients of etcd may write them.
 *
 * Owns their form. Here a key is a string; one that is no UTF-8 has a lone surrogate (U+DC80 to U+DCFF) for each byte that is part of no
 * character, as names of files have it in Python. So no two keys are the same string, and what was read can be asked for. On the wire such a
 * key is base64, in a field of its own.
 */

import { InvalidArgumentError } from "./errors.js";

/** A byte that is part of no character is this and itself. */
const ESCAPE = 0xdc00;
const LONE = /\p{Surrogate}/u;
const LONE_BYTE = /[\udc80-\udcff]/u;

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The key of these bytes. */
export function keyOfBytes(bytes: Uint8Array): string {
  const whole = decoded(bytes);
  if (whole !== undefined) {
    return whole;
  }
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + characterBytes(bytes[at] ?? 0);
    const character = end <= bytes.length ? decoded(bytes.subarray(at, end)) : undefined;
    parts.push(character ?? String.fromCharCode(ESCAPE + (bytes[at] ?? 0)));
    at = character === undefined ? at + 1 : end;
  }
  return parts.join("");
}

/** The bytes of a key. Throws where half a character is in it that stands for no byte. */
export function bytesOfKey(key: string): Uint8Array {
  if (!LONE.test(key)) {
    return encoder.encode(key);
  }
  const parts = Array.from(key, (character) => {
    if (!LONE.test(character)) {
      return encoder.encode(character);
    }
    if (!LONE_BYTE.test(character)) {
      throw new InvalidArgumentError(
        `${JSON.stringify(key)} is no key: half a character in it stands for no byte`,
      );
    }
    return Uint8Array.of(character.charCodeAt(0) - ESCAPE);
  });
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A key in its one form: bytes that somebody put together may make a character. */
export function canonicalKey(key: string): string {
  return isText(key) ? key : keyOfBytes(bytesOfKey(key));
}

/** Whether a key begins so. Byte by byte, as nodes compare: a prefix may end within a character. */
export function beginsWith(key: string, prefix: string): boolean {
  if (isText(prefix)) {
    return key.startsWith(prefix);
  }
  const bytes = bytesOfKey(key);
  return bytesOfKey(prefix).every((byte, at) => byte === bytes[at]);
}

/** Whether a string is a text; else it is at most a key. */
export function isText(text: string): boolean {
  return !LONE.test(text);
}

/**
 * A key for people, and such that no two keys look alike: a byte that is no text is `\xff`, and so is a backslash that would be read as the
 * start of one. The command line takes and shows keys in this form.
 */
export function shownKey(key: string): string {
  const text = key.replace(/\\(?=x[0-9a-fA-F]{2})/g, "\\x5c");
  return isText(text)
    ? text
    : Array.from(text, (character) =>
        LONE_BYTE.test(character)
          ? `\\x${(character.charCodeAt(0) - ESCAPE).toString(16).padStart(2, "0")}`
          : character,
      ).join("");
}

/** The key that is shown like this: {@link shownKey} backwards. */
export function keyOfShown(shown: string): string {
  if (!/\\x[0-9a-fA-F]{2}/.test(shown)) {
    return shown;
  }
  const parts = shown.split(/\\x([0-9a-fA-F]{2})/);
  const bytes = parts.flatMap((part, at) =>
    at % 2 === 0 ? [...bytesOfKey(part)] : [Number.parseInt(part, 16)],
  );
  return keyOfBytes(Uint8Array.from(bytes));
}

/** A key as it stands in a URL. */
export function encodedKey(key: string): string {
  if (isText(key)) {
    return encodeURIComponent(key);
  }
  const plain = /[A-Za-z0-9\-_.~]/;
  return Array.from(bytesOfKey(key), (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}

/** Which of two keys comes first: that of the lesser bytes. */
export function compareBytes(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return one.length - other.length;
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Of the character that begins with this byte. */
function characterBytes(first: number): number {
  return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}
