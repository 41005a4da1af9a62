/**
 * JSON whose whole numbers keep all their digits: one that no float holds is a `bigint` here.
 *
 * Owns the reading and the writing of such numbers. All else is left to `JSON`, and so is a text without a long number.
 */

/** Whole numbers with fewer digits are floats without loss. */
const LONG_DIGITS = 16;
const LONG = new RegExp(`\\d{${LONG_DIGITS}}`);
const WHOLE = /^-?\d+$/;
/** Stands before the digits of a number while `JSON` takes it for a string. Random, so that no text of the caller's begins so. */
const MARK = `bigint:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");

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

/** The text of this value. */
export function stringifyJson(value: unknown): string {
  let hasBig = false;
  const text = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "bigint") {
      return part;
    }
    hasBig = true;
    return MARK + String(part);
  });
  return hasBig ? text.replace(MARKED, "$1") : text;
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
