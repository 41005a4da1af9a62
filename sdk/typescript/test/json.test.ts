import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { type Client, op, RawJson } from "../src/index.js";
import { parseJson, stringifyJson } from "../src/json.js";
import { answer, fake } from "./fake.js";
import { failure } from "./support.js";

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

test("what JSON would change or leave out is refused, with the path to it", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = [circle];
  class Point {
    x = 1;
  }
  const hole: unknown[] = [1, 2, 3];
  delete hole[1];
  const cases: [unknown, RegExp][] = [
    [undefined, /^the value is undefined: a value is made of plain objects/],
    [Number.NaN, /^the value is NaN:/],
    [new Map([[1, 2]]), /^the value is a Map:/],
    [{ a: Number.POSITIVE_INFINITY }, /^a is Infinity:/],
    [{ a: [0, { "b c": { d: () => 1 } }] }, /^a\[1\]\["b c"\]\.d is a function:/],
    [{ s: new Set([1]) }, /^s is a Set:/],
    [{ s: Symbol("x") }, /^s is Symbol\(x\):/],
    [{ [Symbol("x")]: 1 }, /^the value has a field that a symbol names:/],
    [{ a: undefined }, /^a is undefined:/],
    [[1, undefined], /^\[1\] is undefined:/],
    [hole, /^\[1\] is undefined:/],
    [{ at: new Date(0) }, /^at is a Date:/],
    [{ at: new URL("http://a/") }, /^at is a URL:/],
    [{ of: new Point() }, /^of is a Point:/],
    [{ bytes: new Uint8Array(1) }, /^bytes is a Uint8Array:/],
    [{ text: new String("a") }, /^text is a String:/],
    [{ toJSON: () => 1 }, /^toJSON is a function:/],
    [Object.assign([1], { toJSON: () => 1 }), /^the value is an Array:/],
    [circle, /is more than 1000 levels deep, or in a circle:/],
  ];
  for (const [value, words] of cases) {
    assert.throws(() => stringifyJson(value), { code: "invalid_argument", message: words });
  }
});

