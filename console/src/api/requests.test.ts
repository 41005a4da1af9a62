/** Each request sends what it says that it sends, and can be copied in each language. */

import { Client } from "quorate";
import { describe, expect, test } from "vitest";
import {
  createToken,
  listRoles,
  listTokens,
  listUsers,
  readUser,
  removeAccess,
  setRole,
  setUser,
} from "./access.js";
import { changeMember, readCallers, readMembers, readSelf, readStatus, transferLeader } from "./cluster.js";
import { copyAs, LANGUAGES } from "./copy-as.js";
import { readAudit, readChange, readEntry, removeEntry, touchEntry, writeEntry } from "./entries.js";
import { JsonText, parseAnswer } from "./json-text.js";
import { countKeys, findEntries, listKeys, parseCondition, shownCondition, shownWords } from "./keys.js";
import { listElections, listLocks, readBarrier, readElection, readLatch, readLock } from "./locks.js";
import { countMatching, deleteMatching, listCollections, updateMatching } from "./matching.js";
import type { Request } from "./request.js";
import { endSession, listSessions, readSession } from "./sessions.js";
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
} from "./tasks.js";
import { watchKeys } from "./watch.js";

/** Names that are hard to show: what is not seen, what looks like an escape, what is no text. */
const ODD = ["a\u200b", "a\\u200b", "a\\xe2\\x80\\x8b", "a\\xff", "a\udcff", "a\u202e", "a", "a "];

const WHERE = ["total gte 12345678901234567890", "status eq it's paid", "note nexists"].map((line) => {
  const condition = parseCondition(line);
  if (typeof condition === "string") {
    throw new Error(condition);
  }
  return condition;
});

const REQUESTS: readonly Request<unknown>[] = [
  readStatus(),
  readMembers(),
  readCallers(),
  readSelf(),
  transferLeader(2),
  changeMember("promote", 4, true),
  changeMember("demote", 4, false),
  changeMember("remove", 4, true),
  readEntry("orders/o 1/ä?#"),
  readEntry("a/../b", "17"),
  readEntry("a//b"),
  touchEntry("orders/\u202eo1", 2_500),
  touchEntry("a\udcff", 0),
  readChange("orders/o1", "17"),
  readEntry("a\udcff"),
  writeEntry("orders/o1", new JsonText('{"n":12345678901234567890,"x":1.10}'), {
    cas: "7",
    ttlMs: 1500,
    session: "9",
  }),
  writeEntry("orders/\u202eo1", new JsonText("true"), { cas: undefined }),
  writeEntry("bytes", Uint8Array.of(0, 255, 10), { cas: "7", keepsTtl: true }),
  writeEntry("old", new JsonText("1"), { cas: "7", keepsTtl: true, ttlMs: 900, session: "9" }),
  removeEntry("orders/o1", "7"),
  removeEntry("orders/\udcff\u202e", "7"),
  readAudit("orders/o1"),
  readAudit("orders/o1", "c0ffee"),
  listKeys({ prefix: "", limit: 10 }),
  listKeys({ prefix: "orders/", limit: 10 }),
  listKeys({ prefix: "orders/", from: "orders/o1\0", limit: 1000 }),
  countKeys(""),
  countKeys("orders/"),
  findEntries({ prefix: "orders/", where: WHERE, limit: 20 }),
  findEntries({ prefix: "", where: WHERE, limit: 20, cursor: "c0ffee" }),
  findEntries({
    prefix: "",
    where: [{ any: WHERE }],
    orderBy: ["-total", "a\u202eb"],
    keysOnly: true,
    limit: 20,
  }),
  countMatching({ prefix: "", where: [] }),
  countMatching({ prefix: "orders/", where: [{ any: WHERE }] }),
  updateMatching({ prefix: "orders/", where: WHERE }, new JsonText('{"n":12345678901234567890,"x":null}'), {
    dryRun: true,
    limit: 500,
  }),
  updateMatching({ prefix: "", where: [] }, new JsonText('[{"op":"inc","path":"n","value":1}]'), {
    dryRun: false,
    limit: 500,
    cursor: "c0ffee",
  }),
  deleteMatching({ prefix: "orders/", where: [{ any: WHERE }] }, { dryRun: true, limit: 500 }),
  deleteMatching({ prefix: "orders/", where: WHERE }, { dryRun: false, limit: 500, cursor: "c0ffee" }),
  listCollections(20, "c0ffee"),
  listCollections(20),
  listUsers(200),
  listRoles(200, "c0ffee"),
  listTokens(200),
  readUser("shop/ä ?"),
  setUser("shop", ["orders", "it's"]),
  setUser("nothing", []),
  setRole("orders", [
    { permission: "write", prefix: "orders/" },
    { permission: "admin", prefix: "" },
  ]),
  setRole("bytes", [{ permission: "read", prefix: "ll/\udcff" }]),
  removeAccess("user", "shop"),
  removeAccess("role", "orders"),
  removeAccess("token", "0123456789abcdef"),
  createToken({ user: "shop", note: "", expiresInMs: undefined }),
  createToken({ user: "shop", note: "it's \u202eshop", expiresInMs: 1500 }),
  listQueues(100),
  listQueues(100, "c0ffee"),
  readQueue("mails/ä ?"),
  listTasks({ queue: "mails", state: "dead", limit: 50 }),
  listTasks({ queue: "mails", state: "scheduled", limit: 50, cursor: "c0ffee" }),
  readTask("mails", "welcome/7\u202e"),
  requeueTask("mails", "welcome-7"),
  requeueOldest("mails", 100),
  cancelTask("mails", "it's"),
  completeTask("mails", "welcome-7", "18446744073709551615"),
  ...(
    [
      { kind: "now" },
      { kind: "delay", delayMs: 1500 },
      { kind: "at", executeAt: "2026-12-24T18:00:00.000Z" },
      { kind: "every", everyMs: 60_000 },
      { kind: "cron", cron: "0 3 * * *", zone: "Europe/Berlin" },
    ] as const
  ).map((timing) =>
    scheduleTask({
      queue: "mails",
      payload: new JsonText('{"n":12345678901234567890,"none":null}'),
      id: timing.kind === "now" ? "" : "welcome-7",
      timing,
      maxAttempts: timing.kind === "delay" ? 3 : undefined,
    }),
  ),
  listSessions(),
  listSessions("c0ffee"),
  readSession("9"),
  endSession("9"),
  listLocks(),
  listLocks("c0ffee"),
  readLock("a/b ä"),
  listElections(),
  readElection("a/b ä"),
  readBarrier("a/b ä"),
  readLatch("a/b ä"),
  watchKeys({ prefix: "", where: [] }),
  watchKeys({ key: "orders/\u202eo1", where: [], events: "delete" }),
  watchKeys({ prefix: "orders/", where: WHERE, events: "put", part: { index: 1, of: 4 }, from: "17" }),
];

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
}

