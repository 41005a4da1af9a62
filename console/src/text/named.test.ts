import { bytesOfKey, keyOfBytes, keyOfShown } from "quorate";
import { expect, test } from "vitest";
import { endOfPrefix } from "../api/keys.js";
import { keyMember, keyWord } from "../api/literals.js";
import { visible } from "../json/format.js";
import { behindPrefix, isShownIn, nameIn, parameterOf, shownName, shownText, textOfShown } from "./named.js";
import { random } from "./random.test-support.js";

test("a key that is no text stands in an address, a body and a command as itself", () => {
  for (const key of ["a/\udcff", "a/\ufffd", "a/\\xff", "ä", " a  b ", "a\u200b", "a\\u200b"]) {
    const query = new URLSearchParams([["key", parameterOf("key", key)]]);
    expect(nameIn(new URLSearchParams(query.toString()), "key")).toBe(key);
    expect(keyOfShown(keyWord(key))).toBe(key);
  }
  expect(keyMember("key", "a/\udcff")).toBe('"key_base64":"YS//"');
  expect(keyMember("prefix", "a")).toBe('"prefix":"a"');
  expect(keyWord("a/\udcff")).toBe("a/\\xff");
  expect(endOfPrefix("a/\udcfe")).toBe("a/\udcff");
  expect(endOfPrefix("a/\udcff")).toBe("a0");
});

/** What names are made of: parts of characters, escapes and what looks like them, what is not seen. */
const PARTS = [
  "a",
  "ff",
  "0",
  " ",
  "/",
  "\\",
  "\\x",
  "\\xff",
  "\\x5c",
  "\\x20",
  "\\u",
  "\\u200b",
  "\\xe2\\x80\\x8b",
  "\udcff",
  "\udcc3",
  "\udce2\udc80",
  "ü",
  "汉",
  "\u0000",
  "\t",
  "\n",
  "\u007f",
  "\u0085",
  "\u00a0",
  "\u00ad",
  "\u200b",
  "\u202e",
  "\u2028",
  "\u2066",
  "\u3000",
  "\u3164",
  "\ufe0f",
  "\ufeff",
  "\ufffd",
  "\uffff",
  "\ue000",
  "\u{e0041}",
  "\u{1f600}",
];

/** A name is what its bytes are: parts of characters may come to one. */
function nameOf(parts: readonly string[]): string {
  return keyOfBytes(bytesOfKey(parts.join("")));
}

function* names(): Generator<string> {
  yield "";
  for (const one of PARTS) {
    yield nameOf([one]);
    for (const other of PARTS) {
      yield nameOf([one, other]);
    }
  }
  const below = random(1);
  for (let count = 0; count < 10_000; count += 1) {
    const length = 3 + below(5);
    yield nameOf(Array.from({ length }, () => PARTS[below(PARTS.length)] ?? ""));
  }
}

test("no two names are shown alike, and each is read back", () => {
  const shown = new Map<string, string>();
  const wrong: unknown[] = [];
  for (const name of names()) {
    const text = shownName(name);
    const isAlone = (shown.get(text) ?? name) === name;
    // Nothing is left that is not seen, that a line swallows, or that another form would escape in its own way.
    const isSeen = /^(?:[!-~ü汉\u{1f600}]| (?=[^ ]))*$/u.test(text) && text.trim() === text;
    // Within a sentence it stays what it is.
    const isSettled = shownText(text) === text && visible(text) === text;
    if (keyOfShown(text) !== name || !isAlone || !isSeen || !isSettled) {
      wrong.push([name, text]);
    }
    shown.set(text, name);
  }
  expect(wrong).toEqual([]);
  expect(shown.size).toBeGreaterThan(10_000);
});

test.each([
  ["a/\udcfe", "a/\\xfe"],
  ["\\xfe", "\\x5cxfe"],
  ["C:\\temp", "C:\\temp"],
  ["a\\u200b", "a\\u200b"],
  ["a\u200b", "a\\xe2\\x80\\x8b"],
  ["a\u202eb", "a\\xe2\\x80\\xaeb"],
  ["a\u0007", "a\\x07"],
  ["two words", "two words"],
  [" a  b ", "\\x20a\\x20 b\\x20"],
  ["ä 汉字 \u{1f600}", "ä 汉字 \u{1f600}"],
])("the name %j is shown as %s", (name, shown) => {
  expect(shownName(name)).toBe(shown);
});

test("all that is escaped in JSON is escaped in names", () => {
  for (let code = 0; code <= 0xffff; code += 1) {
    const character = String.fromCharCode(code);
    if (visible(character) !== character) {
      expect(shownText(character)).toMatch(/^(?:\\x[0-9a-f]{2})+$/);
    }
  }
});

test("a typed name of what is a text is one", () => {
  expect(textOfShown("mails")).toBe("mails");
  expect(textOfShown("a\\x5cx41")).toBe("a\\x41");
  expect(textOfShown("a\\xe2\\x80\\x8b")).toBe("a\u200b");
  expect(textOfShown("a\\xff")).toBe("a\\xff");
});

test("a name begins with a prefix byte by byte", () => {
  expect(behindPrefix("orders/1", "orders/")).toBe("1");
  expect(behindPrefix("orders/1", "order/")).toBeUndefined();
  expect(behindPrefix("\u00fcx", "\udcc3")).toBe("\udcbcx");
  expect(behindPrefix("\u{1f600}/a", "\udcf0\udc9f\udc98")).toBe("\udc80/a");
  expect(behindPrefix("a\udcff", "a\udcff")).toBe("");
  expect(behindPrefix("\u00fc", "\udcc4")).toBeUndefined();
  expect(behindPrefix("", "\udcc4")).toBeUndefined();
});

test("what is looked for in names is what is seen of them", () => {
  expect(isShownIn("Orders\u200b", " orders\\xE2")).toBe(true);
  expect(isShownIn("Orders\u200b", "s\u200b")).toBe(true);
  expect(isShownIn("a\\xff", "\\x5cxff")).toBe(true);
  expect(isShownIn("a\udcff", "\\xff")).toBe(true);
  expect(isShownIn("orders", "x")).toBe(false);
});
