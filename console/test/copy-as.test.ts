/**
 * What the drawer `Copy as` copies does what it says, in each language whose tools are here: curl, the command line (QUORATE_CLI, or beside
 * the node's program), Python with what `sdk/python` needs. TypeScript is checked by its types.
 */

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import {
  createToken,
  listRoles,
  listTokens,
  listUsers,
  readUser,
  removeAccess,
  setRole,
  setUser,
} from "../src/api/access.js";
import { readCallers, readMembers, readSelf, readStatus } from "../src/api/cluster.js";
import { copyAs, type Language } from "../src/api/copy-as.js";
import { readAudit, readChange, readEntry, removeEntry, touchEntry, writeEntry } from "../src/api/entries.js";
import { JsonText } from "../src/api/json-text.js";
import { type Condition, countKeys, findEntries, listKeys } from "../src/api/keys.js";
import {
  listElections,
  listLocks,
  readBarrier,
  readElection,
  readLatch,
  readLock,
} from "../src/api/locks.js";
import { countMatching, deleteMatching, listCollections, updateMatching } from "../src/api/matching.js";
import type { Request } from "../src/api/request.js";
import { endSession, listSessions, readSession } from "../src/api/sessions.js";
import {
  cancelTask,
  completeTask,
  listQueues,
  listTasks,
  readQueue,
  readTask,
  requeueOldest,
  requeueTask,
  scheduleTask,
} from "../src/api/tasks.js";
import { watchKeys } from "../src/api/watch.js";
import { Cluster, coordinate } from "./support.js";

const CONSOLE = fileURLToPath(new URL("..", import.meta.url));
const CLI = process.env["QUORATE_CLI"] ?? join(dirname(process.env["QUORATE_NODE"] ?? ""), "quorate");
const KEY = "it's \u202ex";
const VALUE = '{"a":null,"b":12345678901234567890,"c":true,"d":"\'\\"\\\\"}';
const WHERE: readonly Condition[] = [
  { field: "status", op: "eq", value: new JsonText('"it\'s paid"') },
  { field: "n", op: "nexists" },
];

const ORDERS = { prefix: "orders/", where: WHERE };

let cluster: Cluster;
let cas = "";
/** A session that holds something of each kind. */
let ann = "";

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
  cas = (await cluster.client.put("orders/o1", { status: "it's paid" })).cas ?? "";
  await cluster.client.tasks("mails").schedule({ to: "ann" }, { id: "welcome-7" });
  await cluster.client.collection("users").put({});
  await cluster.client.access.setRole("reads", [{ permission: "read", prefix: "orders/" }]);
  await cluster.client.access.setUser("shop", ["reads"]);
  await cluster.client.access.createToken("shop", { note: "the scales" });
  ann = await coordinate(cluster.client);
});

