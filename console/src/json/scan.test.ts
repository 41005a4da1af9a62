import { describe, expect, test } from "vitest";
import { random } from "../text/random.test-support.js";
import { compactJson, formatJson, prettyJson, storedJson, visible } from "./format.js";
import { endOfValue, JsonFault, scanJson } from "./scan.js";

function faultOf(text: string): JsonFault {
  try {
    scanJson(text);
  } catch (error) {
    if (error instanceof JsonFault) {
      return error;
    }
    throw error;
  }
  throw new Error(`${text} was taken for JSON`);
}

describe("scanJson", () => {
  test("keeps the digits of numbers and the order of members", () => {
    const text = '{"z":12345678901234567890,"a":1.10,"2":-0,"1":1e400,"deep":[[],{},null,true,false,""]}';
    expect(compactJson(scanJson(text))).toBe(text);
  });

  test.each([
    ['{"a": 1,}', 1, 9],
    ['{"a": 1 "b": 2}', 1, 9],
    ["{a: 1}", 1, 2],
    ['{\n  "a": 01\n}', 2, 8],
    ['{\n  "a": tru\n}', 2, 8],
    ["[1, 2", 1, 6],
    ["", 1, 1],
    ['{"a": 1}\n{', 2, 1],
    ['{"a": "x\ny"}', 1, 9],
    ['{"a": "\\\\ \\q"}', 1, 11],
    ['{"a": "x}', 1, 7],
    ["1.", 1, 1],
    ["1e5x", 1, 1],
  ])("says where the mistake in %j is", (text, line, column) => {
    const fault = faultOf(text);
    expect([fault.line, fault.column]).toEqual([line, column]);
    expect(() => JSON.parse(text)).toThrow();
  });

  test("says where a name stands for the second time, which a node refuses", () => {
    const fault = faultOf('{"a": 1,\n "a": 2}');
    expect([fault.line, fault.column]).toEqual([2, 2]);
  });

  test("takes what JSON.parse takes, and nothing else", () => {
    const parts = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"a"',
      '"\\u00e4"',
      "1",
      "-2.5e3",
      "true",
      "null",
      " ",
      "\n",
    ];
    const seed = Date.now() % 2 ** 32;
    const next = random(seed);
    for (let turn = 0; turn < 20_000; turn += 1) {
      const text = Array.from({ length: 1 + next(7) }, () => parts[next(parts.length)]).join("");
      const parsed = attempt(() => JSON.parse(text) as unknown);
      const scanned = attempt(() => JSON.parse(compactJson(scanJson(text))) as unknown);
      const isTwice = /"a"[^{]*"a"/.test(text) && scanned === undefined;
      if (!isTwice) {
        expect(scanned, `${JSON.stringify(text)}, seed ${seed}`).toEqual(parsed);
      }
    }
  });

  test("refuses what is deeper than a node stores", () => {
    expect(faultOf("[".repeat(200)).message).toMatch(/levels deep/);
  });
});

test("endOfValue passes over a value", () => {
  for (const value of ['{"a":[1,"}"]}', '"a\\"}"', "12", "true", "[]", '[{"x":"]"}]']) {
    expect(endOfValue(`${value},"next":1}`, 0)).toBe(value.length);
    expect(endOfValue(`${value}}`, 0)).toBe(value.length);
  }
});

describe("forms of JSON", () => {
  test("formatJson indents, and leaves short lists on a line", () => {
    expect(prettyJson('{"a":[1,2],"b":{},"c":{"d":[{"e":1}]}}')).toBe(
      '{\n  "a": [1, 2],\n  "b": {},\n  "c": {\n    "d": [\n      {\n        "e": 1\n      }\n    ]\n  }\n}',
    );
  });

  test("formatJson escapes what cannot be seen, storedJson does not", () => {
    const value = scanJson(JSON.stringify({ "a\u202eb": "x\u200by" }));
    expect(formatJson(value)).toBe('{\n  "a\\u202eb": "x\\u200by"\n}');
    expect(storedJson(value)).toBe('{"a\u202eb":"x\u200by"}');
    expect(storedJson(scanJson(formatJson(value)))).toBe(storedJson(value));
  });

  test("visible escapes controls", () => {
    expect(visible("a\u0000b\u2066c")).toBe("a\\u0000b\\u2066c");
    expect(visible("äöü 汉字 ❤️")).toBe("äöü 汉字 ❤️");
  });
});

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
