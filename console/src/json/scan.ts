/**
 * Reads JSON text and loses nothing of it.
 *
 * Owns the tree in which numbers keep the digits that they were written with and members their order, the place of a mistake, and how
 * text is passed over without a tree. `JSON.parse` would round numbers, and browsers do not agree on how to tell where a mistake is.
 */

/** A value. A number is the text that it was written with; so is a string, decoded. */
export type Json =
  | { readonly kind: "object"; readonly members: readonly Member[] }
  | { readonly kind: "array"; readonly items: readonly Json[] }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "word"; readonly word: "true" | "false" | "null" };

/** A member of an object. */
export interface Member {
  readonly name: string;
  readonly value: Json;
}

/** Text that is no JSON, and where. */
export class JsonFault extends Error {
  override name = "JsonFault";
  /** How many characters come before the mistake. */
  readonly at: number;
  /** Its line, from 1. */
  readonly line: number;
  /** Its column, from 1. */
  readonly column: number;

  constructor(what: string, text: string, at: number) {
    super(what);
    this.at = at;
    const before = text.slice(0, at);
    this.line = before.split("\n").length;
    this.column = at - before.lastIndexOf("\n");
  }
}

/** Deeper than this no node stores a document, and a page has to end somewhere. */
const DEPTH_MAX = 128;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

/** The value of this text. Throws a {@link JsonFault}. */
export function scanJson(text: string): Json {
  const scanner = new Scanner(text);
  const value = scanner.value(0);
  scanner.space();
  if (scanner.at < text.length) {
    throw scanner.fault("the value has ended here, and there is more text");
  }
  return value;
}

class Scanner {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  fault(what: string, at = this.at): JsonFault {
    return new JsonFault(what, this.#text, at);
  }

  space(): void {
    SPACE.lastIndex = this.at;
    SPACE.test(this.#text);
    this.at = SPACE.lastIndex;
  }

  value(depth: number): Json {
    if (depth > DEPTH_MAX) {
      throw this.fault(`a document is at most ${DEPTH_MAX} levels deep`);
    }
    this.space();
    switch (this.#text[this.at]) {
      case "{":
        return this.#object(depth);
      case "[":
        return this.#array(depth);
      case '"':
        return { kind: "string", value: this.#string() };
      case undefined:
        throw this.fault("a value is missing");
      default:
        return this.#scalar();
    }
  }

  #object(depth: number): Json {
    const members: Member[] = [];
    const names = new Set<string>();
    this.#list("}", () => {
      const from = this.at;
      if (this.#text[this.at] !== '"') {
        throw this.fault("the name of a member is missing: a string in double quotes");
      }
      const name = this.#string();
      if (names.has(name)) {
        throw this.fault(`the name ${JSON.stringify(name)} is there twice`, from);
      }
      names.add(name);
      this.space();
      this.#take(":", "a colon is missing after the name");
      members.push({ name, value: this.value(depth + 1) });
    });
    return { kind: "object", members };
  }

  #array(depth: number): Json {
    const items: Json[] = [];
    this.#list("]", () => {
      items.push(this.value(depth + 1));
    });
    return { kind: "array", items };
  }

  /** What stands between a bracket and `end`, separated by commas. */
  #list(end: string, item: () => void): void {
    this.at += 1;
    this.space();
    if (this.#text[this.at] === end) {
      this.at += 1;
      return;
    }
    for (;;) {
      this.space();
      item();
      this.space();
      if (this.#text[this.at] === end) {
        this.at += 1;
        return;
      }
      this.#take(",", `a comma is missing, or \`${end}\``);
    }
  }

  #take(sign: string, otherwise: string): void {
    if (this.#text[this.at] !== sign) {
      throw this.fault(otherwise);
    }
    this.at += 1;
  }

  #string(): string {
    const from = this.at;
    const end = endOfString(this.#text, from);
    if (end === undefined) {
      throw this.fault("a string is not closed", from);
    }
    const literal = this.#text.slice(from, end);
    try {
      const value = JSON.parse(literal) as string;
      this.at = end;
      return value;
    } catch {
      throw this.fault(whatIsWrong(literal), from + placeIn(literal));
    }
  }

  #scalar(): Json {
    NUMBER.lastIndex = this.at;
    const number = NUMBER.exec(this.#text)?.[0];
    if (number !== undefined) {
      this.at += number.length;
      if (/[\w.]/.test(this.#text[this.at] ?? "")) {
        throw this.fault("this is no number as JSON has them", this.at - number.length);
      }
      return { kind: "number", text: number };
    }
    WORD.lastIndex = this.at;
    const word = WORD.exec(this.#text)?.[0] as "true" | "false" | "null" | undefined;
    if (word === undefined) {
      throw this.fault("a value is missing: an object, an array, a string, a number, true, false or null");
    }
    this.at += word.length;
    return { kind: "word", word };
  }
}

/** A control, which a string of JSON has escaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f]/;
/** A backslash that begins no escape of JSON, escapes before it passed over. */
const NO_ESCAPE = /(?<=^(?:[^\\]|\\.)*)\\(?!["\\/bfnrt]|u[\da-fA-F]{4})/s;

/** Where in the literal of a string the mistake is: a control, else an escape that is none. */
function placeIn(literal: string): number {
  const control = literal.search(CONTROL);
  return Math.max(0, control >= 0 ? control : literal.search(NO_ESCAPE));
}

function whatIsWrong(literal: string): string {
  return CONTROL.test(literal)
    ? "a string ends on its line; write \\n for a new line, \\t for a tab"
    : "this is no escape that JSON has";
}

/** Behind the quote that ends the string which begins here; `undefined` where none does. */
export function endOfString(text: string, from: number): number | undefined {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") {
      backslashes += 1;
    }
    if (backslashes % 2 === 0) {
      return at + 1;
    }
  }
  return undefined;
}

/** What ends a value, or begins a part of one. */
const MARKS = /["{}[\],]/g;

/** Behind the value that begins here, which is known to be well formed. */
export function endOfValue(text: string, from: number): number {
  let depth = 0;
  MARKS.lastIndex = from;
  for (let mark = MARKS.exec(text); mark !== null; mark = MARKS.exec(text)) {
    const sign = mark[0];
    const end = sign === '"' ? (endOfString(text, mark.index) ?? text.length) : mark.index + 1;
    MARKS.lastIndex = end;
    const change = { "{": 1, "[": 1, "}": -1, "]": -1 }[sign] ?? 0;
    // Outside of all brackets, a comma or a bracket that closes belongs to what the value is in.
    if (depth === 0 && (sign === "," || change < 0)) {
      return mark.index;
    }
    depth += change;
    if (depth === 0) {
      return end;
    }
  }
  return text.length;
}
