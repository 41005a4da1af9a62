/**
 * Stored values as the JSON text that they are.
 *
 * Owns that no digit of a value is lost between the node and the page: the client gives each value as a `JsonText`, which nobody has
 * parsed, and sends one back as it is. The text goes through the client inside a marked string, which is opened at the two ends: where
 * answers are read, and where bodies are sent.
 */

import { compactJson, formatJson } from "../json/format.js";
import { endOfString, endOfValue, type Json, scanJson } from "../json/scan.js";

/** Stands before a text inside a string. Random, so that no string of anybody's begins so. */
const MARK = `json-text:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
/** Members of answers that hold what users stored. */
const VALUE = /"(?:value|payload|actual)":/y;

/** A value as JSON text. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The value as a tree. */
  get tree(): Json {
    return scanJson(this.text);
  }

  /** The text for people, indented. */
  get pretty(): string {
    return formatJson(this.tree);
  }

  /** The beginning of the text, on one line. */
  preview(length: number): string {
    const text = this.text.length > 4 * length ? this.text.slice(0, length) : compactJson(this.tree);
    return text.length > length ? `${text.slice(0, length - 1)}…` : text;
  }

  toJSON(): string {
    return MARK + this.text;
  }
}

/** Reads an answer: what users stored in it becomes {@link JsonText}. */
export function parseAnswer(text: string): unknown {
  return JSON.parse(marked(text), (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? new JsonText(value.slice(MARK.length)) : value,
  ) as unknown;
}

/** The answer with each value as a marked string. */
function marked(text: string): string {
  const parts: string[] = [];
  let taken = 0;
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) {
      break;
    }
    VALUE.lastIndex = quote;
    const name = VALUE.exec(text);
    if (name === null) {
      at = endOfString(text, quote) ?? text.length;
      continue;
    }
    const from = quote + name[0].length;
    at = endOfValue(text, from);
    parts.push(text.slice(taken, from), JSON.stringify(MARK + text.slice(from, at)));
    taken = at;
  }
  return parts.length === 0 ? text : parts.join("") + text.slice(taken);
}

/** A body with each marked string as the text that it holds. */
export function unmarked(body: string): string {
  const parts: string[] = [];
  let taken = 0;
  for (let at = body.indexOf(`"${MARK}`); at >= 0; at = body.indexOf(`"${MARK}`, taken)) {
    const end = endOfString(body, at) ?? body.length;
    parts.push(body.slice(taken, at), (JSON.parse(body.slice(at, end)) as string).slice(MARK.length));
    taken = end;
  }
  return parts.length === 0 ? body : parts.join("") + body.slice(taken);
}

/** {@link unmarked} for the parameters of a path and query. */
export function unmarkedTarget(target: string): string {
  return target.replace(/(?<==)[^&]+/g, (value) => {
    const text = decoded(value);
    return text.includes(MARK) ? encodeURIComponent(unmarked(text)) : value;
  });
}

/** The text of a parameter; a key that is no text has none, and no mark either. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return "";
  }
}
