/** Nodes of another cluster among the endpoints: what they answer is not believed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { DOUBT_GAP_MS, Endpoints, FOREIGN_PAUSE_MS, INTRODUCTION_PAUSE_MS } from "../src/endpoints.js";
import { type Client, OtherClusterError, op, type Streamed, UnavailableError } from "../src/index.js";
import { answer, broken, fake, problem, type Sent } from "./fake.js";
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

/** The requests that were sent, without questions who a node is. */
function calls(sent: readonly Sent[]): Sent[] {
  return sent.filter(({ path }) => path !== "/v1/cluster/status");
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
  const made = calls(sent);
  assert.equal(made.filter(({ host }) => host === "c:1").length, 1, "it is not asked again");
  const [first, second] = made.filter(({ host }, at) => host === "c:1" || made[at - 1]?.host === "c:1");
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
    assert.match(
      error.message,
      /cluster theirs, not of ours.*; if the other one has replaced ours, .* try again/,
    );
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
    assert.ok(calls(sent).filter(({ host }) => host === "c:1").length <= 1, "it is the stranger now");
    assert.ok(troubles.every((trouble) => trouble instanceof OtherClusterError));
  }
});

test("one address may be that of several nodes: a call waits for one of ours, and says what it met", async () => {
  let cluster = ours;
  const options = { endpoints: "a:1", timeoutMs: 300, onTrouble: () => {} };
  const { client, sent } = fake(() => answer(WRITTEN, 200, cluster), options);
  await client.get("k");
  cluster = theirs;
  const error = await failure(client.put("k", 1));
  assert.ok(error instanceof UnavailableError && error.cause instanceof OtherClusterError, String(error));
  assert.match(error.message, /the node is of cluster theirs, not of ours; .* try again/);
  assert.deepEqual([error.cause.cluster, error.cause.expected, error.applied], ["theirs", "ours", "no"]);
  const waiting = client.get("k", { timeoutMs: 30_000 });
  cluster = ours;
  assert.equal((await waiting)?.key, "k");
  const closing = calls(sent).map(({ headers }) => headers.get("connection"));
  assert.deepEqual(closing.slice(0, 3), [null, null, "close"], "the next connection may reach another node");
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
    assert.equal(
      calls(sent)
        .slice(3)
        .filter(({ host }) => host === "c:1").length,
      1,
    );
  }
});

test("a cluster that says nothing of itself is believed as before", async () => {
  const { client, sent } = fake(() => answer(WRITTEN));
  for (let n = 0; n < 6; n += 1) {
    await client.get("k");
  }
  assert.equal(new Set(sent.map(({ host }) => host)).size, 3);
});

/** Endpoints whose given nodes said at the start that they are of ours. */
function ofOurs(given: number): Endpoints {
  const endpoints = new Endpoints(given, 0);
  for (let node = 0; node < given; node += 1) {
    assert.equal(endpoints.onCluster(node, "ours", 0), "ours");
  }
  return endpoints;
}

/** Whether the word of a node is believed, at each of these seconds. */
function believed(endpoints: Endpoints, node: number, told: string, ...seconds: number[]): boolean[] {
  return seconds.map((second) => endpoints.onCluster(node, told, second * 1_000) === "ours");
}

