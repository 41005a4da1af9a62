/** What callers may not say: nothing of it is sent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, op, TaskFailure, type Txn } from "../src/index.js";
import { answer, fake } from "./fake.js";
import { sessionCluster } from "./sessions.js";
import { failure } from "./support.js";

const WRITTEN = { key: "k", revision: "5", index: 9, cas: "5", create_revision: "5", version: 1 };

/** Makes calls that make no sense, and looks at what they say. */
async function refuses(calls: Record<string, [() => unknown, RegExp]>): Promise<void> {
  for (const [name, [call, words]] of Object.entries(calls)) {
    const error = await failure((async () => call())());
    assert.equal(error.code, "invalid_argument", name);
    assert.match(error.message, words, name);
  }
}

test("spans of time are not negative, and no NaN", async () => {
  const { client, sent } = fake(() => answer(WRITTEN));
  const queue = client.tasks("q");
  for (const ms of [
    -1,
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    "60" as unknown as number,
    5n as unknown as number,
  ]) {
    const shown = typeof ms === "string" ? '"60"' : String(ms);
    const said = (name: string) => new RegExp(`\`${name}\` is ${shown}: expected a number of milliseconds`);
    const txn: Txn = { then: [{ op: "txn", then: [{ op: "insert", key: "k", value: 1, ttlMs: ms }] }] };
    await refuses({
      put: [() => client.put("k", 1, { ttlMs: ms }), said("ttlMs")],
      insert: [() => client.insert("k", 1, { ttlMs: ms }), said("ttlMs")],
      patch: [() => client.patch("k", {}, { ttlMs: ms }), said("ttlMs")],
      touch: [() => client.touch("k", ms), said("ttlMs")],
      getAndTouch: [() => client.getAndTouch("k", ms), said("ttlMs")],
      update: [() => client.update("k", () => 1, { ttlMs: ms }), said("ttlMs")],
      bulk: [() => client.bulk([{ op: "upsert", key: "k", value: 1, ttlMs: ms }]), said("ttlMs")],
      bulkTouch: [() => client.bulk([op.touch("k", ms)]), said("ttlMs")],
      txn: [() => client.txn(txn), said("ttlMs")],
      stream: [() => client.stream([{ op: "touch", key: "k", ttlMs: ms }]).next(), said("ttlMs")],
      updateWhere: [() => client.updateWhere({ prefix: "", patch: {}, ttlMs: ms }), said("ttlMs")],
      claim: [() => client.claim({ prefix: "", lockMs: ms }), said("lockMs")],
      lockEntry: [() => client.lockEntry("k", { lockMs: ms }), said("lockMs")],
      lockEntryWait: [() => client.lockEntry("k", { waitMs: ms }), said("waitMs")],
      extend: [() => client.extendEntryLock("k", "5", ms), said("lockMs")],
      waitForChange: [() => client.waitForChange("k", { waitMs: ms }), said("waitMs")],
      session: [() => client.session({ ttlMs: ms }), said("ttlMs")],
      latch: [() => client.latch("l").wait(ms), said("waitMs")],
      token: [() => client.access.createToken("u", { expiresInMs: ms }), said("expiresInMs")],
      delay: [() => queue.schedule(1, { delayMs: ms }), said("delayMs")],
      every: [() => queue.scheduleAll([{ everyMs: ms }]), said("everyMs")],
      keep: [() => queue.schedule(1, { keepMs: ms }), said("keepMs")],
      backoff: [() => queue.schedule(1, { backoff: { initialMs: ms } }), said("initialMs")],
      lease: [() => queue.claim({ leaseMs: ms }), said("leaseMs")],
      claimWait: [() => queue.claim({ waitMs: ms }), said("waitMs")],
      fail: [() => queue.fail("t", "5", { retryInMs: ms }), said("retryInMs")],
      retryIn: [() => TaskFailure.retryIn("why", ms), said("retryInMs")],
      worker: [() => queue.work(() => {}, { leaseMs: ms }), said("leaseMs")],
      workerStop: [() => queue.work(() => {}, { stopWithinMs: ms }), said("stopWithinMs")],
      heartbeat: [() => client.watch({ heartbeatMs: ms }), said("heartbeatMs")],
      patience: [() => client.watch({ patienceMs: ms }), said("patienceMs")],
      mirror: [() => client.mirror({ heartbeatMs: ms }), said("heartbeatMs")],
      timeout: [() => client.get("k", { timeoutMs: ms }), said("timeoutMs")],
      timeoutOfWrite: [() => client.put("k", 1, { timeoutMs: ms }), said("timeoutMs")],
      timeoutOfStream: [() => client.stream([], { timeoutMs: ms }).next(), said("timeoutMs")],
      client: [() => new Client({ timeoutMs: ms }), said("timeoutMs")],
      attempt: [() => new Client({ attemptTimeoutMs: ms }), said("attemptTimeoutMs")],
      backoffMin: [() => new Client({ retry: { backoffMinMs: ms } }), said("backoffMinMs")],
    });
  }
  await refuses({
    infinite: [() => client.put("k", 1, { ttlMs: Number.POSITIVE_INFINITY }), /`ttlMs` is Infinity/],
    when: [() => queue.schedule(1, { executeAt: new Date(Number.NaN) }), /`executeAt` is an invalid date/],
    whenMs: [() => queue.schedule(1, { executeAt: Number.NaN }), /execute_at is NaN/],
    limit: [() => client.claim({ prefix: "", limit: Number.NaN }), /limit is NaN/],
    concurrency: [() => queue.work(() => {}, { concurrency: Number.NaN }), /`concurrency` is NaN/],
    attempts: [() => new Client({ retry: { attemptsMax: Number.NaN } }), /`attemptsMax` is NaN/],
  });
  assert.equal(sent.length, 0);
});

