/** Nodes of another cluster among the endpoints: what they answer is not believed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Endpoints, FOREIGN_MS, FORGET_CLUSTER_MS } from "../src/endpoints.js";
import { type Client, OtherClusterError, op, type Streamed, UnavailableError } from "../src/index.js";
import { answer, broken, fake, problem } from "./fake.js";
import { failure } from "./support.js";

const WRITTEN = { key: "k", revision: "5", index: 9, cas: "5", create_revision: "5", version: 1 };
const ours = { "quorate-cluster": "ours" };
const theirs = { "quorate-cluster": "theirs" };

/** A client of nodes of which `c` is of another cluster since all have said that they are of ours. */
async function withStranger(
  behaviour: Parameters<typeof fake>[0] = () => answer(WRITTEN, 200, ours),
  timeoutMs = 30_000,
) {
  const troubles: Error[] = [];
  const known = { onTrouble: (trouble: Error) => troubles.push(trouble), timeoutMs };
  let isKnown = false;
  const made = fake((sent, number) => {
    if (!isKnown) {
      return answer(WRITTEN, 200, ours);
    }
    if (sent.host === "c:1") {
      return sent.path.startsWith("/v1/kv")
        ? problem("not_found", 404, {}, theirs)
        : answer(WRITTEN, 200, theirs);
    }
    return behaviour(sent, number);
  }, known);
  await hearAll(made.client);
  isKnown = true;
  made.sent.length = 0;
  return { ...made, troubles };
}

/** Asks each of the three nodes once. */
async function hearAll(client: Client): Promise<void> {
  for (let n = 0; n < 3; n += 1) {
    await client.get("k");
  }
}

test("a node of another cluster is left for one of ours, and told once", async () => {
  const { client, sent, troubles } = await withStranger();
  for (let n = 0; n < 9; n += 1) {
    assert.equal((await client.get("k"))?.key, "k");
    assert.equal(await client.exists("k"), true);
    assert.equal((await client.put("k", n)).index, 9);
  }
  assert.equal(sent.filter(({ host }) => host === "c:1").length, 1, "it is not asked again");
  const [first, second] = sent.filter(({ host }, at) => host === "c:1" || sent[at - 1]?.host === "c:1");
  assert.notEqual(second?.host, "c:1");
  assert.equal(first?.headers.get("idempotency-key"), second?.headers.get("idempotency-key"));
  assert.equal(troubles.length, 1);
  assert.match(troubles[0]?.message ?? "", /c:1: the node is of cluster theirs, not of ours/);
  assert.ok(troubles[0] instanceof OtherClusterError);
});

test("what a node of another cluster did with a write leaves its fate as it was", async () => {
  const { client } = await withStranger(() => broken("ECONNREFUSED"), 300);
  for (let n = 0; n < 3; n += 1) {
    const error = await failure(client.put("k", 1));
    assert.ok(error instanceof UnavailableError && error.applied === "no", String(error));
    assert.match(error.message, /c:1 is of cluster theirs, not of ours/);
  }
});

test("a client goes over once most of its nodes have, whoever it heard first", async () => {
  for (const former of ["ours", "theirs"]) {
    const troubles: Error[] = [];
    let isOver = false;
    const { client, sent } = fake(
      ({ host }) =>
        answer(
          WRITTEN,
          200,
          host === "c:1" || !isOver ? { "quorate-cluster": former } : { "quorate-cluster": "new" },
        ),
      { onTrouble: (trouble) => troubles.push(trouble) },
    );
    await hearAll(client);
    isOver = true;
    for (let n = 0; n < 3; n += 1) {
      assert.equal((await client.get("k"))?.key, "k");
    }
    sent.length = 0;
    for (let n = 0; n < 6; n += 1) {
      assert.equal((await client.get("k"))?.key, "k");
    }
    assert.ok(sent.filter(({ host }) => host === "c:1").length <= 1, "it is the stranger now");
    assert.ok(troubles.every((trouble) => trouble instanceof OtherClusterError));
  }
});

test("one address may be that of several nodes: a call waits for one of ours, and says what it met", async () => {
  let cluster = ours;
  const options = { endpoints: "a:1", timeoutMs: 300, onTrouble: () => {} };
  const { client } = fake(() => answer(WRITTEN, 200, cluster), options);
  await client.get("k");
  cluster = theirs;
  const error = await failure(client.put("k", 1));
  assert.ok(error instanceof UnavailableError && error.cause instanceof OtherClusterError, String(error));
  assert.match(error.message, /the node is of cluster theirs, not of ours/);
  assert.deepEqual([error.cause.cluster, error.cause.expected, error.applied], ["theirs", "ours", "no"]);
  const waiting = client.get("k", { timeoutMs: 30_000 });
  cluster = ours;
  assert.equal((await waiting)?.key, "k");
});

