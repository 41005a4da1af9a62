/** Sessions, locks, elections, barriers and latches, against a real node. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Client, compareRevisions, type Leads, SessionError } from "../src/index.js";
import type { TestCluster } from "../src/node/testing.js";
import { answer, broken, fake } from "./fake.js";
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

test("a session renews itself, and what hangs on it ends with it", async () => {
  const session = await client.session({ ttlMs: 300, owner: "web-1", labels: { the_zone: "a" } });
  await client.put("s/web-1", "10.0.0.7", { session });
  const info = await client.sessionById(session.id).get();
  assert.deepEqual([info?.owner, info?.labels, info?.holds?.keys], ["web-1", { the_zone: "a" }, ["s/web-1"]]);
  assert.ok((await client.sessions().all()).some((found) => found.session === session.id));
  const since = performance.now();
  await until("it has outlived its time twice", () => performance.now() - since > 700);
  assert.deepEqual([session.state, session.loss, session.signal.aborted], ["alive", undefined, false]);
  await session.end();
  assert.deepEqual(
    [session.state, session.loss, await session.lost, session.signal.aborted],
    ["lost", "ended", "ended", true],
  );
  assert.equal(await client.exists("s/web-1"), false);
  assert.equal(await client.sessionById(session.id).get(), undefined);
  assert.equal((await failure(client.sessionById(session.id).renew())).code, "session_expired");
  assert.throws(() => session.check(), SessionError);
});

test("a session that the cluster ended is lost at the next renewal, and what waits for a lock hears of it", async () => {
  const holder = await client.session();
  await holder.lock("s-lost");
  const session = await client.session({ ttlMs: 600 });
  const waiting = failure(session.lock("s-lost"));
  await client.sessionById(session.id).end();
  assert.equal(await session.lost, "expired");
  assert.deepEqual(
    [(await waiting).code, (await waiting) instanceof SessionError],
    ["session_expired", true],
  );
  await holder.end();
});

test("a session that cannot be renewed is suspect, then lost, before its time is over", async () => {
  let isCut = false;
  const created = {
    session: "7",
    ttl_ms: 400,
    renew_in_ms: 133,
    expires_in_ms: 400,
    owner: "",
    labels: {},
    revision: "1",
    index: 1,
  };
  const { client: cut } = fake(({ path }) => {
    if (isCut) {
      return broken("ECONNREFUSED");
    }
    return path === "/v1/sessions"
      ? answer(created, 201)
      : answer({ sessions: [{ session: "7", ttl_ms: 400, renew_in_ms: 133, expires_in_ms: 400 }] });
  });
  const session = await cut.session({ ttlMs: 400 });
  const states: string[] = [];
  session.onStateChange((state) => states.push(state));
  isCut = true;
  // Timers run in the order in which they are due, also where other programs have the processors.
  const tooLate = new Promise((over) => setTimeout(over, 400 + 133, "too late"));
  assert.equal(await session.changed("alive"), "suspect");
  assert.throws(() => session.check(), { code: "session_suspect", isRetryable: true });
  assert.equal(await Promise.race([session.lost, tooLate]), "not_renewed");
  assert.deepEqual(states, ["suspect", "lost"]);
  assert.equal((await failure(session.lock("x"))).code, "session_expired");
});

test("a lock has one holder, whose token fences off those before", async () => {
  const [ann, ben] = [await client.session(), await client.session()];
  const lock = await ann.lock("books");
  assert.equal((await client.lock("books").get()).holders[0]?.token, lock.token);
  const refused = await failure(ben.lock("books", { waitMs: 0 }));
  assert.deepEqual([refused.code, refused.applied, refused.holders], ["locked", "no", 1]);
  assert.equal((await failure(ann.lock("books"))).code, "invalid_argument");
  await client.put("books/sum", 1, { guard: lock });
  assert.equal((await client.lock("books").check(lock.token)).held, true);
  const waiting = ben.lock("books");
  await until("ben waits", async () => (await client.lock("books").get()).waiterCount === 1);
  await lock.release();
  const next = await waiting;
  assert.ok(compareRevisions(next.token, lock.guard.token) > 0);
  assert.equal((await failure(client.put("books/sum", 2, { guard: lock }))).code, "guard_failed");
  assert.equal((await failure(lock.release())).code, "not_lock_holder");
  assert.deepEqual(
    (await client.locks().all()).map((found) => found.lock),
    ["books"],
  );
  assert.equal((await client.lock("books").releaseSession(ben)).released, true);
  await Promise.all([ann.end(), ben.end()]);
});

test("who does not wait any more gives up its place", async () => {
  const [ann, ben] = [await client.session(), await client.session()];
  const lock = await ann.lock("place");
  const stop = new AbortController();
  const waiting = assert.rejects(ben.lock("place", { signal: stop.signal }), /enough/);
  await until("ben waits", async () => (await client.lock("place").get()).waiterCount === 1);
  stop.abort(new Error("enough"));
  await waiting;
  await until("ben's place is given up", async () => (await client.lock("place").get()).waiterCount === 0);
  assert.equal((await failure(ben.lock("place", { waitMs: 30 }))).code, "locked");
  await lock.release();
  await (await ben.lock("place")).release();
  await Promise.all([ann.end(), ben.end()]);
});

test("slots and shared locks have several holders", async () => {
  const sessions = await Promise.all([1, 2, 3].map(() => client.session()));
  const [one, two, three] = sessions;
  assert.ok(one && two && three);
  const slots = await Promise.all([one.lock("slots", { slots: 2 }), two.lock("slots", { slots: 2 })]);
  assert.equal((await failure(three.lock("slots", { slots: 2, waitMs: 0 }))).code, "locked");
  assert.equal((await failure(three.lock("slots", { slots: 3 }))).code, "different_settings");
  const beyond = { slots: 2, maxWaiters: 1_001 };
  assert.equal((await failure(three.lock("slots", beyond))).code, "invalid_argument");
  await Promise.all(slots.map((slot) => slot.release()));
  await Promise.all([one.lock("shared", { mode: "shared" }), two.lock("shared", { mode: "shared" })]);
  assert.equal((await failure(three.lock("shared", { waitMs: 0 }))).code, "locked");
  await Promise.all(sessions.map((session) => session.end()));
});

test("locks and sessions end with the block that holds them", async () => {
  let id = "";
  {
    await using session = await client.session();
    id = session.id;
    await using lock = await session.lock("scoped");
    assert.equal((await client.lock("scoped").get()).holderCount, 1);
    assert.ok(lock.token);
  }
  assert.equal((await client.lock("scoped").get()).holderCount, 0);
  assert.equal(await client.sessionById(id).get(), undefined);
});

/** Who led, and what it said of itself, until this one led and does no more. */
async function leaders(observation: AsyncIterable<Leads>, last: string): Promise<unknown[]> {
  const seen: unknown[] = [];
  let owner = "";
  for await (const leads of observation) {
    if (leads.type === "leader") {
      owner = leads.owner;
      seen.push([owner, leads.value]);
    } else if (owner === last) {
      break;
    }
  }
  return seen;
}