test("what is JSON is written as it is, from whichever realm, and so is -0", () => {
  const values: [unknown, string][] = [
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [runInNewContext("({a: [{b: null}]})"), '{"a":[{"b":null}]}'],
    [{ a: -0, b: [0, -0, -1n] }, '{"a":-0,"b":[0,-0,-1]}'],
    [1e300, "1e+300"],
    ["\ud83d\ude00", '"\ud83d\ude00"'],
    [JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
  ];
  for (const [value, text] of values) {
    assert.equal(stringifyJson(value), text);
  }
  assert.ok(Object.is((parseJson(stringifyJson({ a: -0 })) as { a: number }).a, -0));
});

test("raw JSON is written as it is, wherever it stands", () => {
  const values: [unknown, string][] = [
    [new RawJson(' {"a": 1.50,\n"b":[]} '), ' {"a": 1.50,\n"b":[]} '],
    [{ a: new RawJson("1.10"), b: [new RawJson("1e400"), 2n, -0] }, '{"a":1.10,"b":[1e400,2,-0]}'],
    [
      [new RawJson('"$1 $& \\""'), "$1", new RawJson("0.1000000000000000055")],
      '["$1 $& \\"","$1",0.1000000000000000055]',
    ],
    [new (class extends RawJson {})("null"), "null"],
  ];
  for (const [value, text] of values) {
    assert.equal(stringifyJson(value), text);
  }
  const inside = stringifyJson([new RawJson("12345678901234567890")]);
  assert.equal(stringifyJson([new RawJson(JSON.stringify(inside)), 1n]), `["[12345678901234567890]",1]`);
});

test("raw JSON that is none is refused, with the path to it", () => {
  const cases: [unknown, RegExp][] = [
    [{ a: [new RawJson("1,2")] }, /^a\[0\] is a RawJson whose text is no JSON: /],
    [new RawJson(""), /^the value is a RawJson whose text is no JSON: /],
    [new RawJson('1},"cas":"7"'), /whose text is no JSON: /],
    [new RawJson("NaN"), /whose text is no JSON: /],
    [new RawJson('"\ud800"'), /^the value is a RawJson of no text: /],
    [new RawJson(1 as unknown as string), /^the value is a RawJson of no text: /],
  ];
  for (const [value, words] of cases) {
    assert.throws(() => stringifyJson(value), { code: "invalid_argument", message: words });
  }
});

test("raw JSON is a value, a payload, a patch, and what is compared with", async () => {
  const { client, sent } = fake(() => answer({}));
  const raw = new RawJson('{"n":1.50}');
  const where = { field: "n", op: "gte", value: new RawJson("1.50") } as const;
  await client.put("k", raw, { if: where });
  await client.patch("k", raw);
  await client.updateWhere({ prefix: "", where, patch: raw });
  await client.tasks("q").schedule(raw);
  await client.find({ where }).page();
  const ops = '{"op":"upsert","key":"k","value":{"n":1.50},"if":[{"field":"n","op":"gte","value":1.50}]}';
  assert.equal(sent[0]?.text, ops);
  for (const { text } of sent) {
    assert.match(text ?? "", /"(value|patch|payload)":(\{"n":)?1\.50/);
  }
});

test("values are looked at wherever they are stored, and types refuse most before", async () => {
  const { client, sent } = fake(() => answer({}));
  const bad = { items: [{ price: Number.NaN }] };
  const queue = client.tasks("q");
  const calls: [() => unknown, RegExp][] = [
    [() => client.put("k", bad), /^value\.items\[0\]\.price is NaN/],
    [() => client.insert("k", bad), /^value\.items/],
    [() => client.replace("k", bad), /^value\.items/],
    [() => client.patch("k", bad), /^patch\.items/],
    [() => client.increment("k", "n", Number.NaN), /^patch\[0\]\.value is NaN/],
    [() => client.put("k", 1, { if: { field: "n", op: "eq", value: Number.NaN } }), /^if\[0\]\.value is NaN/],
    [() => client.bulk([op.put("a", 1), op.put("k", bad)]), /^ops\[1\]\.value\.items/],
    [() => client.txn({ then: [op.put("k", bad)] }), /^then\[0\]\.value\.items/],
    [() => client.stream([op.put("k", bad)]).next(), /value\.items/],
    [
      () => client.find({ where: { field: "n", op: "eq", value: Number.NaN } }).page(),
      /^where\[0\]\.value is NaN/,
    ],
    [() => client.watch({ where: { field: "n", op: "eq", value: Number.NaN } }), /value is NaN/],
    [() => queue.schedule(bad), /^payload\.items/],
    [() => queue.scheduleAll([{ payload: bad }]), /^tasks\[0\]\.payload\.items/],
    [() => client.election("e").proclaim("5", bad), /^value\.items/],
    [() => client.session({ labels: { a: undefined as unknown as string } }), /^labels\.a is undefined/],
  ];
  for (const [call, words] of calls) {
    const error = await failure((async () => call())());
    assert.deepEqual([error.code, words.test(error.message)], ["invalid_argument", true], error.message);
  }
  assert.equal(sent.length, 0);
});

interface Order {
  readonly status: string;
  readonly lines: readonly { readonly n: number; readonly note?: string }[];
}

interface Basket {
  readonly orders: readonly Order[];
  readonly first: readonly [Order, string];
}

interface Dated {
  readonly days: readonly { readonly at: Date }[];
}

/** Compiles; is never called. */
export function typesOf(client: Client, order: Order, basket: Basket, dated: Dated, any: unknown): unknown[] {
  return [
    client.put("k", order),
    client.put("k", basket),
    client.put("k", [order, order]),
    // @ts-expect-error: a Date in a list of an interface
    client.put("k", dated),
    client.put("k", { a: [1, "b", null, true, 2n, { c: {} }] }),
    client.put("k", new Uint8Array(1)),
    client.put<Order>("k", { status: "new", lines: [] }),
    op.put("k", order),
    client.put("k", new RawJson("1.50")),
    client.put("k", { a: [new RawJson("1.50")] }),
    client.put<RawJson | Uint8Array>("k", new RawJson("1.50")),
    client.patch("k", new RawJson("{}")),
    client.patch("k", [{ op: "set", path: "n", value: new RawJson("1.50") }]),
    client.tasks("q").schedule(order),
    client.tasks("q").schedule(undefined),
    // @ts-expect-error: a Map has no form in JSON
    client.put("k", new Map()),
    // @ts-expect-error: nor has a Date, deep in an object
    client.put("k", { a: [{ at: new Date() }] }),
    // @ts-expect-error: a text does not make RawJson of an object
    client.put("k", { text: "1.50", at: new Date() }),
    // @ts-expect-error: nor undefined
    client.put("k", { a: undefined }),
    // @ts-expect-error: nor a function
    op.insert("k", { f: () => 1 }),
    // @ts-expect-error: bytes are a value, and no part of one
    client.insert("k", { bytes: new Uint8Array(1) }),
    // @ts-expect-error: who knows
    client.put("k", any),
    // @ts-expect-error: a Set is no payload
    client.tasks("q").schedule(new Set()),
  ];
}