test("neither streams nor operations by the stream go to a node of another cluster", async () => {
  const ndjson = { "content-type": "application/x-ndjson" };
  const sse = { "content-type": "text/event-stream" };
  for (const isWatch of [false, true]) {
    const line = JSON.stringify({ n: 0, status: 201, answer: WRITTEN });
    const { client, sent } = fake(
      ({ host, path }, number) => {
        const cluster = host === "c:1" ? theirs : ours;
        if (path.startsWith("/v1/watch")) {
          const event = 'event: put\nid: 7.1\ndata: {"type":"put","key":"k","revision":"7"}\n\n';
          return new Response(event, { headers: { ...sse, ...cluster } });
        }
        return number <= 3
          ? answer(WRITTEN, 200, ours)
          : new Response(`${line}\n`, { headers: { ...ndjson, ...cluster } });
      },
      { onTrouble: () => {} },
    );
    await hearAll(client);
    for (let n = 0; n < 6; n += 1) {
      if (isWatch) {
        const watch = await client.watch();
        assert.equal((await watch.next()).value?.type, "put");
        watch.close();
      } else {
        const done: Streamed[] = [];
        for await (const one of client.stream([op.put("k", 1)])) {
          done.push(one);
        }
        assert.equal(done[0]?.written?.key, "k");
      }
    }
    assert.equal(sent.slice(3).filter(({ host }) => host === "c:1").length, 1);
  }
});

test("a cluster that says nothing of itself is believed as before", async () => {
  const { client, sent } = fake(() => answer(WRITTEN));
  for (let n = 0; n < 6; n += 1) {
    await client.get("k");
  }
  assert.equal(new Set(sent.map(({ host }) => host)).size, 3);
});

test("a node of another cluster is left alone for a while, and has no leader's place", () => {
  const endpoints = new Endpoints(3, 0);
  for (const node of [0, 1, 2]) {
    assert.equal(endpoints.onCluster(node, "ours", 0), "ours");
    endpoints.introduce(node, node + 1, { term: 4n, leaderId: 3 });
  }
  assert.equal(endpoints.pick("leader", undefined, 0), 2);
  assert.deepEqual(
    [1, 2].map((now) => endpoints.onCluster(2, "theirs", now)),
    ["news", "known"],
  );
  endpoints.onFailure(1, 2);
  for (const not of [undefined, 0, 1]) {
    assert.notEqual(endpoints.pick("leader", not, 3), 2, "one that failed may be back");
  }
  assert.deepEqual(endpoints.strangers(3), [[2, "theirs"]]);
  assert.deepEqual(endpoints.strangers(2 + FOREIGN_MS), [], "somebody may have put it right");
  assert.equal(endpoints.onCluster(2, "ours", 4), "ours");
  assert.deepEqual([endpoints.isForeign(2, 5), endpoints.pick("any", 0, 5)], [false, 2]);
});

test("most of the given nodes say which cluster is ours, and the first one only until then", () => {
  const endpoints = new Endpoints(3, 0);
  assert.equal(endpoints.onCluster(2, "theirs", 0), "ours", "nobody says otherwise");
  endpoints.introduce(2, 3, { term: 80n, leaderId: 3 });
  assert.equal(endpoints.onCluster(0, "ours", 0), "news", "one against one");
  assert.equal(endpoints.onCluster(1, "ours", 0), "ours", "two against one");
  assert.deepEqual([endpoints.cluster, endpoints.isForeign(0, 1)], ["ours", false]);
  endpoints.introduce(0, 1, { term: 5n, leaderId: 1 });
  assert.equal(endpoints.pick("leader", undefined, 1), 0, "terms of another cluster are none of ours");
});

test("a client of one node follows it through a restore, once it has heard nothing else for a while", () => {
  const endpoints = new Endpoints(1, 0);
  assert.equal(endpoints.onCluster(0, "ours", 0), "ours");
  endpoints.add(2);
  assert.equal(
    endpoints.onCluster(0, "theirs", FORGET_CLUSTER_MS - 1),
    "news",
    "nodes of both may be behind it",
  );
  assert.equal(endpoints.pick("any", undefined, FORGET_CLUSTER_MS - 1), 1, "there is another one");
  assert.equal(endpoints.onCluster(1, "ours", FORGET_CLUSTER_MS), "ours", "which has no say");
  assert.equal(endpoints.onCluster(0, "theirs", FORGET_CLUSTER_MS), "ours");
  assert.deepEqual([endpoints.cluster, endpoints.pick("any", 0, FORGET_CLUSTER_MS)], ["theirs", 0]);
});
