/** Watches, mirrors and backups, against a real node. */

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Client, op, type WatchEvent } from "../src/index.js";
import { saveBackup } from "../src/node/index.js";
import type { TestCluster } from "../src/node/testing.js";
import { answer, fake } from "./fake.js";
import { failure, startCluster, take, until } from "./support.js";

let cluster: TestCluster;
let client: Client;
before(async () => {
  cluster = await startCluster({ flags: ["--history-keep-ms", "1", "--history-keep-revisions", "60"] });
  client = cluster.client();
});
after(async () => {
  await client.close();
  await cluster.stop();
});

function shown(event: WatchEvent): unknown[] {
  switch (event.type) {
    case "put":
      return ["put", event.key, event.entry.value, event.prev?.value];
    case "delete":
      return ["delete", event.key, event.cause, event.prev?.value];
    default:
      return [event.type];
  }
}

test("a watch shows what changes, each once and in order", async () => {
  const first = await client.put("w/a", 1);
  const watch = await client.watch({ prefix: "w/", from: first.revision, prev: true });
  await client.put("w/a", 2);
  await client.put("other", 1);
  await client.txn({ then: [op.put("w/b", 3), op.remove("w/a")] });
  assert.deepEqual((await take(watch, 4)).map(shown), [
    ["put", "w/a", 1, undefined],
    ["put", "w/a", 2, 1],
    ["put", "w/b", 3, undefined],
    ["delete", "w/a", "removed", 2],
  ]);
  assert.deepEqual(await watch.next(), { done: true, value: undefined });
});

test("a watch shows first what is there, where that is wanted", async () => {
  await client.bulk([op.put("i/a", { n: 1 }), op.put("i/b", { n: 2 })]);
  const watch = await client.watch<{ n: number }>({
    prefix: "i/",
    initial: true,
    where: { field: "n", op: "gt", value: 1 },
  });
  assert.deepEqual((await take(watch, 2)).map(shown), [["put", "i/b", { n: 2 }, undefined], ["synced"]]);
});

test("a watch ends with its signal, or when it is closed", async () => {
  const stop = new AbortController();
  const aborted = await client.watch({ key: "k", signal: stop.signal });
  const pending = assert.rejects(aborted.next(), /enough/);
  stop.abort(new Error("enough"));
  await pending;
  const closed = await client.watch({ start: "a", end: "b" });
  const last = closed.next();
  closed.close();
  assert.deepEqual(await last, { done: true, value: undefined });
  assert.equal((await failure(client.watch({ key: "k", prefix: "p" }))).code, "invalid_argument");
});

test("a watch from before history is refused, and says what can be read", async () => {
  const first = await client.put("x/a", 0);
  await until("that is compacted", async () => {
    await client.bulk(Array.from({ length: 100 }, (_, n) => op.put(`x/${n % 7}`, n)));
    const outcome = await client.watch({ prefix: "x/", from: first.revision }).then(
      (watch) => watch.close(),
      (error) => error,
    );
    return outcome?.code === "compacted" && BigInt(outcome.oldestRevision) > BigInt(first.revision);
  });
});

test("a mirror shows what is there, follows, and finds by fields", async () => {
  await client.put("m/web-1", { zone: "a" });
  const hosts = await client.mirror<{ zone: string }>({ prefix: "m/", indexBy: ["zone"] });
  const changes = take(hosts.changes(), 3);
  assert.deepEqual([hosts.size, hosts.get("m/web-1")?.value.zone], [1, "a"]);
  await client.put("m/web-2", { zone: "b" });
  await client.txn({ then: [op.put("m/web-3", { zone: "a" }), op.remove("m/web-1")] });
  const revision = await hosts.sync();
  assert.equal(hosts.revision, revision);
  assert.deepEqual(
    hosts.list().map(({ key }) => key),
    ["m/web-2", "m/web-3"],
  );
  assert.deepEqual(
    hosts.findBy("zone", "a").map(({ key }) => key),
    ["m/web-3"],
  );
  assert.throws(() => hosts.findBy("name", 1), { code: "invalid_argument" });
  assert.deepEqual(
    (await changes).map((change) => change.type === "entry" && [change.key, change.before?.value.zone]),
    [
      ["m/web-2", undefined],
      ["m/web-3", undefined],
      ["m/web-1", "a"],
    ],
  );
  assert.ok(hosts.stalenessMs < 5_000 && hosts.trouble === undefined);
  const behind = await failure(hosts.waitFor(String(BigInt(hosts.revision) + 1_000_000n), { timeoutMs: 20 }));
  assert.deepEqual([behind.code, behind.isRetryable], ["timeout", true]);
  hosts.close();
});

