/** How locks and leaderships are given up, against nodes that are not there. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isQuorateError, OutcomeUnknownError, ProtocolError, UnavailableError } from "../src/index.js";
import { answer, broken, problem } from "./fake.js";
import { sessionCluster } from "./sessions.js";
import { failure, until } from "./support.js";

test("a token is handed out until the lock is given up, whatever comes of that", async () => {
  let release: () => Response | Error | "usual" = () => "usual";
  const { client, to } = sessionCluster(({ path }) => (path.endsWith("/release") ? release() : "usual"));
  const session = await client.session();
  const first = await session.lock("a");
  assert.equal(first.token, "5");
  await first.release();
  assert.throws(() => first.token, { code: "not_lock_holder" });

  const lock = await session.lock("a");
  release = () => broken("ECONNRESET");
  const pending = failure(lock.release());
  assert.throws(() => lock.token, { code: "not_lock_holder" });
  assert.ok((await pending) instanceof OutcomeUnknownError);
  assert.throws(() => lock.token, { code: "not_lock_holder" });
  assert.deepEqual(lock.guard, { lock: "a", token: "5" }, "the cluster decides on guards");

  const ids = new Set(to("/release").map(({ headers }) => headers.get("idempotency-key")));
  release = () => problem("not_lock_holder", 409, { index: 9 });
  await lock.release();
  assert.equal(ids.has(to("/release").at(-1)?.headers.get("idempotency-key") ?? ""), true);
  assert.equal((await failure(lock.release())).code, "not_lock_holder");
  await client.close();
});

test("a lock that was lost before is not released, and a refusal leaves it to be released later", async () => {
  let code = "permission_denied";
  const { client } = sessionCluster(({ path }) =>
    path.endsWith("/release") && code !== "" ? problem(code, 403, { index: 9 }) : "usual",
  );
  const session = await client.session();
  const lock = await session.lock("a");
  assert.equal((await failure(lock.release())).code, "permission_denied");
  code = "not_lock_holder";
  assert.equal((await failure(lock.release())).code, "not_lock_holder");
  const other = await session.lock("a");
  code = "";
  await other.release();
  await client.close();
});

test("a block whose lock cannot be released gives it up in the background, for as long as that takes", async () => {
  let isCut = false;
  const { client, troubles, to } = sessionCluster(({ path }) =>
    isCut && path.endsWith("/release") ? broken("ECONNREFUSED") : "usual",
  );
  const session = await client.session();
  {
    await using lock = await session.lock("a");
    assert.ok(lock.token);
    isCut = true;
  }
  assert.match(troubles[0]?.message ?? "", /lock `a` is given up in the background/);
  const tries = to("/release").length;
  await until("it is tried in vain again", () => to("/release").length > tries + 3);
  // Who wants it without a wait is told; who waits has it once it was given up.
  assert.equal((await failure(session.lock("a", { waitMs: 0 }))).code, "locked");
  const stop = new AbortController();
  const stopped = assert.rejects(session.lock("a", { signal: stop.signal }), /enough/);
  stop.abort(new Error("enough"));
  await stopped;
  const acquired = to("/acquire").length;
  const waiting = session.lock("a");
  isCut = false;
  assert.equal((await waiting).token, "5");
  assert.equal(to("/acquire").length, acquired + 1);
  assert.equal(to("/release").at(-1)?.path, "/v1/locks/a/release");
  await client.close();
});

test("a block whose lock a node does not release says so, and goes on in the background", async () => {
  let refused: Response | undefined = new Response("<html>", { status: 404 });
  const { client, to } = sessionCluster(({ path }) =>
    path.endsWith("/release") && refused !== undefined ? refused.clone() : "usual",
  );
  const session = await client.session();
  const lock = await session.lock("a");
  await assert.rejects(async () => lock[Symbol.asyncDispose](), ProtocolError);
  refused = problem("permission_denied", 403);
  const other = await session.lock("b");
  await assert.rejects(async () => other[Symbol.asyncDispose](), { code: "permission_denied" });
  const tries = to("/b/release").length;
  await until("it is tried again", () => to("/b/release").length > tries + 1);
  refused = undefined;
  await (await session.lock("b")).release();
  await client.close();
});

test("a place that was left while no node could be reached is given up once one can be", async () => {
  let isCut = false;
  let answers = false;
  const { client, to } = sessionCluster((sent) => {
    if (!/acquire|release/.test(sent.path)) {
      return "usual";
    }
    if (isCut) {
      return broken("ECONNREFUSED");
    }
    return sent.path.endsWith("/acquire") && !answers ? undefined : "usual";
  });
  const session = await client.session();
  const stop = new AbortController();
  const waiting = assert.rejects(session.lock("a", { signal: stop.signal }), /enough/);
  await until("it waits", () => to("/acquire").length > 0);
  isCut = true;
  stop.abort(new Error("enough"));
  await waiting;
  const tries = to("/acquire").length;
  await until("what was asked is asked in vain", () => to("/acquire").length > tries + 20);
  const ids = new Set(to("/acquire").map(({ headers }) => headers.get("idempotency-key")));
  assert.equal(ids.size, 1, "what may come late is the same as what was repeated");
  isCut = false;
  answers = true;
  await until("it is given up", () => to("/release").length === 1);
  await client.close();
});

test("a release that is broken off goes on in the background", async () => {
  let hangs = true;
  const { client, troubles, to } = sessionCluster(({ path }) =>
    hangs && path.endsWith("/release") ? undefined : "usual",
  );
  const session = await client.session();
  const lock = await session.lock("a");
  const stop = new AbortController();
  const pending = assert.rejects(lock.release({ signal: stop.signal, timeoutMs: 30_000 }), /enough/);
  await until("it is on its way", () => to("/release").length === 1);
  hangs = false;
  stop.abort(new Error("enough"));
  await pending;
  assert.throws(() => lock.token, { code: "not_lock_holder" });
  // Whoever asks for it has it once it was given up, by a repetition of what may still come.
  const again = await session.lock("a");
  const ids = to("/release").map(({ headers }) => headers.get("idempotency-key"));
  assert.deepEqual([ids.length, new Set(ids).size], [2, 1]);

  // Nothing was sent for the caller, who wants it gone all the same.
  await assert.rejects(again.release({ signal: stop.signal }), /enough/);
  await until("it is given up", () => to("/release").length === 3);
  await (await session.lock("a")).release();
  assert.deepEqual([to("/release").length, troubles], [4, []]);
  await client.close();
});

test("a session that is ended ends what is given up in the background", async () => {
  let isCut = false;
  const { client, to } = sessionCluster(({ path }) =>
    isCut && /release/.test(path) ? broken("ECONNREFUSED") : "usual",
  );
  const session = await client.session();
  const lock = await session.lock("a");
  isCut = true;
  await lock[Symbol.asyncDispose]();
  await session.end();
  await new Promise((resolve) => setTimeout(resolve, 150));
  const tries = to("/release").length;
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(to("/release").length, tries, "nothing but the try that was on its way");
  assert.throws(() => lock.token);
  await client.close();
});

/** What nginx makes of a path with `proxy_pass http://node/;`. */
function cleaned(path: string): string {
  return decodeURIComponent(path)
    .replace(/[^/]+\/\.\.\//g, "")
    .replace(/\/+/g, "/");
}

test("a lock of another name is none of ours, and is not kept", async () => {
  const { client, to } = sessionCluster((sent) => {
    const path = cleaned(sent.path);
    if (path.endsWith("/acquire")) {
      const [, , , lock] = path.split("/");
      return answer({ lock, session: "1", state: "held", token: "5" });
    }
    return path.endsWith("/release") ? answer({ lock: path.split("/")[3], released: true }) : "usual";
  });
  const session = await client.session();
  const error = await failure(session.lock("x/../b"));
  assert.ok(error instanceof ProtocolError && error.about === "b", String(error));
  assert.match(error.message, /the answer is about `b`, not `x\/\.\.\/b`: a proxy may have changed the path/);
  assert.equal(error.applied, "unknown");
  await until("what was got is given up", () => to("/v1/locks/b/release").length === 1);

  const lock = await session.lock("b");
  const before = to("/release").length;
  assert.ok((await failure(session.lock("x/../b"))) instanceof ProtocolError);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(to("/release").length, before, "what another handle has is not taken from it");
  assert.equal(lock.token, "5");
  await client.close();
});

test("a barrier of another name is left, unless the session is in it", async () => {
  for (const isOurs of [true, false]) {
    const { client, to } = sessionCluster(({ path }) =>
      path.startsWith("/v1/barriers/")
        ? answer({ barrier: "b", parties: 1, entered: 1, state: "open", opened_revision: "5" })
        : "usual",
    );
    const session = await client.session();
    const ours = session.barrier("b", 1);
    if (isOurs) {
      await ours.enter();
    }
    const error = await failure(session.barrier("x/../b", 1).enter());
    assert.ok(error instanceof ProtocolError && error.about === "b", String(error));
    // Else it would be left while the session is in it.
    await ours.enter();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const left = to("/leave").map(({ path }) => path);
    assert.deepEqual(left, isOurs ? [] : ["/v1/barriers/b/leave"]);
    await client.close();
  }
});

test("what a barrier was asked before does not lend its id to what it is asked next", async () => {
  const { client, to } = sessionCluster(({ path }) =>
    path.startsWith("/v1/barriers/") ? problem("locked", 423, { index: 9 }) : "usual",
  );
  const session = await client.session();
  const barrier = session.barrier("b", 1);
  for (let n = 0; n < 2; n += 1) {
    assert.equal((await failure(barrier.enter())).code, "locked");
    assert.equal((await failure(barrier.leave())).code, "locked");
  }
  const ids = [...to("/enter"), ...to("/leave")].map(({ headers }) => headers.get("idempotency-key"));
  assert.deepEqual([ids.length, new Set(ids).size], [4, 4]);
  await client.close();
});

test("an answer about another name is none, whatever it is about", async () => {
  const { client } = sessionCluster((sent) => {
    const wrong = {
      lock: "other",
      election: "other",
      barrier: "other",
      latch: "other",
      name: "other",
      session: "other",
      queue: "other",
      id: "other",
      user: "other",
      role: "other",
      request_id: "other",
    };
    return /^\/v1\/sessions(\/renew)?$/.test(sent.path) ? "usual" : answer(wrong);
  });
  const session = await client.session();
  const calls: Record<string, () => Promise<unknown>> = {
    campaign: () => session.campaign("e", { waitMs: 0 }),
    "barrier.enter": () => session.barrier("b", 1, { waitMs: 0 }).enter(),
    "lock.get": () => client.lock("l").get(),
    "lock.check": () => client.lock("l").check("5"),
    "lock.release": () => client.lock("l").release("5"),
    "lock.releaseSession": () => client.lock("l").releaseSession(session),
    "election.get": () => client.election("e").get(),
    "election.resign": () => client.election("e").resign("5"),
    "election.proclaim": () => client.election("e").proclaim("5", 1),
    barrier: () => client.barrier("b"),
    "latch.get": () => client.latch("l").get(),
    "latch.create": () => client.latch("l").create(1),
    "latch.countDown": () => client.latch("l").countDown(),
    "latch.remove": () => client.latch("l").remove(),
    "sequence.next": () => client.sequence("s").next(),
    "sequence.get": () => client.sequence("s").get(),
    "collection.get": () => client.collection("c").get(),
    "collection.put": () => client.collection("c").put({}),
    "collection.remove": () => client.collection("c").remove(),
    "session.get": () => client.sessionById("9").get(),
    "session.renew": () => client.sessionById("9").renew(),
    "session.end": () => client.sessionById("9").end(),
    "queue.stats": () => client.tasks("q").stats(),
    "queue.get": () => client.tasks("q").get("t"),
    "queue.schedule": () => client.tasks("q").schedule(1, { id: "t" }),
    "queue.complete": () => client.tasks("q").complete("t", "5"),
    user: () => client.access.user("u"),
    setRole: () => client.access.setRole("r", []),
    requestOutcome: () => client.requestOutcome("r1"),
  };
  for (const [name, call] of Object.entries(calls)) {
    const error = await failure(call());
    assert.ok(error instanceof ProtocolError && error.about === "other", `${name}: ${error}`);
  }
  await client.close().catch(() => {});
});

test("a lock that no node could give is not ours, and that is told as before", async () => {
  const { client } = sessionCluster(({ path }) =>
    path.endsWith("/acquire") ? broken("ECONNREFUSED") : "usual",
  );
  const session = await client.session();
  const error = await failure(session.lock("a", { waitMs: 0 }));
  assert.ok(error instanceof UnavailableError && !isQuorateError(error, "locked"), String(error));
  await client.close();
});

test("a token is not told after a suspend until the session is renewed", async (context) => {
  const cluster = sessionCluster(() => "usual");
  const session = await cluster.client.session();
  const lock = await session.lock("l");
  assert.equal(lock.token, "5");
  const { now } = Date;
  // The machine slept for ten minutes: the wall clock went on, the monotonic one did not.
  context.mock.method(Date, "now", () => now() + 600_000);
  assert.throws(() => lock.token, { code: "session_suspect" });
  // Long before it would have been renewed.
  await until("it is renewed", () => session.state === "alive");
  assert.deepEqual([lock.token, cluster.to("/renew").length], ["5", 1]);
  await cluster.client.close();
});

test("a suspend is noticed although nobody asks", async (context) => {
  const cluster = sessionCluster(() => "usual");
  await cluster.client.session();
  const { now } = Date;
  context.mock.method(Date, "now", () => now() + 600_000);
  // Long before it would have been renewed.
  await until("it is renewed", () => cluster.to("/renew").length > 0);
  await cluster.client.close();
});
