/** What callers are told, and what comes of it where their listeners throw, or are gone. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Mirror, SessionState } from "../src/index.js";
import { answer, broken, fake } from "./fake.js";
import { sessionCluster } from "./sessions.js";
import { until } from "./support.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

test("a listener that throws, or rejects, breaks nothing, and is told", async () => {
  const { client, troubles, to } = sessionCluster(() => "usual");
  const session = await client.session();
  const states: SessionState[] = [];
  session.onStateChange(() => {
    throw new Error("of a listener");
  });
  session.onStateChange((() => Promise.reject(new Error("of an async one"))) as () => void);
  session.onStateChange((state) => states.push(state));
  await session.end();
  assert.equal(to(`/v1/sessions/${session.id}`).length, 1, "it is ended at the nodes");
  assert.deepEqual(states, ["lost"]);
  assert.deepEqual(troubles.map(({ cause }) => (cause as Error).message).sort(), [
    "of a listener",
    "of an async one",
  ]);
  await client.close();
});

test("trouble that nobody wants to hear of is written to the console", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const failed = t.mock.method(console, "error", () => {});
  const cases = [
    { onTrouble: undefined, console: [1, 0] },
    {
      onTrouble: () => {
        throw new Error("here, too");
      },
      console: [1, 1],
    },
  ];
  for (const { onTrouble, console: written } of cases) {
    const { client } = sessionCluster(() => "usual", { onTrouble });
    const session = await client.session();
    session.onStateChange(() => {
      throw new Error("of a listener");
    });
    await session.end();
    assert.deepEqual([warned.mock.callCount(), failed.mock.callCount()], written);
    await client.close();
  }
});

test("trouble of a worker that its listener does not stand does not end it", async () => {
  const stop = new AbortController();
  let claims = 0;
  const troubles: Error[] = [];
  const { client } = fake(
    ({ body }) => {
      claims += 1;
      if (claims <= 2) {
        return broken("ECONNREFUSED");
      }
      const waits = (body as { wait_ms?: number }).wait_ms !== undefined;
      return waits ? undefined : answer({ tasks: [], waited_ms: 0 });
    },
    { retry: { attemptsMax: 2 }, onTrouble: (trouble) => troubles.push(trouble) },
  );
  const working = client.tasks("q").work(() => {}, {
    signal: stop.signal,
    onTrouble: () => {
      throw new Error("of a listener");
    },
  });
  await until("it is told", () => troubles.length > 0);
  stop.abort();
  assert.equal((await working).completed, 0);
  assert.match(troubles[0]?.message ?? "", /`onTrouble` of a worker threw/);
});

test("a session that the answer to a renewal does not name was not renewed", async () => {
  const times = { ttl_ms: 1_500, renew_in_ms: 100, expires_in_ms: 1_500 };
  let names: string[] = ["7"];
  const { client } = fake(({ path }) =>
    path === "/v1/sessions"
      ? answer({ session: "7", ...times, owner: "", labels: {}, revision: "1", index: 1 }, 201)
      : answer({ sessions: names.map((session) => ({ session, ...times })) }),
  );
  const session = await client.session({ ttlMs: 1_500 });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.equal(session.state, "alive");
  names = ["8"];
  assert.equal(await session.lost, "not_renewed");
  await client.close();
});

/** A mirror of one entry, and what changes that. */
async function mirrored(): Promise<{ mirror: Mirror; troubles: Error[]; change(): void }> {
  const head = 'event: synced\ndata: {"revision":"3"}\n\n';
  const troubles: Error[] = [];
  let send = (_: string) => {};
  let revision = 3;
  const { client } = fake(
    () => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          send = (text) => controller.enqueue(new TextEncoder().encode(text));
          send(head);
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream", "quorate-term": "1" } });
    },
    { onTrouble: (trouble) => troubles.push(trouble) },
  );
  const change = () => {
    revision += 1;
    const data = `{"type":"delete","key":"k","revision":"${revision}"}`;
    send(`event: delete\nid: ${revision}.1\ndata: ${data}\n\n`);
  };
  return { mirror: await client.mirror({ heartbeatMs: 60_000 }), troubles, change };
}

test("a listener of a mirror that throws does not keep it from following", async () => {
  const { mirror, troubles, change } = await mirrored();
  const seen: string[] = [];
  mirror.onChange(() => {
    throw new Error("of a listener");
  });
  mirror.onChange((changed) => seen.push(changed.type));
  change();
  await mirror.waitFor("4");
  change();
  await mirror.waitFor("5");
  assert.deepEqual([seen, mirror.trouble, troubles.length], [["entry", "entry"], undefined, 2]);
  mirror.close();
});

test("changes that nobody asks for are not kept, and those that somebody waits for are", async () => {
  const { mirror, change } = await mirrored();
  const gone = new Set<string>();
  const registry = new FinalizationRegistry<string>((name) => gone.add(name));
  const begin = (name: string) => {
    const changes = mirror.changes();
    registry.register(changes, name);
    return changes;
  };
  begin("never asked");
  let handled = 0;
  const waiting = (async () => {
    for await (const _ of begin("waited at")) {
      handled += 1;
    }
  })();
  const kept = begin("kept");
  await until("the one that nobody asks is gone", async () => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectGarbage();
    return gone.size > 0;
  });
  change();
  await mirror.waitFor("4");
  await until("who waits is told", () => handled === 1);
  assert.deepEqual([...gone], ["never asked"]);
  assert.equal((await kept.next()).value?.revision, "4", "from when it was asked for on");
  mirror.close();
  await waiting;
  assert.deepEqual(await kept.next(), { done: true, value: undefined });
});
