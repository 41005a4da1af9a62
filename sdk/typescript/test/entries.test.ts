/** Entries, alone and many, against a real node. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Client, compareRevisions, op, type Streamed } from "../src/index.js";
import type { TestCluster } from "../src/node/testing.js";
import { failure, startCluster, until } from "./support.js";

let cluster: TestCluster;
let client: Client;
before(async () => {
  cluster = await startCluster();
  client = cluster.client();
});
after(async () => {
  await client.close();
  await cluster.stop();
});

test("an entry is created, read as it was, replaced on its cas, and removed", async () => {
  const first = await client.insert("a/doc", { n: 1 });
  assert.deepEqual([first.version, typeof first.cas, typeof first.revision], [1, "string", "string"]);
  assert.equal((await failure(client.insert("a/doc", 1))).code, "already_exists");
  const second = await client.replace("a/doc", { n: 2 }, { cas: first.cas, prev: true });
  assert.deepEqual(second.prev?.value, { n: 1 });
  assert.ok(compareRevisions(second.revision, first.revision) > 0);
  const then = await client.get<{ n: number }>("a/doc", { revision: first.revision });
  assert.equal(then?.value.n, 1);
  const refused = await failure(client.remove("a/doc", { cas: first.cas }));
  assert.deepEqual([refused.code, refused.applied, refused.current?.cas], ["cas_mismatch", "no", second.cas]);
  assert.deepEqual((await client.remove("a/doc", { dryRun: true })).dryRun, true);
  assert.deepEqual((await client.remove<{ n: number }>("a/doc", { prev: true })).prev?.value.n, 2);
  assert.deepEqual([await client.get("a/doc"), await client.exists("a/doc")], [undefined, false]);
  assert.equal((await failure(client.remove("a/doc"))).code, "not_found");
});

test("bytes and every kind of JSON come back as they were, under any key", async () => {
  const values = [
    null,
    true,
    0,
    -1.5,
    "",
    "ü",
    [],
    {},
    { null: null, deep: [{ a: 1 }] },
    { minus: -0, long: 9007199254740993n },
    new Uint8Array([0, 1, 255]),
  ];
  for (const [at, value] of values.entries()) {
    await client.put(`a/value${at}`, value);
    const entry = await client.get(`a/value${at}`);
    assert.deepEqual(
      [entry?.value, entry?.contentType],
      [value, value instanceof Uint8Array ? "bytes" : "json"],
    );
  }
  for (const key of [".", "..", "a/./b", "a/../b", "ä b?#%+&=", "a//b", "/", "a\nb", "😀"]) {
    await client.put(key, key);
    assert.deepEqual([(await client.get(key))?.value, await client.exists(key)], [key, true], key);
    await client.remove(key);
  }
});

test("conditions on fields, patches and counters", async () => {
  await client.put("a/order", { status: "new", lines: 2, log: [] });
  await client.patch(
    "a/order",
    { status: "paid", note: null },
    { if: { field: "status", op: "eq", value: "new" } },
  );
  const refused = await failure(
    client.patch("a/order", { status: "x" }, { if: [{ field: "lines", op: "lt", value: 2 }] }),
  );
  assert.deepEqual(
    [refused.code, refused.failed[0]?.pointer, refused.failed[0]?.actual],
    ["condition_not_met", "/if/0", 2],
  );
  await client.increment("a/order", "lines", 3);
  await client.patch("a/order", [{ op: "append", path: "log", value: "sold" }]);
  assert.deepEqual((await client.get("a/order"))?.value, { status: "paid", lines: 5, log: ["sold"] });
  assert.equal((await failure(client.put("a/order", 1, { ifAbsent: true }))).code, "already_exists");
  assert.equal((await failure(client.put("a/nothing", 1, { ifPresent: true }))).code, "not_found");
});

test("an entry lives as long as it is told to", async () => {
  await client.put("a/short", 1, { ttlMs: 60_000 });
  const entry = await client.getAndTouch("a/short", 90_000);
  assert.ok(entry.ttlMs !== undefined && entry.ttlMs > 60_000);
  await client.touch("a/short", 0);
  assert.equal((await client.get("a/short"))?.ttlMs, undefined);
  await client.put("a/short", 1, { ttlMs: 50 });
  await until("it has expired", async () => !(await client.exists("a/short")));
});

test("a change is waited for", async () => {
  const { cas } = await client.put("a/waited", 1);
  assert.deepEqual(await client.waitForChange("a/waited", { cas, waitMs: 10 }), { type: "none" });
  const waiting = client.waitForChange<number>("a/waited", { cas, waitMs: 10_000 });
  await client.put("a/waited", 2);
  const change = await waiting;
  assert.equal(change.type === "entry" && change.entry.value, 2);
  await client.remove("a/waited");
  assert.deepEqual(await client.waitForChange("a/waited", { cas }), { type: "gone" });
});

test("a key that is for no path is read, waited for and removed as any other", async () => {
  for (const key of ["a//waited", "a/../waited", ".", "/a", "a/", "a\\b", "a\u0001b"]) {
    const first = await client.put(key, 1);
    await client.put(key, 2);
    assert.equal((await client.get(key, { revision: first.revision }))?.value, 1, key);
    assert.equal((await client.get(key, { consistency: "local" }))?.value, 2, key);
    const { cas } = await client.put(key, 3);
    assert.deepEqual(await client.waitForChange(key, { cas, waitMs: 10 }), { type: "none" });
    assert.equal((await client.waitForChange(key, { cas: "1", waitMs: 10 })).type, "entry");
    const waiting = client.waitForChange<number>(key, { cas, waitMs: 10_000 });
    await client.put(key, 4);
    const change = await waiting;
    assert.equal(change.type === "entry" && change.entry.value, 4);
    await client.remove(key);
    assert.deepEqual(await client.waitForChange(key, { cas }), { type: "gone" });
    const stop = new AbortController();
    const stopped = assert.rejects(client.waitForChange(key, { signal: stop.signal }), /enough/);
    stop.abort(new Error("enough"));
    await stopped;
  }
});

test("an entry that is locked is written by who has the key", async () => {
  await client.put("a/locked", { n: 1 });
  const locked = await client.getAndLock<{ n: number }>("a/locked", { lockMs: 20_000 });
  const key = locked.cas ?? "";
  assert.deepEqual([locked.value.n, locked.lockMs], [1, 20_000]);
  assert.deepEqual(
    [(await client.get("a/locked"))?.cas, (await client.get("a/locked"))?.locked],
    [null, true],
  );
  assert.equal((await failure(client.put("a/locked", 2))).code, "cas_mismatch");
  assert.equal((await failure(client.update("a/locked", () => 3))).code, "locked");
  const next = client.lockEntry("a/locked", { waitMs: 10_000 });
  await client.extendEntryLock("a/locked", key, 30_000);
  await client.unlockEntry("a/locked", key);
  const { cas = "" } = await next;
  await client.put("a/locked", { n: 2 }, { cas });
  assert.equal((await failure(client.unlockEntry("a/locked", cas))).code, "not_lock_holder");
});

test("the same request id is applied once, and its outcome can be asked for", async () => {
  const first = await client.insert("a/once", 1, { requestId: "a-once" });
  const again = await client.insert("a/once", 1, { requestId: "a-once" });
  assert.deepEqual([again.replayed, again.cas], [true, first.cas]);
  assert.equal((await client.requestOutcome("a-once"))?.cas, first.cas);
  assert.equal(await client.requestOutcome("never"), undefined);
  assert.equal(
    (await failure(client.insert("a/twice", 1, { requestId: "a-once" }))).code,
    "request_id_reused",
  );
});

test("updates at once lose nothing", async () => {
  const add = (value: { n: number } | undefined) => ({ n: (value?.n ?? 0) + 1 });
  await Promise.all(Array.from({ length: 12 }, () => client.update<{ n: number }>("a/counter", add)));
  assert.deepEqual((await client.get("a/counter"))?.value, { n: 12 });
});

test("entries are listed, found and counted over pages of one moment", async () => {
  await client.bulk([5, 3, 1, 4, 2].map((n) => op.put(`l/${n}`, { n, even: n % 2 === 0 })));
  const keys = async (pages: AsyncIterable<{ key: string }>) => {
    const found: string[] = [];
    for await (const { key } of pages) {
      found.push(key);
    }
    return found;
  };
  assert.deepEqual(await keys(client.list({ prefix: "l/", limit: 2 })), ["l/1", "l/2", "l/3", "l/4", "l/5"]);
  assert.deepEqual(await keys(client.list({ prefix: "l/", reverse: true, limit: 2 })), [
    "l/5",
    "l/4",
    "l/3",
    "l/2",
    "l/1",
  ]);
  assert.deepEqual(await keys(client.list({ start: "l/2", end: "l/4" })), ["l/2", "l/3"]);
  const page = await client.list({ prefix: "l/", limit: 2, keysOnly: true }).page();
  assert.deepEqual(
    [page.entries.length, page.entries[0]?.value, typeof page.cursor],
    [2, undefined, "string"],
  );
  const sized = await client.list({ prefix: "l/", limit: 2, keysOnly: true, sizes: true }).all();
  assert.deepEqual(
    sized.map(({ value, valueBytes }) => [value, valueBytes]),
    [1, 2, 3, 4, 5].map((n) => [undefined, JSON.stringify({ n, even: n % 2 === 0 }).length]),
  );
  assert.equal(page.entries[0]?.valueBytes, undefined);
  await client.put("l/0", { n: 0 });
  const rest = await client.list({ prefix: "l/", limit: 9 }).page(page.cursor);
  assert.equal(rest.revision, page.revision);
  const odd = client.find<{ n: number }>({
    prefix: "l/",
    where: { field: "even", op: "eq", value: false },
    orderBy: "-n",
    fields: ["n"],
    limit: 2,
  });
  assert.deepEqual(
    (await odd.all()).map(({ value }) => value),
    [{ n: 5 }, { n: 3 }, { n: 1 }],
  );
  const where = {
    any: [{ field: "n", op: "gt", value: 4 }, { not: { field: "even", op: "exists" } }],
  } as const;
  assert.equal((await client.count({ prefix: "l/", where })).count, 2);
});

test("a bulk says of each operation what came of it", async () => {
  await client.put("b/1", { n: 1 });
  const ops = [
    op.insert("b/1", 7),
    op.insert("b/2", 2),
    op.remove("b/9"),
    op.patch("b/1", { n: 8 }, { if: { field: "n", op: "eq", value: 1 } }),
  ];
  const done = await client.bulk(ops, { failuresOnly: true });
  assert.deepEqual([done.applied, done.skipped, done.failed], [2, 1, 1]);
  assert.deepEqual(
    done.results.map(({ n, outcome, code }) => [n, outcome, code]),
    [[2, "failed", "not_found"]],
  );
});

test("a stream does many operations, each decided by itself", async () => {
  await client.put("streams/there", 1);
  const ops = [op.insert("streams/there", 2), op.get("streams/there"), op.get("streams/none")];
  const puts = Array.from({ length: 2_500 }, (_, n) => op.put(`streams/${n}`, "x".repeat(1_000)));
  const done: Streamed[] = [];
  for await (const one of client.stream([...ops, ...puts])) {
    done[one.n] = one;
  }
  assert.equal(done[0]?.error?.code, "already_exists");
  assert.equal(done[1]?.entry?.value, 1);
  assert.equal(done[2]?.error?.code, "not_found");
  assert.ok(done.slice(3).every(({ written, error }) => written?.version === 1 && error === undefined));
  assert.equal((await client.count({ prefix: "streams/" })).count, 2_501);
});

test("a transaction does one thing or another, all or nothing", async () => {
  await client.put("t/figs", { left: 1 });
  const sell = () =>
    client.txn({
      if: [
        { key: "t/figs", if: [{ field: "left", op: "gt", value: 0 }] },
        { key: "t/order", exists: false },
      ],
      then: [
        op.patch("t/figs", [{ op: "inc", path: "left", value: -1 }]),
        op.insert("t/order", { item: "figs" }),
      ],
      else: [op.get("t/figs"), { op: "txn", then: [op.get("t/none")] }],
    });
  assert.deepEqual([(await sell()).succeeded, (await client.get("t/figs"))?.value], [true, { left: 0 }]);
  const short = await sell();
  assert.deepEqual([short.succeeded, short.failed?.[0]?.key], [false, "t/figs"]);
  const [figs, nested] = short.results;
  assert.ok(figs?.op === "get" && nested?.op === "txn");
  assert.deepEqual(
    [figs.entry?.value, nested.results[0]],
    [{ left: 0 }, { op: "get", key: "t/none", entry: null }],
  );
  const refused = await failure(client.txn({ then: [op.put("t/new", 1), op.insert("t/order", 2)] }));
  assert.deepEqual([refused.code, await client.exists("t/new")], ["already_exists", false]);
});

test("all that match are changed, part by part", async () => {
  await client.bulk([1, 2, 3, 4].map((n) => op.put(`w/${n}`, { n, state: "open" })));
  const late = await client.updateWhere({
    prefix: "w/",
    where: { field: "n", op: "lte", value: 3 },
    if: { field: "n", op: "lt", value: 3 },
    patch: { state: "late" },
  });
  assert.deepEqual([late.matched, late.applied, late.skipped], [3, 2, 1]);
  const parts: number[] = [];
  for await (const part of client.deleteAllWhere({ prefix: "w/", limit: 3 })) {
    parts.push(part.applied);
  }
  assert.deepEqual(
    parts.reduce((sum, applied) => sum + applied, 0),
    4,
  );
  assert.ok(parts.length > 1, String(parts));
});

test("a claim locks what nobody else has", async () => {
  await client.bulk([1, 2, 3].map((n) => op.put(`c/${n}`, { n, tries: 0 })));
  const patch = [{ op: "inc", path: "tries", value: 1 }];
  const { entries } = await client.claim<{ n: number; tries: number }>({
    prefix: "c/",
    orderBy: "-n",
    limit: 2,
    patch,
  });
  assert.deepEqual(
    entries.map(({ value }) => value),
    [
      { n: 3, tries: 1 },
      { n: 2, tries: 1 },
    ],
  );
  assert.deepEqual(
    (await client.claim({ prefix: "c/", limit: 9 })).entries.map(({ key }) => key),
    ["c/1"],
  );
  await entries[0]?.extend(20_000);
  await entries[0]?.complete();
  await entries[1]?.release();
  assert.deepEqual(
    (await client.claim({ prefix: "c/", dryRun: true })).entries.map(({ key }) => key),
    ["c/2"],
  );
});

test("the past of an entry is read", async () => {
  await client.put("h/1", 1);
  await client.put("h/1", 2);
  await failure(client.insert("h/1", 3));
  await client.remove("h/1");
  const versions: unknown[] = [];
  for await (const { type, entry } of client.history("h/1")) {
    versions.push([type, entry?.value]);
  }
  assert.deepEqual(versions, [
    ["put", 1],
    ["put", 2],
    ["delete", undefined],
  ]);
  assert.deepEqual((await client.audit("h/1").all()).map(({ effect }) => effect).length, 4);
});

test("a collection has rules, and a sequence no gaps", async () => {
  const rules = {
    fields: { e_mail: { type: "varchar", max: 60 }, number: { type: "long", sequence: "r_users" } },
    indexes: [{ fields: ["e_mail"], unique: true }],
    required: ["e_mail"],
  } as const;
  const users = client.collection("r_users");
  const made = await users.put(
    { ...rules, indexes: [{ fields: ["e_mail"], unique: true }], required: ["e_mail"] },
    { ifAbsent: true },
  );
  assert.deepEqual(Object.keys(made.rules.fields ?? {}).sort(), ["e_mail", "number"]);
  await client.insert("r_users/ann", { e_mail: "ann@example.org" });
  assert.equal(
    (await failure(client.insert("r_users/ben", { e_mail: "ann@example.org" }))).code,
    "unique_violation",
  );
  const broken = await failure(client.insert("r_users/cid", {}));
  assert.deepEqual([broken.code, broken.errors.length > 0], ["invalid_document", true]);
  assert.equal((await client.sequence("r_users").get()).value, 1);
  const { first, last } = await client.sequence("tickets").next(10);
  assert.deepEqual([first, last], [1, 10]);
  assert.deepEqual(
    (await client.collections().all()).map(({ name }) => name),
    ["r_users"],
  );
  assert.equal((await failure(users.put(made.rules, { cas: "1" }))).code, "cas_mismatch");
  await users.remove({ cas: made.cas });
  assert.equal(await users.get(), undefined);
});