/** What the client sends for a request. */
async function sentBy(request: Request<unknown>): Promise<Sent> {
  let sent: Sent | undefined;
  const abort = new AbortController();
  const client = new Client({
    endpoints: "http://node:1",
    discoverMembers: false,
    parseJson: parseAnswer,
    fetch: async (url, init) => {
      const body = typeof init.body === "string" ? init.body : undefined;
      sent = { method: init.method ?? "", target: url.slice("http://node:1".length), body };
      const type = request.http.target.startsWith("/v1/watch") ? "text/event-stream" : "application/json";
      return new Response('{"entries":[],"lines":[]}', { headers: { "content-type": type } });
    },
  });
  await request.run(client, abort.signal);
  abort.abort();
  if (sent === undefined) {
    throw new Error("nothing was sent");
  }
  return sent;
}

describe.each(REQUESTS.map((request) => [request.title, request] as const))("%s", (_, request) => {
  test("sends what it says", async () => {
    const { http } = request;
    expect(await sentBy(request)).toEqual({ method: http.method, target: http.target, body: http.body });
  });

  test("can be copied", () => {
    for (const { id } of LANGUAGES) {
      const code = copyAs(request, id, { origin: "http://node:1", hasToken: true });
      expect(code ?? "no command").not.toMatch(/undefined|\u202e|\[object/);
    }
  });
});

test("the titles of requests about different names differ, and are of what can be seen", () => {
  const requests: readonly ((name: string) => Request<unknown>)[] = [
    readEntry,
    (name) => readEntry(name, "7"),
    (name) => writeEntry(name, new JsonText("1"), { cas: undefined }),
    (name) => writeEntry(name, new JsonText("1"), { cas: "7" }),
    (name) => removeEntry(name, "7"),
    readAudit,
    (name) => readChange(name, "7"),
    (name) => touchEntry(name, 0),
    (name) => touchEntry(name, 5),
    (name) => listKeys({ prefix: name, limit: 1 }),
    countKeys,
    (name) => findEntries({ prefix: name, where: [], limit: 1 }),
    (name) => countMatching({ prefix: name, where: [] }),
    (name) => deleteMatching({ prefix: name, where: [] }, { dryRun: true, limit: 1 }),
    (name) => watchKeys({ key: name, where: [] }),
    (name) => watchKeys({ prefix: name, where: [] }),
  ];
  for (const request of requests) {
    const titles = ODD.map((name) => request(name).title);
    expect(new Set(titles).size).toBe(titles.length);
    expect(titles.join("")).toMatch(/^[ -~]*$/);
  }
});

test("a command that changes every entry says so, as the command line wants it", () => {
  const part = { dryRun: false, limit: 5 };
  const all = { prefix: "", where: [] };
  const patch = new JsonText("{}");
  const words = ["delete-where", "", "--everything", "--all", "--limit", "5"];
  expect(deleteMatching(all, part).cli).toEqual(words);
  expect(updateMatching(all, patch, part).cli).toContain("--everything");
  for (const request of [
    deleteMatching(all, { ...part, dryRun: true }),
    deleteMatching({ ...all, prefix: "a/" }, part),
    updateMatching({ ...all, where: WHERE }, patch, part),
  ]) {
    expect(request.cli).not.toContain("--everything");
  }
});

describe("copyAs", () => {
  const around = { origin: "https://node:1", hasToken: true };
  const write = writeEntry("it's", new JsonText('{"ok":true,"none":null,"n":12345678901234567890}'), {
    cas: "7",
  });

  test("quotes for the shell, and never has the token", () => {
    expect(copyAs(write, "curl", around)).toBe(
      `curl -X POST https://node:1/v1/ops -H "Authorization: Bearer $QUORATE_TOKEN" -H 'Content-Type: application/json' ` +
        `-d '{"op":"replace","key":"it'\\''s","value":{"ok":true,"none":null,"n":12345678901234567890},"cas":"7"}'`,
    );
    expect(copyAs(write, "cli", around)).toBe(
      `quorate --endpoints https://node:1 cas 'it'\\''s' 7 '{"ok":true,"none":null,"n":12345678901234567890}'`,
    );
  });

  test("writes values as each language has them", () => {
    expect(copyAs(write, "python", around)).toBe(
      'import os\n\nimport quorate\n\nwith quorate.Client("https://node:1", token=os.environ["QUORATE_TOKEN"]) as client:\n' +
        '    client.put("it\'s", {"ok":True,"none":None,"n":12345678901234567890}, cas="7")',
    );
    expect(copyAs(write, "typescript", { origin: "https://node:1", hasToken: false })).toBe(
      'import { Client } from "quorate";\n\nconst client = new Client("https://node:1");\n' +
        'await client.put("it\'s", {"ok":true,"none":null,"n":12345678901234567890n}, { cas: "7" });',
    );
  });
});

describe("values", () => {
  test("come as the text that they are", () => {
    const answer = parseAnswer(
      '{"value":{"value":1.10,"n":12345678901234567890},"cas":"7","\\"value":"x","l":[{"value":"a\\"}"}]}',
    );
    expect(answer).toEqual({
      value: new JsonText('{"value":1.10,"n":12345678901234567890}'),
      cas: "7",
      '"value': "x",
      l: [{ value: new JsonText('"a\\"}"') }],
    });
  });
});

describe("parseCondition", () => {
  test("takes words as strings and JSON as it is", () => {
    expect(parseCondition("status eq paid")).toEqual({
      field: "status",
      op: "eq",
      value: new JsonText('"paid"'),
    });
    expect(parseCondition(' n  in [1, "a"] ')).toEqual({
      field: "n",
      op: "in",
      value: new JsonText('[1,"a"]'),
    });
    expect(parseCondition("n exists")).toEqual({ field: "n", op: "exists" });
  });

  test.each([
    ["$key eq ll/a", '"ll/a"'],
    ["$key eq ll/\\xff", '{"base64":"bGwv/w=="}'],
    ["$key eq ll/\\x5cxff", '"ll/\\\\xff"'],
    ["$key starts a\\xe2\\x80\\x8b", '"a\\u200b"'],
    ['$key eq "ll/\\\\xff"', '"ll/\\\\xff"'],
    ['$key eq {"base64": "/w=="}', '{"base64":"/w=="}'],
    ["path eq ll/\\xff", '"ll/\\\\xff"'],
    ["path eq ll/\\x5cxff", '"ll/\\\\x5cxff"'],
  ])("takes a key as it is shown, and nothing else so: %s", (line, json) => {
    const [field, op] = line.split(" ");
    expect(parseCondition(line)).toEqual({ field, op, value: new JsonText(json) });
  });

  test.each([
    ["$key eq ll/\\xff", "$key eq ll/\\xff"],
    ['$key  eq {"base64":"bGwv/w=="}', "$key eq ll/\\xff"],
    ['$key eq "ll/\\\\xff"', "$key eq ll/\\x5cxff"],
    ['$key eq "a\u200b"', "$key eq a\\xe2\\x80\\x8b"],
    ['$key eq " a"', "$key eq \\x20a"],
    ['$key eq "17"', '$key eq "17"'],
    ['$key eq ""', '$key eq ""'],
    ['$key in ["a", "b"]', '$key in ["a","b"]'],
    ['$key eq {"base64":"YQ=="}', '$key eq {"base64":"YQ=="}'],
    ['$key eq {"base64":"?"}', '$key eq {"base64":"?"}'],
    ["$key exists", "$key exists"],
    ["status eq ll/\\xff", "status eq ll/\\xff"],
    ["status eq paid\u202e", "status eq paid\\u202e"],
    ["status is paid", "status is paid"],
  ])("%s is shown as %s, which means the same", (line, shown) => {
    expect(shownWords(line)).toBe(shown);
    const condition = parseCondition(line);
    if (typeof condition !== "string" && condition.field === "$key") {
      expect(parseCondition(shown)).toEqual(condition);
      expect(shownCondition(condition)).toBe(shown);
    }
  });

  test.each(["", "status", "status is paid", "status eq", "n exists 1"])(
    "says what is wrong with %j",
    (line) => {
      expect(typeof parseCondition(line)).toBe("string");
    },
  );
});