test("a leader says who it is, and observers hear each change", async () => {
  const [ann, ben] = [await client.session({ owner: "ann" }), await client.session({ owner: "ben" })];
  const election = client.election("scheduler");
  assert.equal(await election.leader(), undefined);
  const observation = await election.observe();
  const seen = leaders(observation, "ben");
  const leadership = await ann.campaign("scheduler", { value: { host_name: "a" } });
  assert.deepEqual(
    [(await election.leader())?.term, (await election.leader())?.value],
    [leadership.term, { host_name: "a" }],
  );
  await leadership.proclaim({ host_name: "b" });
  const next = ben.campaign("scheduler");
  await until("ben stands", async () => (await election.get()).candidateCount === 1);
  await client.put("schedule/next", 1, { guard: leadership });
  await leadership.resign();
  const second = await next;
  assert.equal((await failure(client.put("schedule/next", 2, { guard: leadership }))).code, "guard_failed");
  assert.equal((await election.resign(second.term)).resigned, true);
  assert.deepEqual(await seen, [
    ["ann", { host_name: "a" }],
    ["ann", { host_name: "b" }],
    ["ben", undefined],
  ]);
  await Promise.all([ann.end(), ben.end()]);
});

test("a barrier opens for all at once", async () => {
  const [one, two] = [await client.session(), await client.session()];
  assert.equal((await one.barrier("both", 2, { waitMs: 20 }).enter()).state, "waiting");
  const [first, second] = [one.barrier("both", 2), two.barrier("both", 2)];
  const entered = await Promise.all([first.enter(), second.enter()]);
  assert.deepEqual(
    entered.map(({ state }) => state),
    ["open", "open"],
  );
  await Promise.all([first.leave(), second.leave()]);
  assert.equal((await client.barrier("both")).state, "empty");
  await Promise.all([one.end(), two.end()]);
});

test("a latch opens once it is counted down", async () => {
  const latch = client.latch("migrated");
  assert.equal((await failure(latch.get())).code, "not_found");
  assert.equal((await latch.create(2)).left, 2);
  assert.equal((await failure(latch.create(3))).code, "different_settings");
  assert.equal((await latch.wait(10)).open, false);
  const waiting = latch.wait(10_000);
  await latch.countDown();
  await latch.countDown();
  assert.equal((await waiting).open, true);
  await latch.remove();
});

test("a client that is closed ends its sessions", async () => {
  const other = cluster.client();
  const session = await other.session({ ttlMs: 60_000 });
  await session.lock("closed");
  const watch = await other.watch();
  await other.close();
  assert.equal(session.state, "lost");
  await assert.rejects(watch.next(), /closed/);
  assert.equal((await client.lock("closed").get()).holderCount, 0);
});
