/** Strings, numbers and options as the languages of `Copy as` write them. Owns quoting. */

import { bytesOfKey } from "quorate";
import { quoted, visible } from "../json/format.js";
import { endOfString } from "../json/scan.js";
import { shownName } from "../text/named.js";

/** A word for a shell. One with characters that cannot be seen is in the form `$'…'`, which bash and zsh have. */
export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  const escaped = word.replace(/[\\']/g, "\\$&");
  const seen = visible(escaped);
  return seen === escaped ? `'${word.replace(/'/g, "'\\''")}'` : `$'${seen}'`;
}

/** A string for Python or TypeScript. What cannot be seen is escaped. */
export function text(value: string): string {
  return quoted(value);
}

/** JSON text as a Python value. */
export function pythonValue(json: string): string {
  return outsideStrings(json, (part) =>
    part
      .replace(/\btrue\b/g, "True")
      .replace(/\bfalse\b/g, "False")
      .replace(/\bnull\b/g, "None"),
  );
}

/** JSON text as a TypeScript value: whole numbers that no float holds are `bigint` there. */
export function typescriptValue(json: string): string {
  return outsideStrings(json, (part) =>
    part.replace(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (number) =>
      /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)) ? `${number}n` : number,
    ),
  );
}

function outsideStrings(json: string, change: (part: string) => string): string {
  const parts: string[] = [];
  for (let at = 0; at < json.length; ) {
    const quote = json.indexOf('"', at);
    const end = quote < 0 ? json.length : quote;
    parts.push(change(json.slice(at, end)));
    at = quote < 0 ? json.length : (endOfString(json, quote) ?? json.length);
    if (quote >= 0) {
      parts.push(json.slice(quote, at));
    }
  }
  return parts.join("");
}

/** Named arguments of a Python call, after others: `, limit=10`. Those that are `undefined` are left out. */
export function pythonOptions(options: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `, ${name}=${value}`)
    .join("");
}

/** An object of options in TypeScript: `{ limit: 10 }`; nothing where there are none. */
export function typescriptOptions(options: Readonly<Record<string, string | undefined>>): string {
  const parts = Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}`);
  return parts.length === 0 ? "" : `{ ${parts.join(", ")} }`;
}

/** A key, or what keys begin with, as a member of a JSON object: in base64 under another name where it is no text. */
export function keyMember(name: "key" | "prefix", key: string): string {
  return isText(key) ? `"${name}":${JSON.stringify(key)}` : `"${name}_base64":"${keyBase64(key)}"`;
}

/** Whether a key is a text, which JSON can hold. */
export function isText(key: string): boolean {
  return !/\p{Surrogate}/u.test(key);
}

/** A key in base64. */
export function keyBase64(key: string): string {
  return btoa(String.fromCharCode(...bytesOfKey(key)));
}

/** A key as a word of the command line, which takes it as it shows it. */
export function keyWord(key: string): string {
  return shownName(key);
}
