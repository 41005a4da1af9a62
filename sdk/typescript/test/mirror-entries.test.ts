import assert from "node:assert/strict";
import { test } from "node:test";
import { compareKeys, MirrorEntries } from "../src/mirror-entries.js";
import type { Entry } from "../src/types.js";

function entry(key: string, value: unknown): Entry {
  return { key, value, contentType: "json", cas: "1", createRevision: "1", modRevision: "1", version: 1 };
}

function keys(entries: readonly Entry[] | undefined): string[] | undefined {
  return entries?.map((found) => found.key);
}

test("entries are found by what their fields are and not by what they were", () => {
  const ann = entry("u/ann", { email: "a@x", address: { zip: 8 }, tags: ["red", "blue"] });
  const entries = new MirrorEntries(
    ["email", "address.zip", "/tags"],
    [entry("u/ben", { email: "b@x", address: { zip: 8.0 } }), ann],
  );
  assert.deepEqual(keys(entries.find("email", "b@x")), ["u/ben"]);
  assert.deepEqual(keys(entries.find("address.zip", 8)), ["u/ann", "u/ben"]);
  assert.deepEqual(keys(entries.find("/tags", "blue")), ["u/ann"]);
  assert.deepEqual(keys(entries.find("/tags", ["red", "blue"])), ["u/ann"]);
  assert.equal(entries.find("name", 1), undefined, "nobody asked for it");

  assert.equal(entries.set("u/ann", entry("u/ann", { email: "b@x" })), ann);
  assert.deepEqual(keys(entries.find("email", "b@x")), ["u/ann", "u/ben"]);
  assert.deepEqual([keys(entries.find("email", "a@x")), keys(entries.find("/tags", "blue"))], [[], []]);

  entries.set("u/ben", undefined);
  assert.deepEqual([keys(entries.find("email", "b@x")), entries.size], [["u/ann"], 1]);
});

test("a list is of what begins so, in the order of bytes", () => {
  const entries = new MirrorEntries(
    [],
    ["b", "a/2", "a", "a/1"].map((key) => entry(key, 1)),
  );
  assert.deepEqual(keys(entries.list("a/")), ["a/1", "a/2"]);
  assert.deepEqual(keys(entries.list("")), ["a", "a/1", "a/2", "b"]);
  entries.set("a/3", entry("a/3", 1));
  assert.deepEqual(keys(entries.list("a/")), ["a/1", "a/2", "a/3"]);
  const words = ["a", "a\u{1F600}", "a\uFFFF", "aa", "\u{10FFFF}", "\uE000"];
  const byBytes = [...words].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  assert.deepEqual([...words].sort(compareKeys), byBytes);
});

test("entries whose keys are no text are kept apart", () => {
  const entries = new MirrorEntries(
    ["n"],
    ["e/\udcfd", "e/\ufffd", "e/\udcff"].map((key) => entry(key, { n: 1 })),
  );
  assert.deepEqual(keys(entries.list("e/")), ["e/\ufffd", "e/\udcfd", "e/\udcff"]);
  entries.set("e/\udcfd", undefined);
  assert.deepEqual(keys(entries.find("n", 1)), ["e/\ufffd", "e/\udcff"]);
});

test("a prefix that ends within a character lists what begins with its bytes", () => {
  const entries = new MirrorEntries(
    [],
    ["e/\u00e9", "e/\u00e8/1", "e/\udcc3", "e/\udcc3z", "e/\u0119", "e/a"].map((key) => entry(key, 1)),
  );
  const found = ["e/\udcc3", "e/\udcc3z", "e/\u00e8/1", "e/\u00e9"];
  assert.deepEqual(keys(entries.list("e/\udcc3")), found);
  assert.deepEqual(keys(entries.list("e/\udcc3\udca8")), ["e/\u00e8/1"], "bytes that make a character");
  assert.equal(entries.get("e/\udcc3\udca9")?.key, "e/\u00e9");
  assert.deepEqual(keys(entries.list("e/\udcff")), []);
});