/** Requests that read, each with something that the answer has in all forms. */
const reads = (): readonly (readonly [Request<unknown>, RegExp])[] => [
  [readStatus(), /leader/],
  [readMembers(), /voter/],
  [readCallers(), /connections/],
  [readSelf(), /admin/],
  [readEntry("orders/o1"), /it's paid/],
  [readEntry("orders/o1", cas), /it's paid/],
  [readAudit("orders/o1"), /upsert/],
  [readChange("orders/o1", cas), /upsert/],
  [countKeys("orders/"), /1/],
  [listKeys({ prefix: "orders/", limit: 5 }), /orders\/o1/],
  [listKeys({ prefix: "orders/", from: "orders/a", limit: 5 }), /orders\/o1/],
  [findEntries({ prefix: "orders/", where: WHERE, limit: 5 }), /orders\/o1/],
  [
    findEntries({ prefix: "", where: [{ any: WHERE }], orderBy: ["-n", "status"], keysOnly: true, limit: 5 }),
    /orders\/o1/,
  ],
  [countMatching({ prefix: "orders/", where: WHERE }), /1/],
  // The order, and the service that is registered.
  [countMatching({ prefix: "", where: [{ any: WHERE }] }), /2/],
  [updateMatching(ORDERS, new JsonText('{"n":null}'), { dryRun: true, limit: 5 }), /1/],
  [deleteMatching(ORDERS, { dryRun: true, limit: 5 }), /1/],
  [listCollections(5), /users/],
  [listUsers(5), /shop/],
  [listRoles(5), /orders\//],
  [listTokens(5), /the scales/],
  [readUser("shop"), /reads/],
  [listQueues(5), /mails/],
  [readQueue("mails"), /scheduled/],
  [listTasks({ queue: "mails", state: "scheduled", limit: 5 }), /welcome-7/],
  [readTask("mails", "welcome-7"), /ann/],
  [listSessions(), /worker-7/],
  [readSession(ann), /services\/deploy-1/],
  [listLocks(), /import\/shop/],
  [readLock("import/shop"), /worker-7/],
  [listElections(), /primary/],
  [readElection("primary"), /10\.0\.0\.7/],
  [readBarrier("start"), /waiting/],
  [readLatch("start"), /5/],
];

/** These go on until they are ended. */
const watches = () => [
  watchKeys({ prefix: "orders/", where: WHERE, events: "put", from: cas }),
  watchKeys({ key: "orders/o1", where: [], from: cas }),
];

/** What schedules a task, and what is done to one. */
const schedules = (queue: string): readonly Request<unknown>[] =>
  (
    [
      { kind: "now" },
      { kind: "delay", delayMs: 3_600_000 },
      { kind: "at", executeAt: "2036-12-24T18:00:00.000Z" },
      { kind: "every", everyMs: 60_000 },
      { kind: "cron", cron: "0 3 * * *", zone: "Europe/Berlin" },
    ] as const
  ).map((timing) =>
    scheduleTask({
      queue,
      payload: new JsonText(VALUE),
      id: `by ${timing.kind}`,
      timing,
      maxAttempts: 3,
    }),
  );

function code(request: Request<unknown>, language: Language): string {
  const code = copyAs(request, language, { origin: cluster.endpoints[0] ?? "", hasToken: false });
  if (code === undefined) {
    throw new Error(`${request.title}: nothing for ${language}`);
  }
  return code;
}

const ENVIRONMENT = {
  ...process.env,
  PATH: `${dirname(CLI)}:${process.env["PATH"]}`,
  PYTHONPATH: join(CONSOLE, "../sdk/python/src"),
  PYTHONUNBUFFERED: "1",
};

function run(program: string, text: string): string {
  return execFileSync(program, ["-c", text], {
    encoding: "utf8",
    env: ENVIRONMENT,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Runs it until it has said this. */
async function runUntil(program: string, text: string, answer: RegExp): Promise<void> {
  // In a group of its own: a shell has children.
  const child = spawn(program, ["-c", text], {
    env: ENVIRONMENT,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let said = "";
  try {
    await new Promise<void>((resolve, reject) => {
      const take = (piece: Buffer) => {
        said += String(piece);
        if (answer.test(said)) {
          resolve();
        }
      };
      child.stdout.on("data", take);
      child.stderr.on("data", take);
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`it ended: ${said}`)));
    });
  } finally {
    process.kill(-(child.pid ?? 0), "SIGKILL");
  }
}

function hasPython(): boolean {
  try {
    run("python3", "import quorate");
    return true;
  } catch {
    // Its one dependency is not installed here.
    return false;
  }
}

const LANGUAGES: readonly (readonly [Language, string, boolean])[] = [
  ["curl", "bash", true],
  ["cli", "bash", existsSync(CLI)],
  ["python", "python3", hasPython()],
];

for (const [language, program, isHere] of LANGUAGES) {
  test.runIf(isHere)(`${language} does what it says`, async () => {
    for (const [request, answer] of reads()) {
      expect(run(program, code(request, language)), request.title).toMatch(answer);
    }
    for (const request of watches()) {
      await runUntil(program, code(request, language), /it's paid/);
    }
    const { session } = await cluster.client.createSession();
    run(program, code(endSession(session), language));
    expect(await cluster.client.sessionById(session).get()).toBeUndefined();
    run(program, code(writeEntry(KEY, new JsonText(VALUE), { cas: undefined }), language));
    const written = await cluster.client.get(KEY);
    expect(written?.value).toEqual({ a: null, b: 12345678901234567890n, c: true, d: "'\"\\" });
    const next = writeEntry(KEY, new JsonText("[1]"), { cas: written?.cas ?? "", ttlMs: 60_000 });
    run(program, code(next, language));
    const replaced = await cluster.client.get(KEY);
    expect([replaced?.value, (replaced?.ttlMs ?? 0) > 30_000]).toEqual([[1], true]);
    run(program, code(touchEntry(KEY, 0), language));
    const touched = await cluster.client.get(KEY);
    expect([touched?.value, touched?.ttlMs]).toEqual([[1], undefined]);
    run(program, code(removeEntry(KEY, touched?.cas ?? ""), language));
    expect(await cluster.client.get(KEY)).toBeUndefined();
    await changesAll((request) => run(program, code(request, language)));
    await changesAccess((request) => run(program, code(request, language)));
    await operatesOnTasks(`it's ${language}`, (request) => run(program, code(request, language)));
  });
}

/** Updates all that match, and deletes them. */
async function changesAll(run: (request: Request<unknown>) => void): Promise<void> {
  const where = [{ any: WHERE }];
  for (const n of [1, 2, 3]) {
    await cluster.client.put(`all/a${n}`, { status: n === 3 ? "new" : "it's paid", n });
  }
  const part = { dryRun: false, limit: 500 };
  run(updateMatching({ prefix: "all/", where }, new JsonText(VALUE), part));
  expect((await cluster.client.get("all/a2"))?.value).toMatchObject({ b: 12345678901234567890n, n: 2 });
  expect((await cluster.client.get("all/a3"))?.value).toEqual({ status: "new", n: 3 });
  run(deleteMatching({ prefix: "all/", where }, part));
  expect((await cluster.client.count({ prefix: "all/" })).count).toBe(1);
}

/** Makes a role, a user that has it and a token, and deletes them. */
async function changesAccess(run: (request: Request<unknown>) => string): Promise<void> {
  const { access } = cluster.client;
  const grants = [
    { permission: "write", prefix: "it's/" },
    { permission: "lock", prefix: "" },
  ] as const;
  run(setRole("it's", grants));
  expect((await access.role("it's"))?.grants).toEqual(expect.arrayContaining([...grants]));
  run(setUser("o'hara", ["it's", "reads"]));
  expect((await access.user("o'hara"))?.roles.toSorted()).toEqual(["it's", "reads"]);
  expect(run(createToken({ user: "o'hara", note: "it's", expiresInMs: 60_000 }))).toMatch(/qt_[0-9a-f]{16}_/);
  const [token] = (await access.tokens().all()).filter(({ user }) => user === "o'hara");
  expect([token?.note, token?.expires === undefined]).toEqual(["it's", false]);
  run(removeAccess("token", token?.id ?? ""));
  run(removeAccess("user", "o'hara"));
  run(removeAccess("role", "it's"));
  expect(await access.user("o'hara")).toBeUndefined();
  expect(await access.role("it's")).toBeUndefined();
}

/** Schedules tasks in each way, cancels them, and brings one that died back. */
async function operatesOnTasks(queue: string, run: (request: Request<unknown>) => void): Promise<void> {
  const tasks = cluster.client.tasks(queue);
  for (const request of schedules(queue)) {
    run(request);
  }
  expect((await tasks.get("by now"))?.payload).toEqual({
    a: null,
    b: 12345678901234567890n,
    c: true,
    d: "'\"\\",
  });
  await (await tasks.claim())[0]?.fail({ dead: true });
  run(requeueTask(queue, "by now"));
  expect((await tasks.get("by now"))?.state).toBe("scheduled");
  await (await tasks.claim())[0]?.fail({ dead: true });
  run(requeueOldest(queue, 5));
  const [claimed] = await tasks.claim();
  run(completeTask(queue, "by now", claimed?.token ?? ""));
  expect((await tasks.get("by now"))?.state).toBe("done");
  for (const kind of ["at", "cron", "delay", "every"]) {
    expect((await tasks.get(`by ${kind}`))?.maxAttempts, kind).toBe(3);
    run(cancelTask(queue, `by ${kind}`));
    expect(await tasks.get(`by ${kind}`), kind).toBeUndefined();
  }
}

test("TypeScript has the types of the client", () => {
  const directory = mkdtempSync(join(CONSOLE, "test/copied-"));
  try {
    const writes = [
      writeEntry(KEY, new JsonText(VALUE), { cas: "7", ttlMs: 5 }),
      writeEntry(KEY, new JsonText(VALUE), { cas: "7", keepsTtl: true, ttlMs: 5 }),
      touchEntry(KEY, 5),
      removeEntry(KEY, "7"),
      updateMatching(ORDERS, new JsonText(VALUE), { dryRun: false, limit: 500, cursor: "c0ffee" }),
      deleteMatching(ORDERS, { dryRun: false, limit: 500, cursor: "c0ffee" }),
      setRole("r", [{ permission: "write", prefix: "a/" }]),
      setUser("u", ["r"]),
      createToken({ user: "u", note: "n", expiresInMs: 5 }),
      removeAccess("token", "t"),
      removeAccess("user", "u"),
      removeAccess("role", "r"),
      ...schedules("mails"),
      requeueTask("mails", "a"),
      requeueOldest("mails", 5),
      completeTask("mails", "a", "7"),
      cancelTask("mails", "a"),
      endSession("9"),
      watchKeys({ prefix: "orders/", where: WHERE, part: { index: 0, of: 4 } }),
      ...watches(),
    ];
    for (const [at, request] of [...reads().map(([request]) => request), ...writes].entries()) {
      writeFileSync(join(directory, `request-${at}.ts`), code(request, "typescript"));
    }
    const settings = { extends: "../../tsconfig.json", include: ["*.ts"] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(settings));
    const out = execFileSync(join(CONSOLE, "node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" });
    expect(out).toBe("");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