test("waits of sessions are not negative, and nothing is asked for with them", async () => {
  const { client, to } = sessionCluster(() => "usual");
  const session = await client.session();
  await refuses({
    lock: [() => session.lock("a", { waitMs: -1 }), /`waitMs` is -1/],
    delay: [() => session.lock("a", { delayMs: -1 }), /`delayMs` is -1/],
    campaign: [() => session.campaign("a", { waitMs: Number.NaN }), /`waitMs` is NaN/],
    value: [() => session.campaign("a", { value: Number.NaN }), /value is NaN/],
    barrier: [() => session.barrier("a", 1, { waitMs: -1 }), /`waitMs` is -1/],
    options: [() => session.lock("a", "5s" as never), /options are an object/],
  });
  assert.equal(to("/acquire").length + to("/release").length + to("/campaign").length, 0);
  await (await session.lock("a")).release();
  await client.close();
});

test("what is shorter than a millisecond is one, and a time to live of 0 is refused where it would be for ever", async () => {
  const { client, sent } = fake(() => answer({ ...WRITTEN, tasks: [], waited_ms: 0 }));
  await client.put("k", 1, { ttlMs: 0.0001 });
  await client.put("k", 1, { ttlMs: 1_500.2 });
  await client.touch("k", 0);
  await client.touch("k", -0);
  await client.getAndTouch("k", 0);
  await client.bulk([op.touch("k", 0)]);
  await client.lockEntry("k", { lockMs: 0.5, waitMs: 0.5 });
  assert.deepEqual(
    sent.map(({ body }) => (body as { ttl_ms?: number }).ttl_ms),
    [1, 1_501, 0, 0, 0, undefined, undefined],
  );
  assert.deepEqual(sent.at(-1)?.body, { op: "lock", key: "k", lock_ms: 1, wait_ms: 1 });
  await client.waitForChange("k", { waitMs: 0.2 });
  assert.match(sent.at(-1)?.path ?? "", /wait_ms=1$/);
  const zero = /`ttlMs` is 0: leave it out for no expiry/;
  sent.length = 0;
  await refuses({
    put: [() => client.put("k", 1, { ttlMs: 0 }), zero],
    insert: [() => client.insert("k", 1, { ttlMs: 0 }), zero],
    replace: [() => client.replace("k", 1, { ttlMs: 0 }), zero],
    patch: [() => client.patch("k", {}, { ttlMs: 0 }), zero],
    update: [() => client.update("k", () => 1, { ttlMs: 0 }), zero],
    op: [() => op.put("k", 1, { ttlMs: 0 }), zero],
    bulk: [() => client.bulk([{ op: "upsert", key: "k", value: 1, ttlMs: 0 }]), zero],
    txn: [() => client.txn({ else: [{ op: "replace", key: "k", value: 1, ttlMs: 0 }] }), zero],
    stream: [() => client.stream([{ op: "insert", key: "k", value: 1, ttlMs: 0 }]).next(), zero],
    updateWhere: [() => client.updateWhere({ prefix: "", patch: {}, ttlMs: 0 }), zero],
  });
  const keep = /`ttl` is "keep", and stands alone/;
  await refuses({
    time: [() => client.put("k", 1, { ttl: 5_000 as unknown as "keep" }), keep],
    both: [() => client.replace("k", 1, { ttl: "keep", ttlMs: 5 }), keep],
    byHand: [() => client.bulk([{ op: "upsert", key: "k", value: 1, ttl: "keep", ttlMs: 5 }]), keep],
  });
  assert.equal(sent.length, 0);
  await client.put("k", 1, { ttl: "keep" });
  assert.deepEqual(sent[0]?.body, { op: "upsert", key: "k", value: 1, ttl: "keep" });
});

