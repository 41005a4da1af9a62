/**
 * Stored values as the JSON text that they are.
 *
 * Owns that no digit of a value is lost between the node and the page: the client gives each value as a `JsonText`, which nobody has
 * parsed, and sends one back as it is, since it is raw JSON to it.
 */

import { RawJson } from "quorate";
import { compactJson, formatJson } from "../json/format.js";
import { endOfString, endOfValue, type Json, scanJson } from "../json/scan.js";

/** Stands in for a text until the answer around it is parsed. Random, so that no string of anybody's is so. */
const MARK = `json-text:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
/** Members of answers that hold what users stored. */
const VALUE = /"(?:value|payload|actual)":/y;

/** A value as JSON text. */
export class JsonText extends RawJson {
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
}

/** Reads an answer: what users stored in it becomes {@link JsonText}. */
export function parseAnswer(answer: string): unknown {
  const { marked, texts } = taken(answer);
  return JSON.parse(marked, (_, value: unknown) => {
    const text =
      typeof value === "string" && value.startsWith(MARK)
        ? texts[Number(value.slice(MARK.length))]
        : undefined;
    return text === undefined ? value : new JsonText(text);
  }) as unknown;
}

/** The answer with a mark in place of each value, and the text of each. */
function taken(answer: string): { readonly marked: string; readonly texts: readonly string[] } {
  const [parts, texts]: [string[], string[]] = [[], []];
  let done = 0;
  for (let at = 0; at < answer.length; ) {
    const quote = answer.indexOf('"', at);
    if (quote < 0) {
      break;
    }
    VALUE.lastIndex = quote;
    const name = VALUE.exec(answer);
    if (name === null) {
      at = endOfString(answer, quote) ?? answer.length;
      continue;
    }
    const from = quote + name[0].length;
    at = endOfValue(answer, from);
    parts.push(answer.slice(done, from), `"${MARK}${texts.length}"`);
    texts.push(answer.slice(from, at));
    done = at;
  }
  return { marked: parts.join("") + answer.slice(done), texts };
}
