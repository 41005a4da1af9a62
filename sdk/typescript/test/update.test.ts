import assert from "node:assert/strict";
import { test } from "node:test";
import { ContendedError, isQuorateError } from "../src/index.js";
import { pauseAfter } from "../src/update.js";
import { answer, fake, problem } from "./fake.js";

function entry(n: number, more: object = {}) {
  return {
    key: "k",
    value: { n },
    content_type: "json",
    cas: String(n),
    create_revision: "1",
    mod_revision: String(n),
    version: n,
    ...more,
  };
}

const add = (value: { n: number } | undefined) => ({ n: (value?.n ?? 0) + 1 });

test("tries follow at once, then with pauses, and then at once again", () => {
  assert.deepEqual(
    [1, 8, 49, 1_024].map((tries) => pauseAfter(tries, 0.9)),
    [undefined, undefined, undefined, undefined],
  );
  assert.deepEqual([pauseAfter(9, 1), pauseAfter(10, 1), pauseAfter(48, 1)], [2, 4, 16]);
});

test("a refused try goes on from the entry that the refusal shows, and keeps session and time", async () => {
  const { client, sent } = fake(({ method, body }) => {
    if (method === "GET") {
      return answer(entry(1, { session: "s1", ttl_ms: 500 }));
    }
    return (body as { cas: string }).cas === "4"
      ? answer({ key: "k", revision: "5", index: 1, cas: "5" })
      : problem("cas_mismatch", 412, { current: entry(4, { session: "s1" }), index: 3 });
  });
  const updated = await client.update<{ n: number }>("k", add);
  assert.deepEqual([updated.value, sent.length], [{ n: 5 }, 3]);
  assert.deepEqual(sent[1]?.body, {
    op: "replace",
    key: "k",
    value: { n: 2 },
    cas: "1",
    ttl: "keep",
    session: "s1",
  });
  assert.deepEqual(sent[2]?.body, {
    op: "replace",
    key: "k",
    value: { n: 5 },
    cas: "4",
    ttl: "keep",
    session: "s1",
  });
});

test("what is not there is created, and what is not changed is not written", async () => {
  const { client, sent } = fake(({ method }) =>
    method === "GET" ? problem("not_found", 404) : answer({ key: "k", revision: "1", index: 1 }),
  );
  assert.deepEqual(
    (await client.update<{ n: number }>("k", add, { guard: { lock: "l", token: "3" } })).value,
    { n: 1 },
  );
  assert.deepEqual(sent[1]?.body, {
    op: "insert",
    key: "k",
    value: { n: 1 },
    guard: { lock: "l", token: "3" },
  });
  assert.equal((await client.update("k", () => undefined)).written, false);
  assert.equal(sent.length, 3);
});

test("a lock ends the update, and so do too many rivals", async () => {
  const { client: locked } = fake(() => answer(entry(1, { cas: null, locked: true, lock_ms: 70 })));
  await assert.rejects(
    locked.update<{ n: number }>("k", add),
    (error) => isQuorateError(error, "locked") && error.current?.lockMs === 70,
  );
  const { client } = fake(({ method }) =>
    method === "GET" ? answer(entry(1)) : problem("cas_mismatch", 412, { current: entry(2) }),
  );
  await assert.rejects(
    client.update<{ n: number }>("k", add, { tries: 3 }),
    (error) => error instanceof ContendedError && error.tries === 3 && error.applied === "no",
  );
});