test("what is no object of options is refused, and so are names that would not be seen", async () => {
  const { client, sent } = sessionCluster(() => "usual");
  const session = await client.session();
  const lock = await session.lock("a");
  sent.length = 0;
  const text = "r19/" as never;
  const hint = /options are an object, such as \{ prefix: "r19\/" \}, and this is "r19\/"/;
  const object = /options are an object, and this is/;
  await refuses({
    list: [() => client.list(text), hint],
    find: [() => client.find(text), hint],
    count: [() => client.count(text), hint],
    watch: [() => client.watch(text), hint],
    mirror: [() => client.mirror(text), hint],
    updateWhere: [() => client.updateWhere(text), hint],
    deleteWhere: [() => client.deleteWhere(text), hint],
    deleteAllWhere: [() => client.deleteAllWhere(text).next(), hint],
    claim: [() => client.claim(text), hint],
    put: [() => client.put("k", 1, text), /such as \{ cas: "r19\/" \}/],
    list2: [() => client.list(["a"] as never), object],
    count2: [() => client.count(5 as never), object],
    find2: [() => client.find(null as never), object],
    guard: [() => client.put("k", 1, lock as never), /this is a Lock/],
    opGuard: [() => op.remove("k", lock as never), /this is a Lock/],
    signal: [() => client.get("k", new AbortController().signal as never), /this is an AbortSignal/],
    get: [() => client.get("k", text), object],
    exists: [() => client.exists("k", text), object],
    waitForChange: [() => client.waitForChange("k", text), object],
    update: [() => client.update("k", () => 1, text), object],
    history: [() => client.history("k", text).next(), object],
    bulk: [() => client.bulk([op.get("k")], text), object],
    txn: [() => client.txn({}, text), object],
    stream: [() => client.stream([], text).next(), object],
    sessions: [() => client.sessions(text).all(), object],
    session: [() => client.session(text), object],
    lock: [() => session.lock("b", text), object],
    campaign: [() => session.campaign("b", text), object],
    barrier: [() => session.barrier("b", 1, text), object],
    end: [() => session.end(text), object],
    observe: [() => client.election("e").observe(text), object],
    latch: [() => client.latch("l").wait(1, text), object],
    schedule: [() => client.tasks("q").schedule(1, text), object],
    scheduleAll: [() => client.tasks("q").scheduleAll(["a" as never]), object],
    tasks: [() => client.tasks("q").claim(text), object],
    taskFail: [() => client.tasks("q").fail("t", "5", text), object],
    taskList: [() => client.tasks("q").list("dead", text), object],
    work: [() => client.tasks("q").work(() => {}, text), object],
    status: [() => client.cluster.status(text), object],
    members: [() => client.cluster.removeMember(1, text), object],
    ready: [() => client.cluster.waitReady(text), object],
    roles: [() => client.access.roles(text), object],
    role: [() => client.access.setRole("r", [], text), object],
    backup: [() => client.backup(text).next(), object],
    client: [() => new Client(5 as never), object],
    typoOfClient: [() => new Client({ endpoint: "prod:7100" } as never), /no option `endpoint` here/],
    typo: [
      () => client.list({ prefx: "a/" } as never),
      /there is no option `prefx` here; there are: .*prefix/,
    ],
    typoOfPut: [() => client.put("k", 1, { ifabsent: true } as never), /no option `ifabsent` here/],
    typoOfDelete: [() => client.deleteWhere({ prefix: "a/", were: {} } as never), /no option `were`/],
    typoOfWatch: [() => client.watch({ prefixes: "a/" } as never), /no option `prefixes`/],
    typoOfMirror: [() => client.mirror({ path: "a/" } as never), /no option `path`/],
    nullPrefix: [() => client.list({ prefix: null } as never), /`prefix` is null: leave out/],
    nullOfMirror: [() => client.mirror({ prefix: null } as never), /`prefix` is null: leave out/],
    nullGuard: [() => client.put("k", 1, { guard: null } as never), /`guard` is null: leave out/],
    unsetKey: [
      () => client.get(undefined as never),
      /a key is a string of at least one character, not undefined/,
    ],
    unsetKeyOfPut: [() => client.put(undefined as never, 1), /a key is a string/],
    unsetName: [() => session.lock(undefined as never), /a name is a string .*: undefined/],
    unsetQueue: [() => client.tasks(undefined as never).schedule(1), /a name is a string/],
    noPrefix: [
      () => client.deleteWhere({} as never),
      /`prefix` is undefined, and "" for all keys is to be said/,
    ],
    emptyHanded: [() => client.deleteWhere(undefined as never), /`prefix` is undefined/],
    prefixOfNumber: [() => client.list({ prefix: 5 as never }).page(), /`prefix` is 5: expected a string/],
  });
  assert.deepEqual(
    sent.map(({ path }) => path),
    [],
  );
  assert.equal(session.state, "alive");
  await client.close();
});
