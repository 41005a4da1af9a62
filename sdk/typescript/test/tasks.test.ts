/** Tasks and workers, against a real node. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Client, type Task, TaskFailure } from "../src/index.js";
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

test("a task is scheduled once, claimed, extended, completed once", async () => {
  const mails = client.tasks("mails");
  assert.equal((await mails.schedule({ to_whom: "ann" }, { id: "welcome", maxAttempts: 2 })).created, true);
  assert.equal((await mails.schedule({ to_whom: "ben" }, { id: "welcome" })).created, false);
  const [task] = await mails.claim<{ to_whom: string }>({ waitMs: 5_000, leaseMs: 60_000, worker: "w1" });
  assert.ok(task);
  assert.deepEqual(
    [task.payload, task.attempt, task.maxAttempts, task.leaseMs],
    [{ to_whom: "ann" }, 1, 2, 60_000],
  );
  assert.ok(task.heldUntil > performance.now() + 50_000);
  assert.equal((await mails.get("welcome"))?.worker, "w1");
  await task.extend(90_000);
  assert.equal((await task.complete()).state, "done");
  assert.equal((await failure(task.complete())).code, "not_lock_holder");
  assert.deepEqual(await mails.claim(), []);
});

test("a task fails, dies, is put back, and is cancelled", async () => {
  const queue = client.tasks("fails");
  await queue.scheduleAll([
    { id: "f1", payload: 1, maxAttempts: 1 },
    { id: "f2", payload: new Uint8Array([1, 2]), delayMs: 60_000 },
    { id: "f3", executeAt: new Date(Date.now() + 60_000) },
  ]);
  const [task] = await queue.claim({ waitMs: 5_000 });
  assert.equal((await task?.fail({ error: "no such address" }))?.state, "dead");
  assert.deepEqual(
    (await queue.list("dead").all()).map(({ id, lastError }) => [id, lastError]),
    [["f1", "no such address"]],
  );
  assert.equal((await queue.requeue("f1")).count, 1);
  const [again] = await queue.claim({ waitMs: 5_000 });
  assert.equal((await again?.release())?.state, "scheduled");
  assert.deepEqual((await queue.get<Uint8Array>("f2"))?.payload, new Uint8Array([1, 2]));
  assert.deepEqual([(await queue.cancel("f2")).state, await queue.get("f9")], ["gone", undefined]);
  assert.equal((await queue.stats()).scheduled, 2);
  assert.ok((await client.taskQueues().all()).some(({ queue }) => queue === "fails"));
  const refused = await failure(queue.schedule(null, { cron: "0 0 30 2 *" }));
  assert.deepEqual([refused.code, refused.errors[0]?.pointer], ["invalid_argument", "/cron"]);
});

test("a worker completes, fails and tries again, each task as its handler says", async () => {
  const parcels = client.tasks("parcels");
  await parcels.scheduleAll(
    ["ok", "retry", "dead", "back"].map((id) => ({ id, payload: id, backoff: { initialMs: 10 } })),
  );
  const stop = new AbortController();
  const tries = new Map<string, number>();
  const handler = async (task: Task<string>) => {
    const tried = (tries.get(task.id) ?? 0) + 1;
    tries.set(task.id, tried);
    if (task.id === "dead") {
      throw TaskFailure.dead("never");
    }
    if (tried === 1 && task.id === "retry") {
      throw new Error("the first time");
    }
    if (tried === 1 && task.id === "back") {
      throw TaskFailure.giveBack();
    }
  };
  const working = parcels.work(handler, { concurrency: 2, signal: stop.signal, name: "w" });
  await until("all are done", async () => {
    const { done, dead } = await parcels.stats();
    return done === 3 && dead === 1;
  });
  stop.abort();
  assert.deepEqual(await working, { completed: 3, failed: 2, lost: 0, released: 1 });
  const [dead] = await parcels.list("dead").all();
  assert.deepEqual(
    [dead?.id, dead?.lastError, tries.get("retry"), tries.get("back")],
    ["dead", "never", 2, 2],
  );
});

test("a worker that stops tells its handler, and gives its task back once that has ended", async () => {
  const queue = client.tasks("slow");
  await queue.schedule("slow", { id: "s1" });
  const stops = [new AbortController(), new AbortController()] as const;
  let [atWork, most] = [0, 0];
  let run: AbortSignal | undefined;
  const first = queue.work(
    async (_, { signal }) => {
      [run, atWork] = [signal, atWork + 1];
      await until("it is told to stop", () => signal.aborted);
      // Longer than its lease: the claim is extended meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      atWork -= 1;
      throw new Error("broken off");
    },
    { signal: stops[0].signal, stopWithinMs: 20, leaseMs: 1_000 },
  );
  await until("it runs", () => run !== undefined);
  stops[0].abort();
  const second = queue.work(
    () => {
      most = Math.max(most, atWork + 1);
      stops[1].abort();
    },
    { signal: stops[1].signal },
  );
  assert.deepEqual(await first, { completed: 0, failed: 0, lost: 0, released: 1 });
  assert.deepEqual(await second, { completed: 1, failed: 0, lost: 0, released: 0 });
  assert.equal(most, 1, "nobody begins with a task that another one still works on");
});

test("a handler that never ends keeps its task to the end of its claim, and no worker running for good", async () => {
  const queue = client.tasks("stuck");
  await queue.schedule("stuck", { id: "s1" });
  const stop = new AbortController();
  let run: AbortSignal | undefined;
  const working = queue.work(
    (_, { signal }) => {
      run = signal;
      return new Promise(() => {});
    },
    { signal: stop.signal, stopWithinMs: 20, leaseMs: 1_000 },
  );
  await until("it runs", () => run !== undefined);
  stop.abort();
  const since = performance.now();
  assert.deepEqual(await working, { completed: 0, failed: 0, lost: 1, released: 0 });
  const took = performance.now() - since;
  assert.ok(took > 1_000 && took < 3_000, `${took} ms`);
  assert.equal(run?.aborted, true);
  await until("others get it", async () => (await queue.get("s1"))?.state === "scheduled");
});

test("a worker extends the claims of what takes longer, and never completes what was taken from it", async () => {
  const queue = client.tasks("long");
  await queue.scheduleAll([
    { id: "long", payload: 0 },
    { id: "taken", payload: 0, delayMs: 1 },
  ]);
  const stop = new AbortController();
  const handler = async (task: Task, { signal }: { signal: AbortSignal }) => {
    if (task.id === "taken") {
      await client.tasks("long").fail(task.id, task.token, { dead: true });
      await until("the worker hears of it", () => signal.aborted);
    } else {
      const since = performance.now();
      await until("it has taken longer than its lease", () => performance.now() - since > 1_300);
    }
  };
  const working = queue.work(handler, { concurrency: 2, leaseMs: 1_000, signal: stop.signal });
  await until("both have ended", async () => {
    const { done, dead } = await queue.stats();
    return done === 1 && dead === 1;
  });
  stop.abort();
  const { completed, lost } = await working;
  assert.deepEqual([completed, lost], [1, 1]);
});

test("a worker with a wrong setting says so", async () => {
  assert.equal(
    (await failure(client.tasks("wrong").work(() => {}, { leaseMs: 1 }))).code,
    "invalid_argument",
  );
});
