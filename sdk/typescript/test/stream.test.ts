/** Streams of operations, against nodes that are not there. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Client,
  type Op,
  OutcomeUnknownError,
  op,
  ProtocolError,
  type Streamed,
  UnavailableError,
} from "../src/index.js";
import { broken, fake } from "./fake.js";

const WRITTEN = { key: "k", revision: "7", index: 1, cas: "7", create_revision: "7", version: 1 };

interface Line {
  readonly n: number;
  readonly op: { readonly key: string; readonly request_id?: string };
}

function good(n: number, key = "k"): string {
  return JSON.stringify({ n, status: 201, term: "1", leader: 1, answer: { ...WRITTEN, key } });
}

function bad(n: number | null, code: string, retry: string, status = 409): string {
  const known = { type: "/errors/x", title: code, status, detail: code, applied: "no", request_id: "r" };
  return JSON.stringify({ n, status, term: "1", leader: 1, answer: { ...known, code, retry } });
}

/** A client of a node that answers each line so, where it does, and what was asked. */
function streaming(
  answer: (line: Line, request: number) => string | undefined,
  attemptsMax = 1_000,
): { client: Client; asked: Line[][] } {
  const asked: Line[][] = [];
  const { client } = fake(
    (sent) => {
      const lines = String(sent.body).trimEnd().split("\n");
      asked.push(lines.map((line) => JSON.parse(line) as Line));
      const answers = asked.at(-1)?.map((line) => answer(line, asked.length)) ?? [];
      const text = answers.filter((text) => text !== undefined).map((text) => `${text}\n`);
      return new Response(text.join(""), { headers: { "content-type": "application/x-ndjson" } });
    },
    { retry: { attemptsMax }, endpoints: "a:1" },
  );
  return { client, asked };
}

async function all(client: Client, ops: readonly Op[]): Promise<Streamed[]> {
  const done: Streamed[] = [];
  for await (const one of client.stream(ops)) {
    done[one.n] = one;
  }
  return done;
}

test("an entry says that it was only tried", async () => {
  const known = { content_type: "json", cas: "7", create_revision: "7", mod_revision: "7", version: 1 };
  const entry = { key: "k", value: 1, ...known };
  const { client, asked } = streaming(({ n }) =>
    JSON.stringify({ n, status: 200, term: "1", leader: 1, answer: { ...entry, dry_run: true } }),
  );
  const [tried] = await all(client, [{ op: "get_and_touch", key: "k", ttlMs: 5, dryRun: true }]);
  assert.match(JSON.stringify(asked), /"dry_run":true/);
  assert.equal(tried?.entry?.dryRun, true);
});

test("a line that was not answered is sent again under its id", async () => {
  const { client, asked } = streaming((line, request) => {
    if (request === 1 && line.n > 0) {
      return undefined;
    }
    if (request === 2 && line.n === 2) {
      return bad(2, "no_leader", "same_request_id", 503);
    }
    return line.n === 3 ? bad(3, "cas_mismatch", "after_reading") : good(line.n, line.op.key);
  });
  const done = await all(
    client,
    ["a", "b", "c", "d"].map((key) => op.put(key, 1)),
  );
  assert.deepEqual(
    done.slice(0, 3).map(({ written }) => written?.revision),
    ["7", "7", "7"],
  );
  // It is open whether the first try was done, and the refusal did not go through the log.
  assert.ok(done[3]?.error instanceof OutcomeUnknownError && done[3].error.code === "cas_mismatch");
  assert.deepEqual(
    asked.map((lines) => lines.map(({ n }) => n)),
    [[0, 1, 2, 3], [1, 2, 3], [2]],
  );
  const ids = new Set(asked.flat().map(({ n, op }) => `${n} ${op.request_id}`));
  assert.equal(ids.size, 4);
  assert.equal(done[3].error.requestId, asked[0]?.[3]?.op.request_id);
});

test("a stream that nobody serves is given up", async () => {
  const { client } = streaming(() => undefined, 2);
  const [write, read] = await all(client, [op.put("a", 1), op.get("b")]);
  assert.ok(write?.error instanceof OutcomeUnknownError && read?.error instanceof UnavailableError);
  const nobody = fake(() => broken("ECONNREFUSED"), { retry: { attemptsMax: 2 } }).client;
  const [refused] = await all(nobody, [op.put("a", 1)]);
  assert.ok(refused?.error instanceof UnavailableError && refused.error.requestId !== undefined);
});

test("nothing is sent again under an id that nodes may have forgotten while the machine slept", async (t) => {
  const wall = Date.now;
  let slept = 0;
  t.mock.method(Date, "now", () => wall() + slept);
  const { client, asked } = streaming(() => {
    slept += 20 * 60_000;
    return undefined;
  });
  const [write, read] = await all(client, [op.put("a", 1), op.get("b")]);
  assert.equal(asked.length, 1);
  assert.ok(write?.error instanceof OutcomeUnknownError && read?.error instanceof UnavailableError);
  slept = 0;
  const sent: string[] = [];
  const { client: single } = fake(({ headers }) => {
    sent.push(headers.get("idempotency-key") ?? "");
    slept += 20 * 60_000;
    return broken("ECONNRESET");
  });
  await assert.rejects(single.put("a", 1), OutcomeUnknownError);
  assert.equal(sent.length, 1);
});

test("who is slow to take answers does not have operations sent again too late", async (t) => {
  const wall = Date.now;
  let slept = 0;
  t.mock.method(Date, "now", () => wall() + slept);
  const { client, asked } = streaming(({ n }) => (n === 0 ? good(n, "a") : undefined));
  const done: Streamed[] = [];
  for await (const one of client.stream([op.put("a", 1), op.put("b", 1)])) {
    done.push(one);
    slept = 20 * 60_000;
  }
  assert.equal(asked.length, 1);
  assert.ok(done[1]?.error instanceof OutcomeUnknownError);
});

test("an answer about another key is none to its operation", async () => {
  const { client } = streaming(({ n }) => good(n));
  const [right, wrong] = await all(client, [op.put("k", 1), op.put("a//b", 1)]);
  assert.equal(right?.written?.key, "k");
  assert.ok(wrong?.error instanceof ProtocolError && wrong.error.applied === "unknown");
});

test("lines that a node does not take are told", async () => {
  const { client } = streaming(() => bad(null, "too_large", "never", 413));
  const [alone] = await all(client, [op.put("a", 1)]);
  assert.equal(alone?.error?.code, "too_large");
  for (const { error } of await all(client, [op.put("a", 1), op.put("b", 1)])) {
    assert.ok(error instanceof ProtocolError && error.applied === "unknown");
  }
});

test("requests are bounded, and a stream can be left and given up", async () => {
  const { client, asked } = streaming(({ n, op }) => good(n, op.key));
  const ops = Array.from({ length: 1_001 }, (_, n) => op.put(`k${n}`, n));
  assert.equal(
    (await all(client, [...ops, op.put("long", "x".repeat(1_000_000)), op.get("b")])).length,
    1_003,
  );
  assert.deepEqual(
    asked.map(({ length }) => length),
    [1_000, 1, 1, 1],
  );
  for await (const { n } of client.stream(ops)) {
    assert.equal(n, 0);
    break;
  }
  assert.equal(asked.length, 5);
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(client.stream(ops, { signal: stop.signal }).next(), /enough/);
  await assert.rejects(client.stream([{ op: "lock", key: "k", waitMs: 5 }]).next(), {
    code: "invalid_argument",
  });
});
