import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { keyPath, LastingId, namePath } from "../src/call.js";
import { isReachable } from "../src/caller.js";
import {
  Client,
  isQuorateError,
  OutcomeUnknownError,
  ProtocolError,
  RejectedError,
  UnavailableError,
} from "../src/index.js";
import { tlsFetch } from "../src/node/index.js";
import { othersTls, parseEndpoints, told } from "../src/transport.js";
import { answer, broken, fake, problem } from "./fake.js";

const WRITTEN = { key: "k", revision: "5", index: 9, cas: "5", create_revision: "5", version: 1 };

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => assert.fail("it should have failed"),
    (error: unknown) => error,
  );
}

test("each POST says that it is JSON, without which a node takes none of a web page", async () => {
  const { client, sent } = fake(() => answer({ session: "9" }));
  // Their answers are no matter.
  await Promise.allSettled([
    client.sessionById("9").renew(),
    client.cluster.repairMember(2),
    client.cluster.promoteMember(2),
    client.cluster.transferLeader(),
    client.latch("l").countDown(),
  ]);
  const posts = sent.filter(({ method }) => method === "POST");
  assert.ok(posts.length >= 5, `${posts.length}`);
  const bare = posts.filter(({ headers }) => headers.get("content-type") !== "application/json");
  assert.equal(bare.map(({ path }) => path).join(" "), "");
});

test("a write is sent again elsewhere under the same request id after its answer was lost", async () => {
  const { client, sent } = fake((_, number) =>
    number === 1 ? broken("ECONNRESET") : answer({ ...WRITTEN, replayed: true }),
  );
  const result = await client.put("k", { n: 1 });
  assert.equal(result.replayed, true);
  assert.equal(sent.length, 2);
  assert.notEqual(sent[0]?.host, sent[1]?.host);
  const ids = sent.map(({ headers }) => headers.get("idempotency-key"));
  assert.match(ids[0] ?? "", /^[0-9a-z]{20}$/);
  assert.equal(ids[0], ids[1]);
  assert.deepEqual(sent[1]?.body, { op: "upsert", key: "k", value: { n: 1 } });
});

test("a write that nobody answers may have been applied, and says under which id to ask", async () => {
  const { client } = fake(() => broken("ECONNRESET"), { timeoutMs: 60 });
  const error = await failure(client.put("k", 1, { requestId: "mine" }));
  assert.ok(error instanceof OutcomeUnknownError, String(error));
  const { code, applied, retry, requestId } = error;
  assert.deepEqual(
    { code, applied, retry, requestId },
    { code: "timeout", applied: "unknown", retry: "same_request_id", requestId: "mine" },
  );
});

test("a write that reached no node was not applied", async () => {
  const { client } = fake(() => broken("ECONNREFUSED"), { timeoutMs: 60 });
  const error = await failure(client.put("k", 1));
  assert.ok(error instanceof UnavailableError, String(error));
  assert.deepEqual([error.applied, error.isRetryable], ["no", true]);
  assert.match(error.message, /cannot connect: ECONNREFUSED/);
});

test("after a lost answer a refusal that did not go through the log settles nothing", async () => {
  const { client } = fake((_, number) =>
    number === 1 ? broken("ECONNRESET") : problem("permission_denied", 403),
  );
  const error = await failure(client.put("k", 1));
  assert.ok(error instanceof OutcomeUnknownError, String(error));
  assert.deepEqual([error.code, error.applied, error.attempts], ["permission_denied", "unknown", 2]);
});

test("a refusal shows the entry as it is, whatever else a newer node says", async () => {
  const current = {
    key: "k",
    value: { n: 2 },
    content_type: "json",
    cas: "7",
    create_revision: "1",
    mod_revision: "7",
    version: 2,
  };
  const { client, sent } = fake(() =>
    problem("brand_new_code", 412, { current, index: 4, more: { to_come: 1 } }),
  );
  const error = await failure(client.put("k", 1, { cas: "6" }));
  assert.ok(error instanceof RejectedError);
  assert.ok(isQuorateError(error, "brand_new_code") && !isQuorateError(error, "cas_mismatch"));
  assert.deepEqual(
    [error.status, error.applied, error.current?.value, error.current?.cas],
    [412, "no", { n: 2 }, "7"],
  );
  assert.deepEqual(sent[0]?.body, { op: "replace", key: "k", value: 1, cas: "6" });
});

