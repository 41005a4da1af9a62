import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64, toBase64 } from "../src/base64.js";
import { keyPath, namePath, readCall } from "../src/call.js";
import { InvalidArgumentError } from "../src/errors.js";
import { bytesOfKey, keyOfBytes, keyOfShown, shownKey } from "../src/keys.js";
import { fromWire, toWire } from "../src/names.js";

test("fields are called otherwise here, and what callers store is never looked into", () => {
  const wire = {
    create_revision: "7",
    ttl_ms: 5,
    entries: [{ mod_revision: "8", value: { not_a_field: 1 }, index_used: ["a_b"] }],
    cas: null,
    labels: { my_label: "x" },
    failed: [{ actual: { some_thing: 1 }, actual_start: "{" }],
  };
  const here = {
    createRevision: "7",
    ttlMs: 5,
    entries: [{ modRevision: "8", value: { not_a_field: 1 }, indexUsed: ["a_b"] }],
    cas: null,
    labels: { my_label: "x" },
    failed: [{ actual: { some_thing: 1 }, actualStart: "{" }],
  };
  assert.deepEqual(fromWire(wire), here);
  assert.deepEqual(toWire(here), wire);
});

test("names in maps are the caller's, their values are not", () => {
  const here = {
    fields: { created_at: { autoUpdate: true, default: { aB: 1 } } },
    preconditionRequired: true,
  };
  const wire = {
    fields: { created_at: { auto_update: true, default: { aB: 1 } } },
    precondition_required: true,
  };
  assert.deepEqual(toWire(here), wire);
  assert.deepEqual(fromWire(wire), here);
  assert.deepEqual(toWire({ fields: ["a_b", "cD"] }), { fields: ["a_b", "cD"] });
});

test("bytes have a field of their own on the wire", () => {
  const bytes = new Uint8Array([0, 255, 128]);
  assert.deepEqual(toWire({ op: "upsert", value: bytes }), { op: "upsert", value_base64: "AP+A" });
  assert.deepEqual(fromWire({ key: "k", value_base64: "AP+A" }), { key: "k", value: bytes });
  assert.deepEqual(fromWire({ payload_base64: "AP+A" }), { payload: bytes });
});

test("what is undefined is left out, and dates are left to JSON", () => {
  const at = new Date("2026-04-18T15:30:12Z");
  assert.equal(
    JSON.stringify(toWire({ a: undefined, executeAt: at })),
    '{"execute_at":"2026-04-18T15:30:12.000Z"}',
  );
});

test("base64 of more bytes than a call has arguments comes back as it was", () => {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, at) => at % 251);
  assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
});

test("a key that is no text is its bytes", () => {
  const names = [
    [0x65, 0xfd],
    [0x65, 0xff],
    [0x65, 0xef, 0xbf, 0xbd],
    [0x65, 0x61],
    [0xe2, 0x82],
    [0xc3, 0xa9],
  ].map((bytes) => Uint8Array.from(bytes));
  const keys = names.map(keyOfBytes);
  assert.deepEqual(keys, ["e\udcfd", "e\udcff", "e\ufffd", "ea", "\udce2\udc82", "é"]);
  assert.deepEqual(keys.map(bytesOfKey), names);
  assert.deepEqual(toWire({ op: "get", key: "e/\udcff" }), { op: "get", key_base64: "ZS//" });
  assert.deepEqual(toWire({ op: "get", key: "é😀" }), { op: "get", key: "é😀" });
  assert.deepEqual(fromWire({ key_base64: "ZS//" }), { key: "e/\udcff" });
  assert.deepEqual(fromWire({ keys: ["a"], keys_base64: ["ZS//"] }), { keys: ["a", "e/\udcff"] });
  const where = [{ field: "$key", op: "in", value: ["a", "e/\udcff", Uint8Array.of(0xff)] }];
  assert.deepEqual(toWire({ where }), {
    where: [{ field: "$key", op: "in", value: ["a", { base64: "ZS//" }, { base64: "/w==" }] }],
  });
  assert.equal(keyPath("e/\udcff ü"), undefined);
  assert.equal(readCall("/v1/kv", { prefix: "e/\udcff" }).target, "/v1/kv?prefix=e%2F%FF");
  assert.equal(shownKey("e/\udcff"), "e/\\xff");
  for (const key of [...keys, "\\xff", "a\\b", "\\x", "\\\\xff\udcff"]) {
    assert.equal(keyOfShown(shownKey(key)), key);
  }
  assert.notEqual(shownKey("\\xff"), shownKey("\udcff"));
  assert.throws(() => bytesOfKey("\ud800"), InvalidArgumentError);
  assert.throws(() => toWire({ lock: "a\udcff" }), InvalidArgumentError);
  assert.throws(() => namePath("/v1/locks/", "a\udcff"), InvalidArgumentError);
});
