import assert from "node:assert/strict";
import { test } from "node:test";
import { type Message, Messages } from "../src/sse.js";

test("events are the same however they are cut", () => {
  const text =
    ':\n\nevent: put\ndata: {"a":1}\nid: 4.0\n\n: ping\r\nevent: end\r\ndata: a\r\ndata:b\r\nretry: 5\r\n\r\nevent: cut\n';
  const expected: Message[] = [
    { name: "put", id: "4.0", data: '{"a":1}' },
    { name: "end", id: undefined, data: "a\nb" },
  ];
  for (let size = 1; size <= text.length; size += 1) {
    const messages = new Messages();
    const found: Message[] = [];
    for (let at = 0; at < text.length; at += size) {
      found.push(...messages.feed(text.slice(at, at + size)));
    }
    assert.deepEqual(found, expected, `in pieces of ${size}`);
  }
});

test("what is too long is refused", () => {
  assert.throws(() => new Messages().feed("x".repeat(16 * 1024 * 1024 + 1)), RangeError);
});