test("a node of another cluster is only asked who it is, and has no leader's place", () => {
  const endpoints = ofOurs(3);
  for (const node of [0, 1, 2]) {
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
  assert.deepEqual(endpoints.stranger, { node: 2, cluster: "theirs" });
  assert.equal(endpoints.onCluster(0, "ours", 3), "ours");
  assert.deepEqual([endpoints.stranger, endpoints.isForeign(2)], [undefined, true]);
  assert.notEqual(endpoints.pick("any", 0, 1_000_000), 2);
  assert.equal(endpoints.onCluster(2, "ours", 4), "ours");
  assert.deepEqual([endpoints.isForeign(2), endpoints.pick("any", 0, 5)], [false, 2]);
});

test("a node of another cluster is asked who it is now and then, and each second in doubt", () => {
  const begins = (endpoints: Endpoints, ...at: number[]) => at.map((now) => endpoints.beginIntroduction(now));
  const endpoints = ofOurs(3);
  endpoints.onCluster(2, "theirs", 0);
  endpoints.onCluster(0, "ours", 0);
  assert.deepEqual(begins(endpoints, 0, FOREIGN_PAUSE_MS - 1, FOREIGN_PAUSE_MS), [true, false, true]);
  const single = ofOurs(1);
  assert.deepEqual(begins(single, 0), [false]);
  single.onCluster(0, "theirs", 0);
  assert.deepEqual(begins(single, 0, 0, INTRODUCTION_PAUSE_MS), [true, false, true]);
  assert.deepEqual([single.isInDoubt(DOUBT_GAP_MS), single.isInDoubt(DOUBT_GAP_MS + 1)], [true, false]);
});

test("members that were discovered keep a client of one node with its cluster", () => {
  const endpoints = ofOurs(1);
  for (const place of [1, 2]) {
    endpoints.add(place + 1);
    assert.equal(endpoints.onCluster(place, "ours", 0), "ours");
  }
  // The given node was founded anew. The others are asked in its place, and nothing else is said for an hour.
  for (let second = 3_600; second < 3_660; second += 1) {
    assert.deepEqual(believed(endpoints, 0, "theirs", second), [false]);
    const member = endpoints.pick("any", undefined, second * 1_000);
    assert.notEqual(member, 0);
    assert.deepEqual(believed(endpoints, member, "ours", second), [true]);
  }
});

test("one address of several nodes does not move a client that calls now and then", () => {
  const endpoints = ofOurs(1);
  for (let second = 30; second < 600; second += 30) {
    assert.deepEqual(believed(endpoints, 0, "theirs", second), [false], "one behind it was founded anew");
    assert.equal(endpoints.pick("any", 0, second * 1_000), 0);
    assert.deepEqual(believed(endpoints, 0, "ours", second + 1), [true]);
  }
});

test("nodes that are gone lock nobody out", () => {
  for (const given of [3, 2]) {
    const [endpoints, last] = [ofOurs(given), given - 1];
    for (let second = 100; second < 110; second += 1) {
      const now = second * 1_000;
      assert.deepEqual(believed(endpoints, last, "theirs", second), [false]);
      endpoints.onFailure(0, now);
      assert.notEqual(endpoints.pick("any", 0, now), last, "it is only asked who it is");
      assert.deepEqual([endpoints.beginIntroduction(now), endpoints.beginIntroduction(now)], [true, false]);
    }
    assert.deepEqual(believed(endpoints, last, "theirs", 110), [true]);
    assert.deepEqual([endpoints.cluster, endpoints.stranger], ["theirs", undefined]);
    assert.equal(endpoints.pick("any", undefined, 110_000), last);
  }
});

test("a gap begins the doubt anew", () => {
  const endpoints = ofOurs(1);
  const early = believed(endpoints, 0, "theirs", 0, 5, 9, 15, 20, 24);
  assert.ok(!early.includes(true), "there was a gap of six seconds");
  assert.deepEqual(believed(endpoints, 0, "ours", 24), [true], "a word of ours ends it");
  assert.deepEqual(believed(endpoints, 0, "theirs", 25, 30, 34, 35), [false, false, false, true]);
  assert.deepEqual(believed(endpoints, 0, "ours", 36), [false], "which is not believed any more");
});

test("doubts of two clusters do not end each other", () => {
  const endpoints = ofOurs(1);
  for (let second = 0; second < 10; second += 1) {
    assert.deepEqual(believed(endpoints, 0, second % 2 === 0 ? "theirs" : "another", second), [false]);
  }
  assert.deepEqual(believed(endpoints, 0, "theirs", 10), [true]);
  const all = ofOurs(2);
  assert.deepEqual([...believed(all, 0, "theirs", 1), ...believed(all, 1, "another", 1)], [false, false]);
  assert.ok(all.pick("any", 0, 1_000) < 2, "all are strangers, and one is asked");
});

test("a majority of the given nodes takes the client over at once", () => {
  const endpoints = ofOurs(3);
  endpoints.introduce(0, 1, { term: 80n, leaderId: 1 });
  assert.deepEqual(
    [2, 1].flatMap((node) => believed(endpoints, node, "theirs", 1)),
    [false, true],
  );
  endpoints.introduce(1, 2, { term: 5n, leaderId: 2 });
  assert.equal(endpoints.pick("leader", undefined, 1), 1, "terms of another cluster are none of ours");
  assert.ok(endpoints.isForeign(0));
  const four = ofOurs(4);
  const [one, two, three] = [0, 1, 2].flatMap((node) => believed(four, node, "theirs", 1));
  assert.deepEqual([one, two, three], [false, false, true], "half is not most");
  const discovering = ofOurs(2);
  discovering.add(3);
  assert.deepEqual(
    [2, 0].flatMap((node) => believed(discovering, node, "theirs", 1)),
    [false, false],
  );
});