test("workers share a prefix by parts: each key is in one, the same in watches, lists and mirrors", async () => {
  const keys = Array.from({ length: 20 }, (_, n) => `parts/${n}`);
  const parts = [0, 1].map((index) => ({ prefix: "parts/", part: { index, of: 2 } }));
  const watches = await Promise.all(parts.map((part) => client.watch(part)));
  await client.bulk(keys.map((key) => op.put(key, 1)));
  const listed = await Promise.all(
    parts.map(async (part) => (await client.list({ ...part, limit: 3 }).all()).map(({ key }) => key)),
  );
  assert.deepEqual(listed.flat().sort(), keys.toSorted());
  for (const [at, watch] of watches.entries()) {
    const seen = await take(watch, listed[at]?.length ?? 0);
    assert.deepEqual(new Set(seen.map(({ key }) => key)), new Set(listed[at]));
    await using mirror = await client.mirror(parts[at]);
    assert.deepEqual(
      mirror.list().map(({ key }) => key),
      listed[at],
    );
  }
  const refused = await failure(client.watch({ prefix: "parts/", part: { index: 2, of: 2 } }));
  assert.equal(refused.code, "invalid_argument");
});

test("a mirror whose watch cannot go on is filled anew", async () => {
  let streams = 0;
  const put = (key: string, revision: string) => {
    const entry = {
      key,
      value: 1,
      content_type: "json",
      cas: revision,
      create_revision: revision,
      mod_revision: revision,
      version: 1,
    };
    return `event: put\ndata: ${JSON.stringify({ type: "put", key, revision, entry, initial: true })}\n\n`;
  };
  const { client: broken } = fake(({ path, signal }) => {
    if (!path.startsWith("/v1/watch")) {
      return answer({ entries: [], count: 0, revision: "9", index: 1 });
    }
    streams += 1;
    const begin = `${put(`m/${streams}`, "5")}event: synced\ndata: {"revision":"${streams * 5}"}\n\n`;
    const end = 'event: end\ndata: {"code":"compacted","detail":"too old","oldest_revision":"7"}\n\n';
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(streams === 1 ? begin + end : begin));
        signal?.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream", "quorate-term": "1" } });
  });
  const mirror = await broken.mirror({ prefix: "m/" });
  await mirror.sync();
  assert.deepEqual([mirror.list().map(({ key }) => key), mirror.revision, streams], [["m/2"], "10", 2]);
  mirror.close();
});

test("a watch goes on behind what it has shown whole, and begins anew where nothing was whole", async () => {
  const from: (string | null)[] = [];
  const event = (revision: string, key: string, isLast: boolean) =>
    `event: delete\ndata: {"type":"delete","key":"${key}","revision":"${revision}","cause":"removed"}\n${isLast ? `id: ${revision}.1\n` : ""}\n`;
  const texts = [
    event("4", "a", true) + event("5", "b", false),
    `${event("5", "b", false)}${event("5", "c", true)}event: progress\ndata: {"revision":"8"}\n\nevent: end\ndata: {"code":"stopping","detail":"d"}\n\n`,
    event("9", "d", true),
  ];
  const { client: cut } = fake(({ headers }) => {
    // Alone, events are what an `EventSource` takes, which is told in the stream what others are told by a status.
    assert.equal(headers.get("accept"), "text/event-stream, application/problem+json");
    from.push(headers.get("last-event-id"));
    const text = texts[from.length - 1] ?? "";
    return new Response(text, {
      headers: { "content-type": "text/event-stream", "quorate-term": "1", "quorate-revision": "3" },
    });
  });
  const keys = (await take(await cut.watch(), 4)).map((change) => change.key);
  assert.deepEqual(
    [keys, from],
    [
      ["a", "b", "c", "d"],
      [null, "4", "8"],
    ],
  );
});

test("a backup is a file that is there once it is whole", async () => {
  const home = await mkdtemp(join(tmpdir(), "quorate-backup-"));
  try {
    await client.put("backup/a", 1);
    const path = join(home, "monday");
    const saved = await saveBackup(client, path);
    assert.deepEqual([saved.path, (await stat(path)).size], [path, saved.bytes]);
    assert.ok(saved.rows > 0 && BigInt(saved.revision) > 0n);
    assert.equal((await failure(saveBackup(client, path))).code, "invalid_argument");
    assert.deepEqual(await readdir(home), ["monday"]);
    const { client: short } = fake(
      () => new Response("too short", { headers: { "content-type": "application/vnd.quorate.backup" } }),
    );
    assert.equal((await failure(saveBackup(short, join(home, "tuesday")))).code, "protocol");
    assert.deepEqual(await readdir(home), ["monday"]);
  } finally {
    await rm(home, { recursive: true });
  }
});
