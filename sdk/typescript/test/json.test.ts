import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, stringifyJson } from "../src/json.js";

test("whole numbers that no float holds are bigints, and are written as they were", () => {
  const text =
    '{"max":9223372036854775807,"min":-9223372036854775808,"safe":9007199254740991,"odd":[9007199254740993,1]}';
  const value = parseJson(text);
  assert.deepEqual(value, {
    max: 9223372036854775807n,
    min: -9223372036854775808n,
    safe: 9007199254740991,
    odd: [9007199254740993n, 1],
  });
  assert.equal(stringifyJson(value), text);
});

test("strings with digits, quotes and backslashes stay strings, and floats stay floats", () => {
  const value = {
    digits: "9007199254740993",
    tricky: '"9007199254740993\\',
    nested: { '9007199254740993"\\': "\\\\9007199254740993" },
    big: 1.2345678901234567e300,
    long: 0.1234567890123456,
    deep: [[-12345678901234567890n]],
  };
  assert.deepEqual(parseJson(stringifyJson(value)), value);
  assert.equal(parseJson("12345678901234567890e2"), Number("12345678901234567890e2"));
});

test("what is no JSON is refused, long or not", () => {
  for (const text of [
    "",
    "{",
    "00000000000000001",
    '{"a":9007199254740993',
    '"9007199254740993',
    "--9007199254740993",
  ]) {
    assert.throws(() => parseJson(text), SyntaxError, text);
  }
});