test("what makes no sense is not sent", async () => {
  const { client, sent } = fake(() => answer(WRITTEN));
  const calls = [
    () => client.put("", 1),
    // @ts-expect-error: it is no value
    () => client.put("k", undefined),
    () => client.put("k", 1, { requestId: "a b" }),
    () => client.put("k", 1, { ifAbsent: true, cas: "1" }),
    () => client.bulk([]),
    () => client.lock("..").get(),
    () => client.get("\ud800"),
  ];
  for (const make of calls) {
    const error = await failure((async () => make())());
    assert.ok(isQuorateError(error, "invalid_argument"), String(error));
  }
  assert.equal(sent.length, 0);
});

test("a node that is silent is left for another within the deadline", async () => {
  const { client, sent } = fake(
    (_, number) => (number === 1 ? undefined : answer({ key: "k", value: 1, cas: "1" })),
    {
      attemptTimeoutMs: 20,
    },
  );
  assert.equal((await client.get("k"))?.value, 1);
  assert.equal(sent.length, 2);
});

test("a signal gives a call up, with its own reason", async () => {
  const { client } = fake(() => undefined);
  const stop = new AbortController();
  const pending = failure(client.get("k", { signal: stop.signal }));
  stop.abort(new Error("enough"));
  assert.match(String(await pending), /enough/);
  assert.match(String(await failure(client.get("k", { signal: stop.signal }))), /enough/);
});

test("a closed client gives its calls up", async () => {
  const { client } = fake(() => undefined);
  const pending = failure(client.get("k"));
  await client.close();
  assert.match(String(await pending), /closed/);
});

test("what is not Quorate's is told so", async () => {
  const { client } = fake(() => new Response("<html>", { status: 404 }));
  const error = await failure(client.get("k"));
  assert.ok(error instanceof ProtocolError, String(error));
  const { client: other } = fake(() => new Response("no JSON", { status: 200 }));
  assert.deepEqual(
    [error.applied, ((await failure(other.put("k", 1))) as ProtocolError).applied],
    ["no", "unknown"],
  );
});

test("a token that was exchanged is shown once more, and only once", async () => {
  const tokens = ["old", "new"];
  const token = (refused?: string) => (refused === undefined ? tokens[0] : tokens.splice(0, 1) && tokens[0]);
  const { client, sent } = fake(
    ({ headers }) =>
      headers.get("authorization") === "Bearer new" ? answer({ key: "k" }) : problem("unauthenticated", 401),
    { token },
  );
  assert.equal((await client.get("k"))?.key, "k");
  assert.deepEqual(
    sent.map(({ headers }) => headers.get("authorization")),
    ["Bearer old", "Bearer new"],
  );
  const { client: refused, sent: asked } = fake(() => problem("unauthenticated", 401), { token: "t" });
  assert.ok(isQuorateError(await failure(refused.get("k")), "unauthenticated"));
  assert.equal(asked.length, 1);
});

test("leadership is not handed over twice", async () => {
  const { client, sent } = fake(() => broken("ECONNRESET"));
  assert.ok((await failure(client.cluster.transferLeader())) instanceof OutcomeUnknownError);
  assert.equal(sent.length, 1);
});

