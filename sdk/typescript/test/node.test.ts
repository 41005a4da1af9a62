/** What needs Node: certificates, tokens in files, the environment; users and members with them. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, op } from "../src/index.js";
import { connect, fromEnv, tokenFile } from "../src/node/index.js";
import { TestCluster, TestClusterError } from "../src/node/testing.js";
import { failure, nodeProgram, startCluster, UnixProxy, until } from "./support.js";

const ROOT = "0123456789abcdef0123456789abcdef0123456789abcdef";
let home: string;
before(async () => {
  home = await mkdtemp(join(tmpdir(), "quorate-node-test-"));
});
after(() => rm(home, { recursive: true }));

/** Writes a file as programs should that others read. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

test("users, roles and tokens; a token in a file is read again when it changes", async () => {
  await writeFile(join(home, "root"), `${ROOT}\n`, { mode: 0o600 });
  const cluster = await startCluster({
    flags: ["--auth", "required", "--root-token-file", join(home, "root")],
  });
  const root = cluster.client({ token: ROOT });
  try {
    assert.equal((await failure(cluster.client().get("a"))).code, "unauthenticated");
    await root.access.setRole("app", [{ permission: "read", prefix: "app/" }]);
    await root.access.setUser("ann", ["app"]);
    assert.deepEqual(
      [(await root.access.role("app"))?.grants.length, (await root.access.user("ann"))?.roles],
      [1, ["app"]],
    );
    const first = await root.access.createToken("ann", { note: "first" });
    const file = join(home, "token");
    await writeFile(file, first.token);
    const ann = connect({ endpoints: cluster.endpoints, tokenFile: file });
    assert.equal((await ann.access.whoAmI()).user, "ann");
    const refused = await failure(ann.put("app/a", 1));
    assert.deepEqual([refused.code, refused.status, refused.retry], ["permission_denied", 403, "never"]);
    const second = await root.access.createToken("ann");
    await replace(file, second.token);
    await root.access.removeToken(first.id);
    assert.equal(await ann.get("app/a"), undefined, "the refused token is exchanged for the one in the file");
    assert.deepEqual(
      (await root.access.tokens().all()).map(({ id }) => id),
      [second.id],
    );
    assert.equal((await failure(root.access.removeRole("app"))).code, "in_use");
    await root.access.removeUser("ann");
    await root.access.removeRole("app");
    assert.deepEqual([await root.access.users().all(), await root.access.roles().all()], [[], []]);
  } finally {
    await root.close();
    await cluster.stop();
  }
});

test("a token file that is broken is refused at first, and later changes nothing", async () => {
  const file = join(home, "broken");
  await writeFile(file, "two words");
  assert.throws(() => tokenFile(file), { code: "invalid_argument" });
  await writeFile(file, "one\n");
  const source = tokenFile(file);
  assert.equal(source(), "one");
  await replace(file, "");
  assert.equal(source("one"), "one");
  await replace(file, "other");
  assert.equal(source("one"), "other");
});

test("certificates: a CA of one's own, and who shows one is who it says", async () => {
  const pki = join(home, "pki");
  const make = (...args: string[]) => execFileSync(nodeProgram(), ["pki", ...args], { stdio: "pipe" });
  make("init", pki);
  make("node", pki, "--id", "1", "--host", "localhost,127.0.0.1");
  make("client", pki, "--name", "root", "--root");
  make("init", join(home, "strangers"));
  const flags = [
    "--tls-cert",
    join(pki, "node-1.crt"),
    "--tls-key",
    join(pki, "node-1.key"),
    "--tls-client-ca",
    join(pki, "ca.crt"),
    "--auth",
    "required",
    "--root-token-file",
    join(home, "root"),
  ];
  await writeFile(join(home, "root"), ROOT, { mode: 0o600 });
  const cluster = await startCluster({ flags, tls: true });
  const [certFile, keyFile] = ["client-root.crt", "client-root.key"].map((name) => join(pki, name));
  const client = connect({ endpoints: cluster.endpoints, caFile: join(pki, "ca.crt"), certFile, keyFile });
  try {
    await client.put("secret", { n: 1 });
    assert.deepEqual((await client.get("secret"))?.value, { n: 1 });
    assert.equal(await client.exists("nothing"), false);
    const watch = await client.watch({ key: "secret" });
    await client.put("secret", { n: 2 });
    assert.equal((await watch.next()).value?.type, "put");
    watch.close();
    const byToken = connect({ endpoints: cluster.endpoints, caFile: join(pki, "ca.crt"), token: ROOT });
    assert.equal((await byToken.get("secret"))?.version, 2);
    const stranger = connect({
      endpoints: cluster.endpoints,
      caFile: join(home, "strangers", "ca.crt"),
      timeoutMs: 2_000,
    });
    const refused = await failure(stranger.put("secret", 3));
    assert.deepEqual([refused.code, refused.applied], ["timeout", "no"]);
    assert.match(refused.message, /no secure connection/);
    assert.throws(() => connect({ caFile: join(pki, "ca.crt"), certFile }), { code: "invalid_argument" });
  } finally {
    await client.close();
    await cluster.stop();
  }
});

test("a node is reached by its Unix socket, alone and beside others", async () => {
  await using cluster = await startCluster({ nodes: 3 });
  await using proxy = await UnixProxy.start(cluster.endpoints[0] ?? "");
  await using client = connect({ endpoints: proxy.endpoint });
  await using watch = await client.watch({ prefix: "by/" });
  const long = "x".repeat(200_000);
  await client.put("by/socket", long);
  assert.equal((await client.get("by/socket"))?.value, long);
  assert.equal((await watch.next()).value?.key, "by/socket");
  assert.ok(await client.exists("by/socket"));
  // The socket says that we are on the same machine, where the addresses of the others are ours, too.
  await until("the members are found", async () => {
    await client.put("k", 1);
    return client.knownEndpoints.length === 3;
  });
  await cluster.kill(0);
  await client.put("by/others", 1);
  assert.equal((await watch.next()).value?.key, "by/others");
  await cluster.restart(0);
  const [status] = await client.cluster.statusOfAll();
  assert.deepEqual([status?.address, status?.says?.nodeId], [proxy.endpoint, 1]);
  assert.equal(client.knownEndpoints[0], proxy.endpoint);
  await using both = connect({ endpoints: ["unix:///no/such/socket", cluster.endpoints[1] ?? ""] });
  assert.equal((await both.put("both", 1)).version, 1);
  const away = await failure(connect({ endpoints: "unix:/no/such/socket", timeoutMs: 300 }).put("k", 1));
  assert.deepEqual([away.code, away.applied], ["timeout", "no"]);
  assert.throws(() => new Client(proxy.endpoint), /quorate\/node/);
});

test("the socket of a node", async () => {
  const dir = await mkdtemp(join(tmpdir(), "q"));
  try {
    await using cluster = await startCluster({ flags: ["--client-socket", join(dir, "clients")] });
    await using client = connect({ endpoints: `unix://${join(dir, "clients")}` });
    await using watch = await client.watch({ prefix: "by/" });
    const done = await client.stream([op.put("by/socket", 1)]).next();
    assert.equal(done.value?.error, undefined);
    assert.equal((await watch.next()).value?.key, "by/socket");
    assert.notDeepEqual(client.endpoints, cluster.endpoints);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("the environment names the nodes", async () => {
  const cluster = await startCluster();
  const before = { ...process.env };
  try {
    process.env["QUORATE_ENDPOINTS"] = cluster.endpoints.join(",");
    const client = fromEnv();
    await client.put("env", 1);
    assert.deepEqual(client.endpoints, cluster.endpoints);
    assert.deepEqual(fromEnv({ endpoints: "a:1" }).endpoints, ["a:1"]);
    assert.deepEqual(fromEnv({ endpoints: undefined }).endpoints, cluster.endpoints);
    process.env["QUORATE_ENDPOINTS"] = "";
    assert.throws(() => fromEnv(), { code: "invalid_argument", message: /no endpoint is given/ });
    process.env["QUORATE_ENDPOINTS"] = cluster.endpoints.join(",");
    for (const make of [connect, fromEnv]) {
      const hint = /options are an object, such as \{ endpoints: "a:1" \}, and this is "a:1"/;
      assert.throws(() => make("a:1" as never), { code: "invalid_argument", message: hint });
      assert.throws(() => make({ endpoint: "a:1" } as never), { message: /no option `endpoint` here/ });
    }
    process.env["QUORATE_TOKEN_FILE"] = "/no/such/token";
    assert.throws(() => fromEnv(), /no\/such\/token/);
    assert.equal(
      await fromEnv({ token: "mine" }).get("nothing"),
      undefined,
      "the option goes before the environment",
    );
    process.env["QUORATE_CERT"] = "x";
    assert.throws(() => fromEnv(), /QUORATE_KEY/);
  } finally {
    process.env = before;
    await cluster.stop();
  }
});

test("three nodes: status, members, a leader that hands over, a node that dies and comes back", async () => {
  await using cluster = await startCluster({ nodes: 3 });
  await using client = cluster.client();
  const all = await client.cluster.waitReady({ timeoutMs: 20_000 });
  assert.ok(all.every((node) => node.says?.ready));
  const { members, leaderId } = await client.cluster.members();
  assert.deepEqual(
    [members.length, members.filter(({ leader }) => leader).map(({ id }) => id)],
    [3, [leaderId]],
  );
  const plan = await client.cluster.demoteMember(members.find(({ leader }) => !leader)?.id ?? 0, {
    dryRun: true,
    force: true,
  });
  assert.equal(plan.dryRun, true);
  const to = members.find(({ leader }) => !leader)?.id;
  assert.equal((await client.cluster.transferLeader(to)).leaderId, to);
  await cluster.kill((to ?? 1) - 1);
  await client.put("after", 1);
  await cluster.restart((to ?? 1) - 1);
  await until("all are ready", async () =>
    (await client.cluster.statusOfAll()).every((node) => node.says?.ready),
  );
  assert.equal((await client.cluster.status()).members.length, 3);
  const [first = ""] = cluster.endpoints;
  await using one = new Client({ endpoints: [first, "127.0.0.1:9"], discoverMembers: false });
  const overview = (await one.cluster.overview()).map(({ id, address, says, error }) => [
    id,
    address,
    says?.nodeId,
    error?.code,
  ]);
  const known = cluster.endpoints.map((address, at) => [at + 1, address, at + 1, undefined]);
  assert.deepEqual(overview, [...known, [undefined, "127.0.0.1:9", undefined, "timeout"]]);
  assert.ok((await client.cluster.metricsOfAll()).every((node) => node.says?.includes("# EOF")));
  assert.ok((await client.cluster.limits()).keyBytes > 0 && (await client.cluster.version()).version !== "");
  assert.equal((await client.cluster.digest()).digest.length > 0, true);
  assert.deepEqual((await client.cluster.faults()).kept, []);
  const { resources } = await client.cluster.callers();
  assert.ok(resources.some(({ resource, taken }) => resource === "connections" && taken > 0));
});

test("a program that is none is told", async () => {
  await assert.rejects(TestCluster.start({ program: "/no/such/program" }), TestClusterError);
});
