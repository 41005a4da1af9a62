/** Nodes of another cluster among the endpoints: what they answer is not believed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Endpoints } from "../src/endpoints.js";
import { OtherClusterError, op, type Streamed, UnavailableError } from "../src/index.js";
import { answer, broken, fake, problem } from "./fake.js";
import { failure } from "./support.js";

const WRITTEN = { key: "k", revision: "5", index: 9, cas: "5", create_revision: "5", version: 1 };
const ours = { "quorate-cluster": "ours" };
const theirs = { "quorate-cluster": "theirs" };

/** A client of nodes of which `c` is of another cluster, and which has seen ours. */
async function withStranger(
  behaviour: Parameters<typeof fake>[0] = () => answer(WRITTEN, 200, ours),
  timeoutMs = 30_000,
) {
  const troubles: Error[] = [];
  const known = { onTrouble: (trouble: Error) => troubles.push(trouble), timeoutMs };
  let isFirst = true;
  const made = fake((sent, number) => {
    if (isFirst) {
      isFirst = false;
      return answer(WRITTEN, 200, ours);
    }
    if (sent.host === "c:1") {
      return sent.path.startsWith("/v1/kv")
        ? problem("not_found", 404, {}, theirs)
        : answer(WRITTEN, 200, theirs);
    }
    return behaviour(sent, number);
  }, known);
  await made.client.put("k", 1);
  made.sent.length = 0;
  return { ...made, troubles };
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

test("where all nodes are of another cluster, each call asks one, and says so at once", async () => {
  const { client, sent } = await withStranger(() => answer(WRITTEN, 200, theirs));
  const started = performance.now();
  assert.match((await failure(client.get("k"))).message, /the node is of cluster theirs, not of ours/);
  assert.equal(new Set(sent.map(({ host }) => host)).size, 3);
  sent.length = 0;
  assert.match((await failure(client.put("k", 1))).message, /the node is of cluster theirs, not of ours/);
  assert.equal(sent.length, 1);
  const { cause } = await failure(client.get("k"));
  assert.ok(cause instanceof OtherClusterError);
  assert.deepEqual([cause.cluster, cause.expected], ["theirs", "ours"]);
  await assert.rejects(client.watch({ prefix: "" }), /of cluster theirs, not of ours/);
  assert.ok(performance.now() - started < 10_000);
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
        return number === 1
          ? answer(WRITTEN, 200, ours)
          : new Response(`${line}\n`, { headers: { ...ndjson, ...cluster } });
      },
      { onTrouble: () => {} },
    );
    await client.put("k", 1);
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
    assert.equal(sent.slice(1).filter(({ host }) => host === "c:1").length, 1);
  }
});

test("a cluster that says nothing of itself is believed as before", async () => {
  const { client, sent } = fake(() => answer(WRITTEN));
  for (let n = 0; n < 6; n += 1) {
    await client.get("k");
  }
  assert.equal(new Set(sent.map(({ host }) => host)).size, 3);
});

test("a node of another cluster is asked last, and again after a while", () => {
  const endpoints = new Endpoints(2, 0);
  endpoints.onForeign(0, 0);
  endpoints.onFailure(1, 0);
  assert.equal(endpoints.pick("any", undefined, 1), 1, "the one that failed may be back");
  assert.equal(endpoints.pick("any", 1, 1), 1, "even when it has just failed this very request");
  assert.deepEqual([endpoints.isForeign(0, 29_999), endpoints.isForeign(0, 30_000)], [true, false]);
  endpoints.onForeign(1, 10);
  assert.equal(endpoints.pick("any", undefined, 20), 0);
});