test("members are discovered, and asked once the node that was given is gone", async () => {
  const members = [1, 2].map((id) => ({ id, client_addr: `n${id}:1`, peer_addr: "p", voter: true }));
  const status = (id: number) => ({
    node_id: id,
    cluster_id: "c",
    term: "1",
    applied_index: 1,
    members,
    leader_id: 1,
  });
  let isGone = false;
  const { client } = fake(
    ({ host, path }) => {
      if (host === "n1:1" && isGone) {
        return broken("ECONNREFUSED");
      }
      return path === "/v1/cluster/status"
        ? answer(status(host === "n1:1" ? 1 : 2))
        : answer({ key: "k", value: host });
    },
    { endpoints: "n1:1", discoverMembers: true },
  );
  const started = performance.now();
  while (client.knownEndpoints.length < 2) {
    assert.equal((await client.get("k"))?.value, "n1:1");
    assert.ok(performance.now() - started < 5_000, "the member is discovered");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  isGone = true;
  assert.equal((await client.get("k"))?.value, "n2:1");
  assert.deepEqual([client.endpoints, client.knownEndpoints], [["n1:1"], ["n1:1", "n2:1"]]);
});

test("endpoints are split, trimmed and deduplicated", () => {
  for (const prefersTls of [false, true]) {
    const parsed = parseEndpoints(" a:1, http://b:2/ ,,a:1,https://c:3", prefersTls);
    assert.deepEqual(
      parsed.map(({ address, isTls }) => [address, isTls]),
      [
        ["a:1", prefersTls],
        ["b:2", false],
        ["c:3", true],
      ],
    );
  }
  const [behindProxy] = parseEndpoints(["https://example.org/quorate/"], false);
  assert.deepEqual(
    [behindProxy?.address, behindProxy?.base],
    ["example.org:443", "https://example.org/quorate"],
  );
  for (const bad of [[], [""], ["a:1", " "], [undefined as unknown as string]]) {
    assert.throws(() => new Client(bad), { code: "invalid_argument" }, JSON.stringify(bad));
  }
  for (const bad of ["", " , ", "localhost", "a:1,b", "http://user@a:1", "a b:1", "a:1?x"]) {
    assert.throws(() => new Client(bad), { code: "invalid_argument" }, bad);
  }
});

test("a Unix socket is an endpoint in clear, which says nothing of the way to others", () => {
  const [socket, other, ...more] = parseEndpoints("unix:/run/q r.sock,unix:///run/q r.sock,a:1", true);
  assert.deepEqual(more, []);
  assert.deepEqual(socket, {
    address: "unix:/run/q r.sock",
    base: "http+unix://%2Frun%2Fq%20r.sock",
    isTls: false,
    isSocket: true,
  });
  assert.ok(socket && other?.isTls);
  assert.ok(othersTls([socket, other], false) && othersTls([socket], true) && !othersTls([socket], false));
  assert.deepEqual(
    parseEndpoints("unix:7100", false).map(({ address, isSocket }) => [address, isSocket]),
    [["unix:7100", false]],
  );
  for (const bad of ["unix:", "unix:a.sock", "unix://a/b", "unix:/a/", "unix:/"]) {
    assert.throws(() => parseEndpoints(bad, false), { code: "invalid_argument" }, bad);
  }
  assert.throws(() => new Client("unix:/run/quorate.sock"), { code: "invalid_argument" });
});

test("a Unix socket is asked as localhost by plain HTTP, also beside certificates", async () => {
  const home = await mkdtemp(join(tmpdir(), "q"));
  const hosts: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    hosts.push(request.headers.host);
    response.end(JSON.stringify({ key: "k", revision: "7", index: 1, cas: "7", version: 1 }));
  });
  try {
    server.listen(join(home, "node.sock"));
    await once(server, "listening");
    await using client = new Client({
      endpoints: `unix:${join(home, "node.sock")}`,
      discoverMembers: false,
      fetch: tlsFetch({}),
    });
    assert.equal((await client.put("k", 1)).revision, "7");
    assert.deepEqual(hosts, ["localhost"]);
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(home, { recursive: true });
  }
});

test("keys are escaped but for their slashes, and dots do not lead elsewhere", () => {
  assert.equal(keyPath("orders/o42"), "/v1/kv/orders/o42");
  assert.equal(keyPath("a b?#%ä"), "/v1/kv/a%20b%3F%23%25%C3%A4");
  for (const key of ["..", "a/../b", "a//b", "/a", "a/", "./a", "a\nb", "a\\b", "a\0", "a\udcff"]) {
    assert.equal(keyPath(key), undefined, JSON.stringify(key));
  }
  assert.equal(namePath("/v1/locks/", "a/b c", "/acquire"), "/v1/locks/a%2Fb%20c/acquire");
});

