/**
 * Names of entries, of locks, queues and users: how they are shown, how they are typed, how they stand in an address.
 *
 * Owns that no two names look alike, and that what is shown is what is taken. The form is that of the command line, `\xff` for a byte.
 */

import { bytesOfKey, keyOfBytes, keyOfShown, shownKey } from "quorate";

/**
 * What cannot be seen, what looks like the space, and what turns the direction of text: controls, marks, fillers, what no font has.
 * More than the command line escapes; it reads all of it.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufff0-\uffff]|(?! )\p{Zs}/gu;
/** Spaces that a line swallows: at its ends, and one behind another. */
const SWALLOWED = /^ | (?= |$)/g;

const encoder = new TextEncoder();

/** A name for people, such that no two look alike; {@link keyOfShown} backwards. */
export function shownName(name: string): string {
  return shownText(shownKey(name).replace(SWALLOWED, "\\x20"));
}

/** A text for people that has names in it, each as it is shown: what cannot be seen is escaped in the same form. */
export function shownText(text: string): string {
  return text.replace(UNSEEN, (character) =>
    Array.from(encoder.encode(character), (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** The name that somebody typed where only a text can be one. What is shown is what is taken; bytes that are no text are as typed. */
export function textOfShown(typed: string): string {
  const name = keyOfShown(typed);
  return /\p{Surrogate}/u.test(name) ? typed : name;
}

/** Whether a name has this text in it, as somebody sees the two. */
export function isShownIn(name: string, typed: string): boolean {
  return shownName(name).toLowerCase().includes(shownText(typed.trim()).toLowerCase());
}

/**
 * What is behind a prefix in a name; `undefined` where the name does not begin so. Byte by byte, as nodes compare: a prefix may end within a
 * character.
 */
export function behindPrefix(name: string, prefix: string): string | undefined {
  if (name.startsWith(prefix)) {
    return name.slice(prefix.length);
  }
  if (!/\p{Surrogate}/u.test(prefix)) {
    return undefined;
  }
  const [bytes, begin] = [bytesOfKey(name), bytesOfKey(prefix)];
  return begin.every((byte, at) => byte === bytes[at]) ? keyOfBytes(bytes.subarray(begin.length)) : undefined;
}

/** Parameters that name entries. */
const NAMES = new Set(["key", "prefix"]);

/** A parameter of an address as it stands there: no address can hold a name that is no text. */
export function parameterOf(name: string, value: string): string {
  return NAMES.has(name) ? shownName(value) : value;
}

/** A key, or what keys begin with, in an address; `null` where there is none. */
export function nameIn(query: URLSearchParams, name: "key" | "prefix"): string | null {
  const shown = query.get(name);
  return shown === null ? null : keyOfShown(shown);
}