test("a key that proxies clean is asked for in a body, or in a query", async () => {
  const { client, sent } = fake(({ path }) =>
    path.startsWith("/v1/kv?")
      ? answer({ entries: [{ key: "a//b", value: 1, cas: "1" }] })
      : answer({ key: "a//b", value: 1, cas: "1" }),
  );
  assert.equal((await client.get("a//b"))?.value, 1);
  assert.equal((await client.get("a//b", { revision: "7" }))?.value, 1);
  assert.equal(await client.exists("a//b"), true);
  assert.deepEqual(
    sent.map(({ method, path }) => [method, path]),
    [
      ["POST", "/v1/ops"],
      ["GET", "/v1/kv?start=a%2F%2Fb&end=a%2F%2Fb%00&revision=7"],
      ["GET", "/v1/kv?start=a%2F%2Fb&end=a%2F%2Fb%00&keys_only=true"],
    ],
  );
  assert.deepEqual(sent[0]?.body, { op: "get", key: "a//b" });
  assert.equal(sent[0]?.headers.get("idempotency-key"), null);
});

test("an answer about another key is no answer", async () => {
  const { client } = fake(() => answer({ ...WRITTEN, key: "a/b" }));
  for (const [call, applied] of [
    [client.get("a/c"), "no"],
    [client.waitForChange("a/c"), "no"],
    [client.put("a//b", 1), "unknown"],
    [client.remove("a/c", { requestId: "mine" }), "unknown"],
  ] as const) {
    const error = await failure(call);
    assert.ok(error instanceof ProtocolError, String(error));
    assert.deepEqual([error.applied, error.about], [applied, "a/b"]);
    assert.match(error.message, /the answer is about `a\/b`, not `a\/.*`: a proxy may have changed the path/);
  }
});

test("a key that was put together of bytes is the same as its character", async () => {
  const { client } = fake(() => answer({ ...WRITTEN, key: "e/\u00e9" }));
  assert.equal((await client.put("e/\udcc3\udca9", 1)).key, "e/\u00e9");
  assert.equal((await client.get("e/\udcc3\udca9"))?.key, "e/\u00e9");
  const error = await failure(client.get("e/\udcc3"));
  assert.ok(error instanceof ProtocolError, String(error));
});

test("what is asked for long has another id once nodes may have forgotten the first", (t) => {
  const wall = Date.now;
  let slept = 0;
  t.mock.method(Date, "now", () => wall() + slept);
  const id = new LastingId();
  const first = id.current;
  assert.equal(id.current, first);
  slept = 20 * 60_000;
  const second = id.current;
  assert.notEqual(second, first);
  assert.equal(id.current, second, "it is remembered from now on");
});

test("a node is told a little less time than it has", () => {
  assert.deepEqual([told(10_000), told(100), told(0.5)], [9_750, 90, 1]);
});

test("an address of the node's own machine is ours only where we are on it", () => {
  for (const [address, endpoint, reachable] of [
    ["10.0.0.4:7100", "db.example.org:7100", true],
    ["127.0.0.1:7104", "127.0.0.1:7101", true],
    ["[::1]:7104", "localhost:7101", true],
    ["127.0.0.1:7100", "db.example.org:7100", false],
    ["localhost:7100", "10.0.0.1:7100", false],
    ["0.0.0.0:7100", "127.0.0.1:7101", false],
    ["", "127.0.0.1:7101", false],
    ["127.0.0.1:7104", "unix:/run/quorate.sock", true],
    ["0.0.0.0:7104", "unix:/run/quorate.sock", false],
  ] as const) {
    assert.equal(isReachable(address, [endpoint]), reachable, `${address} from ${endpoint}`);
  }
});
